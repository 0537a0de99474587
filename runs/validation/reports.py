"""Reads what tests report of themselves: JUnit XML, and coverage as Cobertura XML or lcov. Pure.

A report was written by the code that is checked: it is read as a stream in constant memory, with
entities forbidden, and anything that is not as it should be is an `UnfitReport`.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import XMLParser

from runs.validation.specs import Coverage

MOST_BYTES = 32_000_000
MOST_FAILED = 200
MOST_DEPTH = 200
MOST_SOURCES = 20
MOST_ALIKE = 200  # changed files of one name
NAME_CHARACTERS = 300
TOLERANCE = 1e-9  # what adding up shares may lose
# Where the usual programs write a coverage report when nobody says where.
USUAL = (
    "coverage.xml",
    "cobertura.xml",
    "lcov.info",
    "coverage.lcov",
    "coverage/cobertura-coverage.xml",
    "coverage/lcov.info",
)
_JUNIT_OPTIONS = (
    "--junitxml",
    "--junit-xml",
    "--junitfile",
    "--junit-output",
    "--log-junit",
    "--output-junit",
)
_PIECE = 1 << 16
_CONDITIONS = re.compile(r"\((\d{1,9})/(\d{1,9})\)")


class UnfitReport(ValueError):
    """A report that cannot be read as what it should be; says why."""


@dataclass(frozen=True, slots=True)
class Tests:
    """What a JUnit report says. At most `MOST_FAILED` names are kept."""

    failed: tuple[str, ...]
    passed: int
    total: int

    def to_json(self) -> dict[str, Any]:
        """As it is stored with its command."""
        return {"failed": list(self.failed), "passed": self.passed, "total": self.total}


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    covered: int
    valid: int

    def __add__(self, other: Share) -> Share:
        return Share(self.covered + other.covered, self.valid + other.valid)

    @property
    def percent(self) -> float:
        return 100.0 * self.covered / self.valid


NOTHING = Share(0, 0)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a coverage report says. `hits` tells of the wanted files which lines were reached."""

    lines: Share
    branches: Share = NOTHING
    hits: Mapping[str, Mapping[int, bool]] = field(default_factory=dict)


def junit_path(argv: Sequence[str]) -> str:
    """Where a command's own arguments say that it writes a JUnit report; empty when they do not."""
    for place, word in enumerate(argv):
        name, is_joined, value = word.partition("=")
        if name in _JUNIT_OPTIONS:
            return value if is_joined else next(iter(argv[place + 1 :]), "")
    return ""


def coverage_paths(argvs: Collection[Sequence[str]], terms: Coverage) -> tuple[str, ...]:
    """Where a coverage report may lie: where the terms or a command say, else the usual places."""
    if terms.report_path:
        return (terms.report_path,)
    said = [
        word.partition(":")[2]
        for argv in argvs
        for word in argv
        if word.startswith(("--cov-report=xml:", "--cov-report=lcov:", "xml:", "lcov:"))
    ]
    return (*(path for path in said if path), *USUAL)


def read_junit(data: bytes) -> Tests:
    """What a JUnit report says. Raises UnfitReport."""
    found = _Junit()
    _parse(data, found)
    if not found.is_junit:
        raise UnfitReport("it is no JUnit report")
    return Tests(tuple(found.failed), found.total - found.failures - found.skipped, found.total)


def read_coverage(data: bytes, folder: str = "", wanted: Collection[str] = ()) -> Measured:
    """What a coverage report of the files in `folder` says. Raises UnfitReport.

    `wanted` are paths below the folder whose single lines are of interest.
    """
    names = _Names(folder, frozenset(wanted))
    start = data[:200].lstrip(b"\xef\xbb\xbf \t\r\n")
    is_xml = start.startswith((b"<", b"\xff\xfe", b"\xfe\xff"))
    found = _cobertura(data, names) if is_xml else _lcov(data, names)
    if not found.lines.valid:
        raise UnfitReport("it names no line of code")
    for share in (found.lines, found.branches):
        if not 0 <= share.covered <= share.valid:
            raise UnfitReport("it says that more was reached than there is")
    return found


def percent_of(found: Measured, terms: Coverage) -> float:
    """The percentage that counts: of lines and branches together, as coverage.py adds them up."""
    share = found.lines + found.branches if terms.branch else found.lines
    return share.percent


def is_enough(percent: float, needed: float) -> bool:
    """Whether a percentage reaches the threshold; equal does, and so does what rounding took away."""
    return percent >= needed - TOLERANCE


def shown(percent: float) -> str:
    """A percentage for people, never rounded up to a threshold that it does not reach."""
    text = f"{math.floor(percent * 100 + 1e-7) / 100:.2f}"
    return f"{text.rstrip('0').rstrip('.')} %"


