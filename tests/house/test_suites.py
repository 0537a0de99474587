"""Each test belongs to one suite; what fails is tried again alone; a hang costs one test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import run_suite, suites
from tests.house.product import ROOT
from tests.run_suite import Stage, SuiteRun, TestResult
from tests.suites import TestFacts

SQLITE = Stage("SQLite", "pytest", ())
POSTGRES = Stage("PostgreSQL", "tests.postgres", ())


@pytest.mark.parametrize(
    "fixtures, marks, need, suite",
    [
        pytest.param("tmp_path", "", "pure", "quick", id="nothing is needed"),
        pytest.param("", "parametrize row", "pure", "quick", id="marks of no need"),
        pytest.param("world db", "", "database", "quick", id="tables"),
        pytest.param("", "django_db", "database", "quick", id="tables by a mark"),
        pytest.param("db", "long", "database", "long", id="slow"),
        pytest.param("real db", "", "real", "long", id="programs"),
        pytest.param("db", "real", "real", "long", id="programs by a mark"),
        pytest.param("served browser", "", "browser", "long", id="browser"),
        pytest.param("served browser", "quick", "browser", "quick", id="a chosen story"),
        pytest.param("", "pure", "pure", "quick", id="said to be pure"),
    ],
)
def test_what_a_test_needs_decides_its_suite(
    fixtures: str, marks: str, need: str, suite: str
) -> None:
    facts = TestFacts(frozenset(fixtures.split()), frozenset(marks.split()), "because")
    assert (suites.find_need(facts), suites.find_suite(facts)) == (need, suite)


@pytest.mark.parametrize(
    "fixtures, marks, reason, said",
    [
        ("db", "pure", None, "marked pure, but it needs database"),
        ("", "pure real", None, "marked pure, but it needs real"),
        ("", "quick long", "because", "marked quick and long"),
        ("real", "quick", "", "a quick mark says why"),
    ],
)
def test_marks_that_leave_open_where_a_test_belongs_are_an_error(
    fixtures: str, marks: str, reason: str | None, said: str
) -> None:
    facts = TestFacts(frozenset(fixtures.split()), frozenset(marks.split()), reason)
    with pytest.raises(suites.SuiteError, match=said):
        suites.find_suite(facts)


def test_parts_hold_every_file_once_and_are_about_equal() -> None:
    weights = {Path(f"{number}.py"): float(number % 7 + 1) for number in range(40)}
    parts = suites.split_files(weights, 4)
    assert sorted(path for part in parts for path in part) == sorted(weights)
    sums = [sum(weights[path] for path in part) for part in parts]
    assert max(sums) - min(sums) <= 7


@pytest.mark.parametrize(
    "changed, folders",
    [
        ("README.md docs/api.md bench/idle.py", set()),
        ("runs/watch/rules.py", {"watch", *suites.WHOLE_PRODUCT}),
        ("templates/web/x.html static/app.css", {"web", *suites.WHOLE_PRODUCT}),
        ("labsite/queue.py", {"house", "ops", *suites.WHOLE_PRODUCT}),
        ("tests/watch/test_x.py", {"watch", *suites.WHOLE_PRODUCT}),
        ("runs/core/lease.py", None),
        ("tests/conftest.py", None),
        ("pyproject.toml", None),
    ],
)
def test_a_change_touches_its_rooms_and_the_stories(changed: str, folders: set[str] | None) -> None:
    assert suites.find_touched_folders(changed.split()) == folders


@pytest.mark.parametrize("text", ["1/4", "4/4", "1/1"])
def test_a_part_is_a_number_of_so_many(text: str) -> None:
    assert "{}/{}".format(*suites.parse_part(text)) == text


@pytest.mark.parametrize(
    ("need", "suite", "is_on_server", "seconds"),
    [
        ("pure", "quick", False, 10),
        ("database", "quick", False, 10),
        ("database", "quick", True, 60),
        ("real", "quick", False, 60),
        ("browser", "quick", True, 60),
        ("pure", "long", False, 600),
        ("browser", "long", True, 600),
    ],
)
def test_a_test_has_a_limit_by_its_need_and_suite(
    need: str, suite: str, is_on_server: bool, seconds: int
) -> None:
    assert suites.find_limit(need, suite, is_on_server=is_on_server) == seconds


@pytest.mark.parametrize("text", ["", "3", "0/4", "5/4", "a/b", "1/"])
def test_a_part_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="written like 2/4"):
        suites.parse_part(text)


def test_a_failed_phase_stays_and_times_add_up() -> None:
    lines = (
        '["a", "setup", "passed", 1.0, ""]\n["a", "call", "failed", 2.0, "why"]\n'
        '["a", "teardown", "passed", 0.5, ""]\n["b", "setup", "skipped", 0.0, ""]\n'
    )
    first, second = run_suite.read_outcomes(SQLITE, lines)
    assert (first.outcome, first.reason, first.seconds) == ("failed", "why", 3.5)
    assert second.outcome == "skipped"


def _run_with(unstable: int, failed: int = 0) -> SuiteRun:
    run = SuiteRun([TestResult(SQLITE, "good")])
    run.unstable = [
        TestResult(SQLITE, f"u{n}", outcome="failed", reason="slow") for n in range(unstable)
    ]
    run.results += [*run.unstable]
    run.results += [TestResult(POSTGRES, f"f{n}", outcome="failed") for n in range(failed)]
    return run


@pytest.mark.parametrize(
    "unstable, failed, is_green",
    [(0, 0, True), (5, 0, True), (6, 0, False), (0, 1, False), (1, 1, False)],
)
def test_up_to_five_unstable_tests_are_accepted_and_no_failed_one(
    unstable: int, failed: int, is_green: bool
) -> None:
    assert _run_with(unstable, failed).is_green is is_green


def test_a_run_that_pytest_could_not_carry_out_is_red_and_so_is_one_without_tests() -> None:
    broken = _run_with(0)
    broken.broken.append((SQLITE, 2))
    assert not broken.is_green
    assert not SuiteRun().is_green


def test_the_report_says_what_was_unstable_what_failed_and_how_to_run_it_again() -> None:
    lines = run_suite.report(_run_with(1, 2), "quick")
    assert "u0" in lines
    assert "    slow" in lines
    assert "== Run again: ./lab test --postgres -n 0 'f0' 'f1'" in lines
    assert lines[-1] == "2 passed, 2 failed, 0 skipped"


def test_what_measures_time_runs_alone_after_all_others() -> None:
    long = run_suite.list_stages(run_suite.parse(["--cores", "2", "--long"]))

    others, alone, _server = long
    assert "not alone" in others.arguments
    assert not others.is_alone
    assert "alone" in alone.arguments
    assert alone.is_alone


@pytest.mark.parametrize("arguments", ["--part 5/4 --long", "--part 1/4", "--touched", "--nothing"])
def test_wrong_options_of_a_suite_end_with_2(arguments: str) -> None:
    with pytest.raises(SystemExit) as ended:
        run_suite.parse(["--cores", "2", *arguments.split()])
    assert ended.value.code == 2


WRONG_MARKS = """
import pytest

