"""Which requirement is shown where: `./lab test --rows`; with `--check` only what is wrong with that.

Reads the rows from docs/rows.md and the marks from a collection of all tests; runs none.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "rows.md"
LEVELS = ("pure", "contract", "real", "browser")
SATISFIES = {
    "pure": {"pure", "contract", "real", "browser"},
    "contract": {"contract", "real", "browser"},
    "real": {"real", "browser"},
    "browser": {"browser"},
}
_LINE = re.compile(r"^\| ((?:[A-Z]+-)+\d+) \| (.+) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Row:
    """One requirement, and the level at which its evidence asks to see it."""

    id: str
    level: str
    text: str


@dataclass
class Marks:
    """A pytest plugin: remembers which test shows which row at which level."""

    shown: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            for mark in item.iter_markers("row"):
                level = mark.kwargs.get("level", "")
                if level not in LEVELS or not mark.args:
                    self.wrong.append(
                        f"{item.nodeid}: a row mark needs ids and one level of {', '.join(LEVELS)}"
                    )
                for row in mark.args:
                    self.shown.setdefault(row, []).append((level, item.nodeid.partition("[")[0]))


def read(page: str) -> tuple[list[Row], dict[str, str]]:
    """The rows of docs/rows.md, and why some are partly shown."""
    first, _, second = page.partition("## Partly shown")
    rows = [Row(found[1], *found[2].split(" | ", 1)) for found in _LINE.finditer(first)]
    return rows, {found[1]: found[2] for found in _LINE.finditer(second)}


def is_shown(row: Row, tests: Sequence[tuple[str, str]]) -> bool:
    """Whether some test shows the row at the level that is asked, or a stronger one."""
    return any(level in SATISFIES[row.level] for level, _ in tests)


def problems(rows: Sequence[Row], partly: Mapping[str, str], marks: Marks) -> list[str]:
    """Everything in which the page and the marks do not agree."""
    listed = Counter(row.id for row in rows)
    known = set(listed)
    return [
        *marks.wrong,
        *(f"{row}: listed {count} times" for row, count in listed.items() if count > 1),
        *(
            f"{row}: marked by {tests[0][1]}, but not a row of docs/rows.md"
            for row, tests in marks.shown.items()
            if row not in known
        ),
        *(
            f"{row}: partly shown, but not a row of docs/rows.md"
            for row in partly
            if row not in known
        ),
        *(f"{row.id}: no test shows it" for row in rows if not marks.shown.get(row.id)),
        *(
            f"{row.id}: asked at {row.level}, shown only at {', '.join(sorted({level for level, _ in marks.shown[row.id]}))}"
            for row in rows
            if marks.shown.get(row.id) and not is_shown(row, marks.shown[row.id])
        ),
    ]


def report(rows: Sequence[Row], partly: Mapping[str, str], marks: Marks) -> list[str]:
    """The lines that `--rows` prints: a block a row, then what is partly shown or missing."""
    lines = []
    for row in rows:
        tests = sorted(set(marks.shown.get(row.id, [])))
        lines.append(
            f"{row.id}  (asked: {row.level})  {row.text}"
            + ("  PARTLY SHOWN" if row.id in partly else "")
        )
        lines += [f"    {level:9}{test}" for level, test in tests] or ["    NO TEST"]
    wrong = problems(rows, partly, marks)
    lines += [
        "",
        f"Partly shown, with the reason ({len(partly)}):",
        *(f"    {row}: {why}" for row, why in partly.items()),
    ]
    lines += [
        "",
        f"Without a test, or not at the level that is asked ({len(wrong)}):",
        *(f"    {line}" for line in wrong),
    ]
    shown = sum(is_shown(row, marks.shown.get(row.id, [])) for row in rows)
    return [*lines, "", f"{shown} of {len(rows)} rows are shown, {len(partly)} of them partly."]


def collect(*arguments: str) -> Marks:
    """The marks of all tests. Raises RuntimeError when a test file cannot be read."""
    marks = Marks()
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = pytest.main(
            ["--collect-only", "-q", "-p", "no:cacheprovider", *arguments], plugins=[marks]
        )
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise RuntimeError(said.getvalue())
    return marks


def main(argv: Sequence[str]) -> int:
    """Print what is shown where.

    Returns:
        0; with `--check` 1 when a row is shown nowhere, or not at the level that is asked.
    """
    rows, partly = read(PAGE.read_text(encoding="utf-8"))
    try:
        marks = collect(str(ROOT / "tests"))
    except RuntimeError as error:
        print(error)
        print("The tests could not be collected, so nothing can be said about the rows.")
        return 1
    if "--check" in argv:
        wrong = problems(rows, partly, marks)
        print("\n".join(wrong or [f"All tests were collected; {len(rows)} rows are shown."]))
        return 1 if wrong else 0
    print("\n".join(report(rows, partly, marks)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