def changed_percent(found: Measured, changed: Mapping[str, Collection[int]]) -> float | None:
    """How much of the changed lines was reached; None when no changed line can be measured."""
    told = [
        found.hits[path][line]
        for path, lines in changed.items()
        if path in found.hits
        for line in lines
        if line in found.hits[path]
    ]
    return 100.0 * sum(told) / len(told) if told else None


class _Names:
    """Which wanted file a report means by a name of its own.

    Whoever wrote the report chose its names and how many there are, so each is looked up and none
    is compared with all others.
    """

    def __init__(self, folder: str, wanted: frozenset[str]) -> None:
        self._folder = folder.rstrip("/")
        self._wanted = wanted
        self._sources: list[str] = []
        self._last: tuple[str, str] | None = None
        self._ends: dict[str, list[str]] = {}
        for path in wanted:
            alike = self._ends.setdefault(posixpath.basename(path), [])
            if len(alike) < MOST_ALIKE:
                alike.append(path)

    def add_source(self, folder: str) -> None:
        """A folder below which files are named; real reports have a few."""
        if len(self._sources) < MOST_SOURCES and folder not in self._sources:
            self._sources.append(folder)
            self._last = None

    def of(self, name: str) -> str:
        """The wanted path, empty when none is meant or several could be."""
        if not self._wanted or not name:
            return ""
        if self._last is None or self._last[0] != name:  # lcov names it with each line
            self._last = (name, self._of(name.replace("\\", "/")))
        return self._last[1]

    def _of(self, name: str) -> str:
        for source in ("", *self._sources):
            path = self._below(posixpath.normpath(posixpath.join(source, name)))
            if path in self._wanted:
                return path
        alike = self._ends.get(posixpath.basename(name), ())
        found = [one for one in alike if one.endswith(f"/{name}")]
        # Where not all were kept, another one could be meant as well.
        return found[0] if len(found) == 1 and len(alike) < MOST_ALIKE else ""

    def _below(self, path: str) -> str:
        prefix = f"{self._folder}/"
        return path[len(prefix) :] if self._folder and path.startswith(prefix) else path


def _parse(data: bytes, target: _Target) -> None:
    try:
        parser = XMLParser(target=target, forbid_dtd=False, forbid_entities=True)
        for at in range(0, len(data), _PIECE):
            parser.feed(data[at : at + _PIECE])
        parser.close()
    except ParseError as error:
        raise UnfitReport(f"it is no XML: {error}") from error
    except DefusedXmlException as error:
        raise UnfitReport("it declares entities, which no report needs") from error
    except UnfitReport:
        raise
    except (LookupError, ValueError) as error:  # so a parser says of one that it cannot read
        raise UnfitReport("its encoding is unknown") from error


class _Target:
    """What hears a parser; a subclass says what it makes of each element."""

    def __init__(self) -> None:
        self._depth = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise UnfitReport("its elements are nested too deeply")
        self.opened(tag.rpartition("}")[2], attributes)

    def end(self, tag: str) -> None:
        self._depth -= 1
        self.closed(tag.rpartition("}")[2])

    def data(self, text: str) -> None:
        """Text between elements."""

    def close(self) -> None:
        """The end of the document."""

    def opened(self, tag: str, attributes: Mapping[str, str]) -> None:
        raise NotImplementedError

    def closed(self, tag: str) -> None:
        """An element has ended."""


class _Junit(_Target):
    def __init__(self) -> None:
        super().__init__()
        self.is_junit = False
        self.failed: list[str] = []
        self.failures = self.skipped = self.total = 0
        self._case: str | None = None
        self._is_skipped = False

    def opened(self, tag: str, attributes: Mapping[str, str]) -> None:
        if self._depth == 1:
            self.is_junit = tag in ("testsuites", "testsuite")
        elif tag == "testcase":
            self.total += 1
            self._case = _case_name(attributes)
            self._is_skipped = False
        elif self._case is not None and tag in ("failure", "error"):
            # One test counts once, however often it says that it failed.
            self.failures += 1
            if len(self.failed) < MOST_FAILED:
                self.failed.append(self._case)
            self._case = None
        elif tag == "skipped":
            self._is_skipped = True

    def closed(self, tag: str) -> None:
        if tag == "testcase":
            # One that says both has failed.
            self.skipped += self._case is not None and self._is_skipped
            self._case = None


def _case_name(attributes: Mapping[str, str]) -> str:
    parts = [attributes.get("classname", ""), attributes.get("name", "")]
    text = "::".join(part for part in parts if part) or "a test without a name"
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    return text[:NAME_CHARACTERS]


