"""Reports of tests: what they say, and that a hostile one costs nothing but itself."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from runs.validation import reports
from runs.validation.reports import Measured, Share, UnfitReport
from runs.validation.specs import Coverage

JUNIT = b"""<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" tests="5">
<testcase classname="tests.test_a.TestB" name="test_one[1-2]"><failure message="no">E</failure></testcase>
<testcase classname="tests.test_a" name="test_two"/>
<testcase classname="tests.test_a" name="test_three"><skipped/></testcase>
<testcase name="test_four"><error/><failure/></testcase>
<testcase name="test_five"><system-out>x</system-out></testcase>
</testsuite></testsuites>"""

COBERTURA = b"""<?xml version="1.0" ?>
<!DOCTYPE coverage SYSTEM "http://cobertura.sourceforge.net/xml/coverage-04.dtd">
<coverage lines-valid="10" lines-covered="9" branches-valid="10" branches-covered="8">
<sources><source>/room/src</source></sources>
<packages><package><classes>
<class filename="pkg/a.py"><methods><method><lines><line number="1" hits="0"/></lines></method></methods>
<lines><line number="1" hits="1"/><line number="2" hits="0"/><line number="9" hits="3"/></lines></class>
<class filename="pkg/b.py"><lines><line number="1" hits="1"/></lines></class>
</classes></package></packages></coverage>"""

LCOV = b"""TN:
SF:/room/src/a.js
DA:1,5
DA:2,0
BRDA:1,0,0,1
BRDA:1,0,1,-
LF:2
LH:1
end_of_record
SF:src/b.js
DA:1,1
end_of_record
"""

BOMB = b"""<?xml version="1.0"?><!DOCTYPE coverage [
<!ENTITY a "aaaaaaaaaa">
<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">
]><coverage lines-valid="1" lines-covered="1">&c;</coverage>"""


def test_a_junit_report_names_what_failed() -> None:
    found = reports.read_junit(JUNIT)
    assert found.to_json() == {
        "failed": ["tests.test_a.TestB::test_one[1-2]", "test_four"],
        "passed": 2,
        "total": 5,
    }


def test_names_are_bounded_and_printable() -> None:
    case = '<testcase name="{}&#10;"><failure/></testcase>'.format("n" * 900)
    data = f"<testsuite>{case * 500}</testsuite>".encode()
    found = reports.read_junit(data)
    assert (found.total, len(found.failed)) == (500, reports.MOST_FAILED)
    assert {len(name) for name in found.failed} == {reports.NAME_CHARACTERS}


@pytest.mark.parametrize(
    ("argv", "path"),
    [
        (["pytest", "--junitxml=a.xml"], "a.xml"),
        (["pytest", "--junit-xml", "b.xml", "-q"], "b.xml"),
        (["gotestsum", "--junitfile", "c.xml"], "c.xml"),
        (["pytest", "--junitxml"], ""),
        (["pytest"], ""),
    ],
)
def test_a_command_says_where_its_junit_report_is(argv: list[str], path: str) -> None:
    assert reports.junit_path(argv) == path


def test_a_coverage_report_may_lie_where_the_terms_or_a_command_say_or_in_the_usual_places() -> (
    None
):
    argv = ["pytest", "--cov-report=xml:out/c.xml", "--cov-report=term"]
    assert reports.coverage_paths([argv], Coverage(report_path="mine.xml")) == ("mine.xml",)
    assert reports.coverage_paths([argv], Coverage()) == ("out/c.xml", *reports.USUAL)


@pytest.mark.row("MALA-V-79", level="pure")
def test_lines_and_branches_count_together_or_lines_alone() -> None:
    found = reports.read_coverage(COBERTURA)
    assert (found.lines, found.branches) == (Share(9, 10), Share(8, 10))
    assert reports.percent_of(found, Coverage()) == 85.0
    assert reports.percent_of(found, Coverage(branch=False)) == 90.0


def test_without_sums_of_its_own_the_lines_are_counted_once() -> None:
    plain = COBERTURA.replace(b'lines-valid="10" lines-covered="9"', b'line-rate="1"')
    assert reports.read_coverage(plain).lines == Share(3, 4)


def test_lcov_is_read_too() -> None:
    found = reports.read_coverage(LCOV, "/room", ["src/a.js", "src/b.js"])
    assert (found.lines, found.branches) == (Share(2, 3), Share(1, 2))
    assert found.hits == {"src/a.js": {1: True, 2: False}, "src/b.js": {1: True}}


@pytest.mark.parametrize(
    ("changed", "percent"),
    [
        ({"src/pkg/a.py": {1, 2, 3}}, 50.0),
        ({"src/pkg/a.py": {9}, "README.md": {1}}, 100.0),
        ({"src/pkg/a.py": {4}}, None),
        ({"pkg/c.py": {1}}, None),
        ({}, None),
    ],
)
def test_coverage_of_the_changed_lines(changed: dict[str, set[int]], percent: float | None) -> None:
    found = reports.read_coverage(COBERTURA, "/room", changed)
    assert reports.changed_percent(found, changed) == percent


def test_a_name_that_may_mean_two_files_means_none() -> None:
    wanted = ("one/pkg/b.py", "two/pkg/b.py")
    assert not reports.read_coverage(COBERTURA, "/elsewhere", wanted).hits
    assert reports.read_coverage(COBERTURA, "/elsewhere", wanted[:1]).hits


@pytest.mark.row("MALA-V-80", level="pure")
@pytest.mark.parametrize(
    ("percent", "is_enough", "shown"),
    [
        (84.9, False, "84.9 %"),
        (85.0, True, "85 %"),
        (84.9999999999, True, "85 %"),
        (84.999, False, "84.99 %"),
    ],
)
def test_equal_passes_and_less_is_never_shown_as_equal(
    percent: float, is_enough: bool, shown: str
) -> None:
    assert reports.is_enough(percent, 85.0) is is_enough
    assert reports.shown(percent) == shown


@pytest.mark.row("MALA-V-81", level="pure")
@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(b"", "neither", id="empty"),
        pytest.param(b"hello", "neither", id="prose"),
        pytest.param(b"\xff\x00\x01", "neither", id="bytes"),
        pytest.param(b"<coverage", "no XML", id="cut off"),
        pytest.param(b"<html/>", "no Cobertura", id="another document"),
        pytest.param(BOMB, "entities", id="a bomb of entities"),
        pytest.param(
            b'<!DOCTYPE c [<!ENTITY x SYSTEM "file:///etc/passwd">]><coverage>&x;</coverage>',
            "entities",
            id="a file of this machine",
        ),
        pytest.param(b"<coverage/>", "no line", id="nothing measured"),
        pytest.param(b'<coverage lines-valid="nan"/>', "number", id="no number"),
        pytest.param(b'<coverage lines-valid="-5"/>', "number", id="less than nothing"),
        pytest.param(
            b'<coverage lines-valid="5" lines-covered="6"/>', "more was reached", id="too much"
        ),
        pytest.param(b"<coverage>" + b"<a>" * 1000, "nested", id="too deep"),
        pytest.param(b'<?xml version="1.0" encoding="no-such"?><coverage/>', "encoding", id="odd"),
        pytest.param(b"SF:a\nDA:x,1\nend_of_record\n", "number", id="lcov with words"),
        pytest.param(b"SF:a\nDA:1,1\n", "neither", id="lcov cut off"),
    ],
)
def test_a_report_that_cannot_be_read_says_why(data: bytes, why: str) -> None:
    with pytest.raises(UnfitReport, match=why):
        reports.read_coverage(data)


@pytest.mark.row("MALA-V-81", level="pure")
@pytest.mark.parametrize("encoding", ["big5", "utf-32", "utf-7", "rot13", "undefined", "nowhere"])
def test_an_encoding_that_no_parser_reads_is_no_report(encoding: str) -> None:
    raw = f'<?xml version="1.0" encoding="{encoding}"?><coverage lines-valid="1"/>'.encode()
    for read in (reports.read_coverage, reports.read_junit):
        with pytest.raises(UnfitReport, match="its encoding is unknown"):
            read(raw)


@pytest.mark.long
def test_a_report_that_names_places_without_end_is_read_in_little_time() -> None:
    """A file is looked for below each source once: the two multiplied would take hours."""
    sources = b"".join(b"<source>/s%d</source>" % n for n in range(20_000))
    classes = b"".join(b'<class filename="f%d.py"/>' % n for n in range(20_000))
    lines = b'<line number="1" hits="1"/>'
    wanted = [f"src/{n}/a.py" for n in range(5_000)]
    began = time.process_time()
    found = reports.read_coverage(
        b"<coverage><sources>" + sources + b"</sources>" + classes + lines + b"</coverage>",
        "/room",
        wanted,
    )
    assert found.lines == Share(1, 1)
    lcov = b"SF:src/none.js\n" + b"".join(b"DA:%d,1\n" % n for n in range(1, 50_000))
    reports.read_coverage(lcov + b"end_of_record\n", "/room", wanted)
    assert time.process_time() - began < 20


def test_a_junit_report_that_is_none_says_so() -> None:
    for data in (b"<coverage/>", b"", BOMB):
        with pytest.raises(UnfitReport):
            reports.read_junit(data)


@pytest.mark.long
def test_a_large_report_is_read_in_little_memory() -> None:
    line = b'<line number="1" hits="1"/>'
    data = b"<coverage><packages><class filename='a'><lines>" + line * 100_000
    data += b"</lines></class></packages></coverage>"
    tracemalloc.start()
    try:
        found = reports.read_coverage(data)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == Measured(Share(100_000, 100_000))
    assert most < 2_000_000


def test_a_file_that_lcov_names_for_each_test_is_one_file() -> None:
    text = b"".join(
        b"TN:%s\nSF:a.c\nDA:1,%s\nDA:2,%s\nend_of_record\n" % one
        for one in ((b"one", b"1.5e3", b"0"), (b"two", b"0", b"2"))
    )
    found = reports.read_coverage(text, "", ["a.c"])
    assert (found.lines.covered, found.lines.valid) == (2, 2)
    assert found.hits == {"a.c": {1: True, 2: True}}


def test_a_test_that_is_skipped_and_failed_has_failed() -> None:
    case = b'<testcase name="t"><skipped/><failure/></testcase>'
    found = reports.read_junit(b"<testsuite>" + case + b"</testsuite>")
    assert (found.failed, found.passed) == (("t",), 0)