@pytest.mark.quick
def test_without_a_reason():
    pass
"""
PROMISES_NOT_KEPT = """
import subprocess, threading

def test_starts_a_program():
    subprocess.run(["true"])

def test_hangs():
    threading.Event().wait()

def test_is_well():
    pass
"""


def _run_file(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Run a file of tests with the plugin alone, in the quick suite."""
    (folder / "test_it.py").write_text(text)
    (folder / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n    quick: x\n    timeout: x\ntimeout = 1\n"
    )
    argv = ["-p", "tests.suite_plugin", "-p", "no:django", "-p", "no:cacheprovider", "-rf"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *argv, "--rootdir", str(folder), "test_it.py"],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.real
@pytest.mark.quick("the suite's own promises, shown on the real pytest")
def test_a_test_without_a_place_fails_collection(tmp_path: Path) -> None:
    done = _run_file(tmp_path, WRONG_MARKS)
    assert "test_without_a_reason: a quick mark says why" in done.stderr
    assert done.returncode == 4


@pytest.mark.real
@pytest.mark.quick("the suite's own promises, shown on the real pytest")
def test_a_hang_and_an_undeclared_program_cost_one_test_each(tmp_path: Path) -> None:
    done = _run_file(tmp_path, PROMISES_NOT_KEPT)
    assert "starts true: mark it real" in done.stdout
    assert "Timeout" in done.stdout
    assert "2 failed, 1 passed" in done.stdout