def _cobertura(data: bytes, names: _Names) -> Measured:
    found = _Cobertura(names)
    _parse(data, found)
    if not found.is_coverage:
        raise UnfitReport("it is no Cobertura report")
    lines = found.said("lines") or found.lines
    branches = found.said("branches") or found.branches
    return Measured(lines, branches, found.hits)


class _Cobertura(_Target):
    def __init__(self, names: _Names) -> None:
        super().__init__()
        self.is_coverage = False
        self.lines = self.branches = NOTHING
        self.hits: dict[str, dict[int, bool]] = {}
        self._names = names
        self._root: Mapping[str, str] = {}
        self._file = ""
        self._is_in_method = self._is_in_source = False
        self._source = ""

    def said(self, what: str) -> Share | None:
        """What the report's own sums say, None when it has none."""
        if f"{what}-valid" not in self._root:
            return None
        return Share(
            _count(self._root.get(f"{what}-covered", "")), _count(self._root[f"{what}-valid"])
        )

    def opened(self, tag: str, attributes: Mapping[str, str]) -> None:
        if self._depth == 1:
            self.is_coverage, self._root = tag == "coverage", dict(attributes)
        elif tag == "source":
            self._is_in_source, self._source = True, ""
        elif tag == "class":
            self._file = self._names.of(attributes.get("filename", ""))
        elif tag == "method":
            self._is_in_method = True
        elif tag == "line" and not self._is_in_method:
            # Lines of methods stand once more below their class.
            self._line(attributes)

    def closed(self, tag: str) -> None:
        if tag == "method":
            self._is_in_method = False
        elif tag == "source":
            self._is_in_source = False
            self._names.add_source(self._source.strip())

    def data(self, text: str) -> None:
        if self._is_in_source and len(self._source) < NAME_CHARACTERS:
            self._source += text

    def _line(self, attributes: Mapping[str, str]) -> None:
        is_hit = _count(attributes.get("hits", "")) > 0
        self.lines += Share(int(is_hit), 1)
        conditions = _CONDITIONS.search(attributes.get("condition-coverage", ""))
        if conditions is not None:
            self.branches += Share(int(conditions[1]), int(conditions[2]))
        line = _count(attributes.get("number", ""))
        if self._file:
            _hit(self.hits, self._file, line, is_hit)


def _lcov(data: bytes, names: _Names) -> Measured:
    # A file stands there once for each test; what one of them reached was reached.
    lines: dict[tuple[str, int], bool] = {}
    branches: dict[tuple[str, str], bool] = {}
    file, is_lcov = "", False
    for key, value in _records(data):
        if key == "SF":
            file = value
        elif key == "DA":
            number, _, rest = value.partition(",")
            line = (file, _count(number))
            lines[line] = _is_hit(rest.partition(",")[0]) or lines.get(line, False)
        elif key == "BRDA":
            where, _, taken = value.rpartition(",")
            branch = (file, where)
            branches[branch] = taken not in ("-", "0") or branches.get(branch, False)
        elif key == "end_of_record":
            is_lcov = True
    if not is_lcov:
        raise UnfitReport("it is neither Cobertura XML nor lcov")
    return Measured(_share(lines.values()), _share(branches.values()), _named(lines, names))


def _named(lines: Mapping[tuple[str, int], bool], names: _Names) -> dict[str, dict[int, bool]]:
    """The lines of the wanted files, by the paths that the repository has for them."""
    hits: dict[str, dict[int, bool]] = {}
    for (path, number), is_hit in lines.items():
        name = names.of(path)
        if name:
            _hit(hits, name, number, is_hit)
    return hits


def _share(reached: Collection[bool]) -> Share:
    return Share(sum(reached), len(reached))


def _is_hit(text: str) -> bool:
    """Whether a count says that a line was reached; large ones may be written as 1.5e3."""
    try:
        count = float(text)
    except ValueError:
        count = math.nan
    if len(text) > 40 or not math.isfinite(count):
        raise UnfitReport(f"it has {text[:40]!r} where a number belongs")
    return count > 0


def _records(data: bytes) -> Iterator[tuple[str, str]]:
    for raw in data.splitlines():
        key, _, value = raw.decode("utf-8", "replace").strip().partition(":")
        yield key, value


def _hit(hits: dict[str, dict[int, bool]], path: str, line: int, is_hit: bool) -> None:
    """A line that is told of twice was reached if it was once."""
    lines = hits.setdefault(path, {})
    lines[line] = is_hit or lines.get(line, False)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise UnfitReport(f"it has {text[:40]!r} where a number belongs")
    return int(text)
