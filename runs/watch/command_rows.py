"""The rows of commands on pages: of a validation, and of an attempt in the clean room."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from statistics import median
from typing import Any

from django.utils.safestring import SafeString

from runs.core.ports import Lab, Output, SeamError
from runs.validation import command_rules, rules
from runs.validation.command_rules import Checked
from runs.web import terminal

TAIL_BYTES = 8_000
TESTS = 50
_GIVEN = ("status", "seconds", "tail", "signal", "is_over_time", "is_given_up", "trouble")

Result = Mapping[str, Any]
# What a command printed by now, from one of its files.
Printed = Callable[[str], Output | None]
Link = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Tests:
    """What a report of tests tells: the first names of those that failed, and how many there are."""

    failed: Sequence[str]
    passed: int
    total: int
    more: int = 0


@dataclass(frozen=True, slots=True)
class CommandRow:
    """One command, and what it gave by now. `links` lead to all that it printed."""

    text: str
    state: str
    tone: str
    why: str = ""
    seconds: float | None = None
    began_at: datetime | None = None
    output: SafeString | str = ""
    name: str = ""
    kind: str = ""
    status: int | None = None
    median: float | None = None
    passes: int = 0
    tests: Tests | None = None
    links: Sequence[tuple[str, str]] = ()

    @property
    def is_open(self) -> bool:
        """Whether what it printed is shown at once."""
        return self.state != "passed"


@dataclass(frozen=True, slots=True)
class Frame:
    """What the rows of one list have in common.

    `is_running`: whether somebody still works on it. `is_waiting`: whether what has not begun will.
    """

    is_running: bool
    is_waiting: bool
    printed: Printed
    link: Link = lambda name: ""
    passes: Mapping[str, Sequence[float]] = field(default_factory=dict)


def rows(commands: Sequence[Result], results: Sequence[Result], frame: Frame) -> list[CommandRow]:
    """A row for each command in its order, also for those that have no result.

    Of a command `argv` is known, of one of a spec also `name` and `kind`; results are told apart by
    that name, else by their place. Those of the set-up come first, and stand for no command.
    """
    prepared = [_row(one, frame) for one in results if one.get("is_setup")]
    return prepared + _proven(commands, [one for one in results if not one.get("is_setup")], frame)


def _proven(
    commands: Sequence[Result], results: Sequence[Result], frame: Frame
) -> list[CommandRow]:
    known = {one["name"]: one for one in commands if one.get("name")}
    if not known:
        nothing: Result = {}
        pairs = zip_longest(commands, results, fillvalue=nothing)
        return [
            _row({**one, **given}, frame) if given else _to_come(one, frame) for one, given in pairs
        ]
    of_name = {one.get("command"): one for one in results}
    odd = [one for one in results if one.get("command") not in known]
    rows = [
        _row(of_name[name], frame) if name in of_name else _to_come(one, frame)
        for name, one in known.items()
    ]
    return rows + [_row(one, frame) for one in odd]


def passes(results: Iterable[Sequence[Result]]) -> dict[str, list[float]]:
    """How long each command took where it passed, by its name."""
    found: dict[str, list[float]] = {}
    for some in results:
        for one in some:
            if one.get("command") and not one["is_running"] and one["status"] == 0:
                found.setdefault(one["command"], []).append(one["seconds"])
    return found


def files(results: Iterable[Result]) -> set[str]:
    """The names of all files that commands printed into."""
    return {name for one in results for _, name in _files(one)}


def _files(result: Result) -> list[tuple[str, str]]:
    """Everything that it printed, and where they were told apart each output alone."""
    given = [("all", result["name"])]
    given += [(label, result.get(label) or "") for label in ("stdout", "stderr")]
    return [(label, name) for label, name in given if name]


def _to_come(command: Result, frame: Frame) -> CommandRow:
    text, name = command_rules.shown(command["argv"]), command.get("name", "")
    state = "waits" if frame.is_waiting else "was not run"
    return CommandRow(text, state, "", name=name, kind=command.get("kind", ""))


def _row(result: Result, frame: Frame) -> CommandRow:
    name = result.get("command") or ""
    if result.get("skipped"):
        text = command_rules.shown(result["argv"])
        return CommandRow(
            text, "skipped", "", result["skipped"], name=name, kind=result.get("kind", "")
        )
    times = frame.passes.get(name, ())
    known: dict[str, Any] = {
        "name": name,
        "kind": result.get("kind", ""),
        "status": result["status"],
        "median": median(times) if times else None,
        "passes": len(times),
        "tests": _tests(result.get("tests")),
        "links": [(label, frame.link(file)) for label, file in _files(result) if frame.link(file)],
    }
    text = command_rules.shown(result["argv"])
    if result["is_running"] and frame.is_running:
        began = datetime.fromisoformat(result["began_at"])
        output = terminal.render(_text(frame, result["name"]))
        return CommandRow(text, "running", "info", began_at=began, output=output, **known)
    if result["is_running"]:  # whoever ran it was stopped, or is gone
        return CommandRow(text, "interrupted", "", output=_cut(result["tail"]), **known)
    given = Checked(**{key: result[key] for key in _GIVEN})
    why = rules.why_failed([name] if name else result["argv"], given)
    state, tone = ("failed", "bad") if why else ("passed", "good")
    if why and result.get("allow_fail"):
        state, tone = "failed (allowed)", "warn"
    return CommandRow(
        text,
        state,
        tone,
        result.get("report") or ("" if name and given.status else why),  # its status is shown
        result["seconds"],
        output=_cut(result["tail"]),
        **known,
    )


def _tests(told: Mapping[str, Any] | None) -> Tests | None:
    if not told:
        return None
    failed = [str(name) for name in told.get("failed") or ()]
    passed, total = told.get("passed") or 0, told.get("total") or 0
    return Tests(failed[:TESTS], passed, total, max(0, len(failed) - TESTS))


def _cut(tail: str) -> SafeString | str:
    return terminal.render(tail[-TAIL_BYTES:]) if tail else ""


def _text(frame: Frame, name: str) -> str:
    """The end of what a command printed by now; could not tell is nothing."""
    try:
        found = frame.printed(name)
    except SeamError:
        return ""
    return found.data.decode(errors="replace") if found is not None else ""


def of_lab(lab: Lab, row: Any) -> Printed:
    """Reads the end of a file that a validation, an attempt or a check of an agent has."""
    folder = row.folder(lab.paths)
    return lambda name: lab.checks.output(folder, name, -TAIL_BYTES, TAIL_BYTES)
