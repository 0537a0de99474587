"""`./lab wait GROUP`: blocks until the monitor of a task group has ended, and prints the result.

What is typed and what is printed; the follower reads the monitor, which is the product's and goes
on when this command ends. Imports no Django, so that arguments are checked before anything is read.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any, ClassVar, Protocol

from runs.core import budgets
from runs.core.refusal import ActRefused
from runs.core.terminal import Printer
from runs.groups.terms import Result

if TYPE_CHECKING:
    from runs.groups.follower import Follower

LEFT = "The monitor goes on; its page shows it, and the same command follows it again."
MOST = 1_000_000
NONE = "none"
# By the options' names; those that can be left away altogether may be `none`.
_TIMES = {"poll": False, "stale": False, "timeout": True, "release": True}


@dataclass(frozen=True, slots=True)
class Command:
    """A group that is waited for, and what was typed of its monitor's options."""

    left: ClassVar[str] = LEFT
    lost: ClassVar[str] = f"There is no result. {LEFT}"
    failed: ClassVar[int] = 3

    group: str
    project: str
    preset: str | None
    options: Mapping[str, Any]
    expected: int | None
    lines: Lines

    def begin(self) -> Follower:
        """Follow the group's monitor, which is started where none runs. Raises ActRefused."""
        from runs.groups.follower import Follower

        return Follower.begin(self)


def read(argv: Sequence[str]) -> Command:
    """What was typed. Raises ActRefused."""
    given = _parser().parse_args(argv)
    options, expected = _options(given), read_expected(given.expected)
    lines: Lines = (JsonLines if given.json else HumanLines)(sys.stdout)
    return Command(given.group, given.project, given.preset, options, expected, lines)


def _options(given: argparse.Namespace) -> dict[str, Any]:
    """The options that were typed, by the names of their columns; the others are the preset's."""
    found: dict[str, Any] = dict(read_options({name: getattr(given, name) for name in _TIMES}))
    if given.label is not None:
        found["label"] = given.label
    if given.checkpoints is not None:
        found["has_checkpoints"] = given.checkpoints
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./lab wait",
        description="Wait until the tasks of a group are completed, or time is up, and print the result.",
        epilog="TIME is 30s, 10m, 2h or a number of seconds. What is not given comes from the preset. "
        "Exit codes: 0 complete, 1 timed out with partial results, 2 wrong arguments, 3 the monitor "
        "failed or was stopped, or the group was deleted; 130 interrupted, 129 terminal closed: the monitor then goes on.",
        allow_abbrev=False,
    )
    parser.add_argument("group", help="PROJECT/GROUP, or GROUP where one open group is named so")
    parser.add_argument("--project", default="", help="the project's name")
    parser.add_argument("--preset", help="options under a name; the group's own by default")
    parser.add_argument(
        "--expected", metavar="N", help="so many tasks; all of the group by default"
    )
    parser.add_argument("--poll", metavar="TIME", help="between two listings of the tasks")
    parser.add_argument("--stale", metavar="TIME", help="in progress for longer: stalled")
    parser.add_argument("--timeout", metavar="TIME", help="partial results after it; or none")
    parser.add_argument("--release", metavar="TIME", help="stalled tasks go back after it; or none")
    parser.add_argument("--label", help="put before every message")
    parser.add_argument(
        "--checkpoints", action=argparse.BooleanOptionalAction, help="tell milestones and blockers"
    )
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    return parser


def read_options(typed: Mapping[str, str | None]) -> dict[str, int | None]:
    """What was typed of `poll`, `stale`, `timeout` and `release`, as columns in seconds.

    What was not typed is left to the preset. Raises ActRefused.
    """
    found = {}
    for name, may_be_none in _TIMES.items():
        text = typed.get(name)
        if text is not None:
            found[f"{name}_seconds"] = _seconds(name, text.strip(), may_be_none)
    return found


def read_expected(text: str | None) -> int | None:
    """The number of tasks to wait for; None when it was not typed. Raises ActRefused."""
    if text is None:
        return None
    given = text.strip()
    if not given.isascii() or not given.isdigit() or int(given) > MOST:
        raise ActRefused("Error: --expected is a whole number of tasks")
    return int(given)


def _seconds(name: str, text: str, may_be_none: bool) -> int | None:
    if may_be_none and text == NONE:
        return None
    number = budgets.typed_seconds(text)
    if not number:
        more = ", or none" if may_be_none else ""
        raise ActRefused(
            f"Error: --{name} is a length of at least one second, such as 30s, 10m{more}"
        )
    return number


class Lines(Protocol):
    """Where a monitor is told to."""

    def told(self, at: datetime, text: str) -> None: ...
    def result(self, result: Result) -> None: ...


class HumanLines:
    """The time of the machine, then what the monitor tells; the three parts of the result last."""

    def __init__(self, out: IO[str]) -> None:
        self._printer = Printer(out)

    def told(self, at: datetime, text: str) -> None:
        first, *more = text.splitlines() or [""]
        self._printer.line(f"{at.astimezone():%H:%M:%S}  {first}")
        for line in more:
            self._printer.line(f"          {line}")

    def result(self, result: Result) -> None:
        rows = {
            "completed": _keys(result.completed),
            "incomplete": _keys(result.incomplete),
            "timed out": "yes" if result.timed_out else "no",
        }
        self._printer.line("")
        for name, text in rows.items():
            self._printer.line(f"{name:<11} {text}")


class JsonLines:
    """Nothing but the result, with exactly its three parts."""

    def __init__(self, out: IO[str]) -> None:
        self._printer = Printer(out)

    def told(self, at: datetime, text: str) -> None:
        """Whoever reads JSON wants the result alone; the page and the stream tell the rest."""

    def result(self, result: Result) -> None:
        values = {
            "completed": list(result.completed),
            "incomplete": list(result.incomplete),
            "timed_out": result.timed_out,
        }
        self._printer.line(json.dumps(values, ensure_ascii=False))


def _keys(keys: Sequence[str]) -> str:
    return f"{len(keys)}: {', '.join(keys)}" if keys else "0"
