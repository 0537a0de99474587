"""`./lab watch PROJECT`: opens a watch session, follows it to its end, and exits with its code.

What is typed and what is printed; the follower reads the session. Ctrl-C once drains, twice
aborts, three times kills. Imports no Django, so that arguments are checked before anything is read.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import IO, TYPE_CHECKING, Any, ClassVar, Protocol

from runs.core.refusal import ActRefused
from runs.core.terminal import Printer, say
from runs.on_request import switch_options
from runs.watch.session import EVERY, LIMIT, Terms, WrongTerms, read_terms

if TYPE_CHECKING:
    from runs.watch.follower import Follower

LEFT = "A session that was opened goes on with the product; its page says how it stands."


@dataclass(slots=True)
class Command:
    """A session that is wanted, and how it is told."""

    left: ClassVar[str] = LEFT
    lost: ClassVar[str] = LEFT
    failed: ClassVar[int] = 1

    project: str
    terms: Terms
    lines: Lines
    has_waited: bool = False

    def begin(self) -> Follower | None:
        """Open the session; None while the project is being cloned. Raises ActRefused."""
        from runs.watch.follower import Follower

        follower = Follower.open(self.project, self.terms, self.lines)
        if follower is None and not self.has_waited:
            say("The project is being cloned; its session is opened when that is done.")
            self.has_waited = True
        return follower


def read(argv: Sequence[str]) -> Command:
    """What was typed. Raises ActRefused."""
    given = _parser().parse_args(argv)
    try:
        terms = read_terms(given.watch, _typed(given.max_issues), _typed(given.validate_every))
    except WrongTerms as error:
        raise ActRefused(error.text) from error
    terms = replace(terms, switches=switch_options.read(given))
    return Command(given.project, terms, (JsonLines if given.json else HumanLines)(sys.stdout))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./lab watch",
        description="Work on a project's ready issues by itself, and exit with how that went.",
        epilog="Exit codes: 0 all passed, 1 a validation or an issue failed, 2 wrong arguments, "
        "3 the tracker could not be read three times in a row, 130 interrupted or a run was stopped by a "
        "person, 129 terminal closed: "
        "the session then goes on. Ctrl-C once drains, twice aborts, three times kills.",
        allow_abbrev=False,
    )
    parser.add_argument("project", help="the project's name")
    parser.add_argument(
        "--watch", action="store_true", help="wait for new issues instead of ending without any"
    )
    parser.add_argument(f"--{LIMIT}", metavar="N", help="end after so many issues")
    parser.add_argument(
        f"--{EVERY}", metavar="N", help="validate after so many issues (10 with --watch)"
    )
    switch_options.add(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    return parser


def _typed(text: str | None) -> str | None:
    """An empty argument was typed too, and is no number."""
    return text if text is None else text.strip() or "none"


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
