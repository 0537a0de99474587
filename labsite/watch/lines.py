"""What the command prints of a session: plain lines on a terminal, JSON objects for machines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import IO, Any, Protocol

from labsite.beside.printer import Printer


@dataclass(frozen=True, slots=True)
class Told:
    """One entry of the timeline."""

    at: datetime
    kind: str
    text: str
    issue: str = ""
    run: int | None = None


@dataclass(frozen=True, slots=True)
class State:
    """How the session stands, where that changed.

    `held`: why nothing starts although something is ready. `paused`: that the project is paused,
    and what to do about it.
    """

    phase: str
    completed: int
    failed: int
    active: int
    threshold: int | None
    poll_failures: int
    held: str = ""
    paused: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """How the session ended. `validations` says of each what came of it, in words."""

    session: int
    code: int
    reason: str
    completed: int
    failed: int
    unstarted: int
    stopped: int
    validations: Sequence[str]
    took: timedelta


class Lines(Protocol):
    """Where a session is told to."""

    def opened(self, session: int, project: str) -> None: ...
    def told(self, one: Told) -> None: ...
    def state(self, state: State) -> None: ...
    def summary(self, summary: Summary) -> None: ...


class HumanLines:
    """For a terminal or a log: the time of the machine, then a sentence."""

    def __init__(self, out: IO[str]) -> None:
        self._printer = Printer(out)
        self._held = ""

    def opened(self, session: int, project: str) -> None:
        self._printer.line(f"Watch session {session} of {project}.")

    def told(self, one: Told) -> None:
        about = f"issue {one.issue}: " if one.issue else ""
        self._printer.line(f"{one.at.astimezone():%H:%M:%S}  {about}{one.text}")

    def state(self, state: State) -> None:
        """Only what no entry of the timeline says: why nothing starts."""
        held = f"Something is ready, and nothing starts. {state.held}" if state.held else ""
        held = state.paused or held
        if held and held != self._held:
            self._printer.line(held)
        self._held = held

    def summary(self, summary: Summary) -> None:
        minutes, seconds = divmod(int(summary.took.total_seconds()), 60)
        passed = summary.completed - summary.failed
        rest = f", {summary.unstarted} could not start" if summary.unstarted else ""
        rest += f", {summary.stopped} stopped by a person" if summary.stopped else ""
        never = "never" if summary.completed else "never, since nothing was completed"
        rows = {
            "ended": f"{summary.code}: {summary.reason}",
            "issues": f"{summary.completed} completed: {passed} passed, {summary.failed} failed{rest}",
            "validated": "; ".join(summary.validations) or never,
            "took": f"{minutes} min {seconds} s",
        }
        self._printer.line("")
        for name, text in rows.items():
            self._printer.line(f"{name:<10} {text}")


class JsonLines:
    """One object a line; `event` says what it is."""

    def __init__(self, out: IO[str]) -> None:
        self._printer = Printer(out)

    def opened(self, session: int, project: str) -> None:
        self._write("opened", {"session": session, "project": project})

    def told(self, one: Told) -> None:
        self._write("notice", asdict(one))

    def state(self, state: State) -> None:
        self._write("state", asdict(state))

    def summary(self, summary: Summary) -> None:
        values = asdict(summary)
        took = values.pop("took").total_seconds()
        self._write("ended", {**values, "validations": list(summary.validations), "seconds": took})

    def _write(self, event: str, values: Mapping[str, Any]) -> None:
        text = json.dumps({"event": event, **values}, default=_plain, ensure_ascii=False)
        self._printer.line(text)


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{value!r} has no form in JSON")
