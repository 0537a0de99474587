"""`./lab loop PROJECT`: starts a loop on an issue or a prompt, follows it, and exits with its code.

What is typed and what is printed; the follower reads the loop. Ctrl-C once stops after the turn,
twice at once. Imports no Django, so that arguments are checked before anything is read.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Protocol

from runs.core.refusal import ActRefused
from runs.core.terminal import Printer, say
from runs.loops import options
from runs.loops.options import WrongOption
from runs.loops.rules import End
from runs.ralph import role_file
from runs.ralph.role_file import Roles, UnfitFile

if TYPE_CHECKING:
    from runs.loop_command.follower import Follower
    from runs.loop_command.forever import Forever

PROMPT_FILE = "PROMPT.md"
MOST_FILE = 512_000

LEFT = "A loop that was started goes on with the product; its page says how it stands."


@dataclass(slots=True)
class Command:
    """A loop that is wanted, and how it is told. `issue` and `prompt` empty: the first ready issue.

    `roles` are those of a file, for this run alone. `goes_on`: one loop after the other. `written`:
    the issue that was made of the prompt before.
    """

    left: ClassVar[str] = LEFT
    lost: ClassVar[str] = LEFT
    failed: ClassVar[int] = 1

    project: str
    issue: str
    continues: bool
    options: Mapping[str, Any]
    lines: Lines
    prompt: str = ""
    roles: Roles | None = None
    goes_on: bool = False
    written: str = ""
    has_waited: bool = False

    def begin(self) -> Follower | Forever | None:
        """Ask for the loop; None while the project is being cloned. Raises ActRefused."""
        first = self.one()
        if first is None or not self.goes_on:
            return first
        from runs.loop_command.forever import Forever

        follower = first

        def next_one(code: int) -> Follower | None:
            nonlocal follower
            if code == End.RESTART.code:  # it begins anew in place, and may have ended by now
                return follower
            found = self.after(code, follower.issue, follower.written)
            follower = found or follower
            return found

        return Forever(first, next_one)

    def one(self) -> Follower | None:
        """Ask for one loop; None while the project is being cloned. Raises ActRefused."""
        from runs.loop_command.follower import Follower

        follower = Follower.begin(self)
        if follower is None and not self.has_waited:
            say("The project is being cloned; its loop is started when that is done.")
            self.has_waited = True
        return follower

    def after(self, code: int, issue: str, written: str = "") -> Follower | None:
        """Ask for the loop after one on an issue that ended with a code.

        A prompt that was not completed is gone on with; else what was typed is asked for again, on
        the issue that was `written` of a prompt of which no loop came. Raises ActRefused.
        """
        if issue and self.prompt and code != End.COMPLETED.code:
            return replace(self, issue=issue, prompt="", continues=True).one()
        return replace(self, continues=False, written=written).one()


@dataclass(slots=True)
class Import:
    """The files of a Ralph project that are taken over."""

    left: ClassVar[str] = ""
    lost: ClassVar[str] = ""
    failed: ClassVar[int] = 1

    project: str
    folder: Path
    is_dry: bool

    def begin(self) -> int | None:
        """Import them; None while the project is being cloned. Raises ActRefused."""
        from runs.loop_command import follower

        return follower.import_files(self.project, self.folder, sys.stdout, is_dry=self.is_dry)


def read(argv: Sequence[str]) -> Command | Import:
    """What was typed. Raises ActRefused."""
    given = _parser().parse_args(argv)
    if given.import_from is not None:
        return Import(given.project, Path(given.import_from).resolve(), given.dry_run)
    typed = {name: getattr(given, name.replace("-", "_")) for name in options.OPTIONS}
    try:
        found = options.read(typed)
        roles = _roles(given.roles)
        if given.issue is not None and not given.issue.strip("# "):
            raise WrongOption("--issue is the number or the key of an issue")
        issue = (given.issue or "").strip().removeprefix("#")
        if given.forever and issue:
            raise WrongOption("--forever takes issue after issue, or a prompt; leave --issue out")
        prompt = _prompt(given)
    except WrongOption as error:
        raise ActRefused(f"Error: {error}. Nothing was started.") from error
    if given.persistent:
        found["is_persistent"] = True
    lines: Lines = (JsonLines if given.json else HumanLines)(sys.stdout)
    command = Command(given.project, issue, given.continues, found, lines, prompt, roles)
    command.goes_on = given.forever
    return command


def _prompt(given: argparse.Namespace) -> str:
    """The text to work on; empty: an issue. Raises WrongOption."""
    has_prompt = given.prompt is not None or given.prompt_file is not None
    if given.continues and has_prompt:
        raise WrongOption("--continue goes on with the prompt of before; leave the prompt out")
    if given.prompt is not None:
        return options.prompt(given.prompt, "--prompt")
    if given.prompt_file is not None:
        return options.prompt(_text(given.prompt_file), given.prompt_file)
    if given.issue is not None or given.continues or not Path(PROMPT_FILE).is_file():
        return ""
    found = options.prompt(_text(PROMPT_FILE), f"{PROMPT_FILE} of this folder")
    say(f"The prompt is {PROMPT_FILE} of this folder.")
    return found


def _roles(path: str | None) -> Roles | None:
    """The roles of a file. Raises WrongOption."""
    if path is None:
        return None
    try:
        found = role_file.read(_text(path), path)
    except UnfitFile as error:
        raise WrongOption(f"{path}: {str(error)[:1].lower()}{str(error)[1:]}") from error
    for line in (*found.changed, *found.not_taken):
        say(f"{path}: {line}.")
    return found


def _text(path: str) -> str:
    """What a file holds. Raises WrongOption."""
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MOST_FILE + 1)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise WrongOption(f"{path} could not be read: {said}") from error
    if len(raw) > MOST_FILE:
        raise WrongOption(f"{path} is larger than {MOST_FILE // 1000} kB")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise WrongOption(f"{path} is no text in UTF-8") from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./lab loop",
        description="Run a loop on one issue or one prompt in a project that works in loops: one turn "
        "of its agent after the other, each with a fresh context, until the work is done or a limit "
        "is reached.",
        epilog="Without --issue and a prompt it works on PROMPT.md of the current folder, and where "
        "there is none on the first ready issue. A prompt becomes an issue of the project, since work "
        "is claimed by one. TIME is 30s, 10m, 2h or a number of seconds. What is not given is as the "
        "project's loop settings say; what is given holds for this run alone. Exit codes: "
        "0 completed, 1 failed or stopped, 2 a limit was reached (or wrong arguments, which begin "
        "with Error), 3 a restart was asked for: the loop begins anew, and --continue follows it, "
        "130 interrupted, 129 terminal closed: the loop then goes on. Ctrl-C once stops after this "
        "turn, twice at once.",
        allow_abbrev=False,
    )
    parser.add_argument("project", help="the project's name")
    work = parser.add_mutually_exclusive_group()
    work.add_argument("--issue", metavar="KEY", help="the issue to work on")
    work.add_argument("--prompt", metavar="TEXT", help="what to work on")
    work.add_argument("--prompt-file", metavar="FILE", help="what to work on")
    parser.add_argument("--max-turns", metavar="N", help="end after so many turns; or none")
    parser.add_argument("--max-runtime", metavar="TIME", help="end after so long; or none")
    parser.add_argument("--max-cost", metavar="USD", help="end at so many US dollars; or none")
    parser.add_argument("--completion-word", metavar="WORD", help="what says that it is done")
    parser.add_argument("--cooldown", metavar="TIME", help="pause before each next turn")
    parser.add_argument(
        "--roles",
        metavar="FILE",
        help="its roles: the hats of a ralph.yml, or roles as the API has them (YAML, JSON, TOML)",
    )
    parser.add_argument(
        "--persistent", action="store_true", help="the completion word does not end it"
    )
    parser.add_argument(
        "--continue",
        dest="continues",
        action="store_true",
        help="follow the loop (of the issue) that runs, or go on with the last one that was not "
        "completed; turns and cost of one that was stopped or interrupted count on",
    )
    parser.add_argument(
        "--forever",
        action="store_true",
        help="when it has ended begin the next one: after a restart at once, after code 0 in "
        "5 minutes, else in 1 minute",
    )
    parser.add_argument(
        "--import",
        dest="import_from",
        metavar="FOLDER",
        help="start nothing: take over ralph.yml, PROMPT.md, memories and tasks of a folder",
    )
    parser.add_argument("--dry-run", action="store_true", help="with --import: only show it")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    return parser


@dataclass(frozen=True, slots=True)
class Told:
    """One entry of the timeline."""

    at: datetime
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that has ended. What its agent did not tell is None."""

    generation: int
    number: int
    role: str
    exit_code: int | None
    seconds: float | None
    commits: int
    cost: Decimal | None


@dataclass(frozen=True, slots=True)
class Summary:
    """How the loop ended. `cost` is None where no turn told one."""

    run: int
    code: int
    reason: str
    turns: int
    commits: int
    cost: Decimal | None
    took: timedelta


class Lines(Protocol):
    """Where a loop is told to."""

    def opened(self, run: int, issue: str, project: str) -> None: ...
    def told(self, one: Told) -> None: ...
    def turn(self, turn: Turn) -> None: ...
    def restarted(self, run: int, generation: int) -> None: ...
    def summary(self, summary: Summary) -> None: ...


class HumanLines:
    """For a terminal or a log: the time of the machine, then a sentence."""

    def __init__(self, out: IO[str]) -> None:
        self._printer = Printer(out)

    def opened(self, run: int, issue: str, project: str) -> None:
        self._printer.line(f"Run {run} of {project}: a loop on issue {issue}.")

    def told(self, one: Told) -> None:
        self._printer.line(f"{one.at.astimezone():%H:%M:%S}  {one.text}")

    def turn(self, turn: Turn) -> None:
        """The timeline says it already."""

    def restarted(self, run: int, generation: int) -> None:
        """The timeline says it already."""

    def summary(self, summary: Summary) -> None:
        minutes, seconds = divmod(int(summary.took.total_seconds()), 60)
        rows = {
            "ended": f"{summary.code}: {summary.reason}",
            "turns": f"{summary.turns}",
            "commits": f"{summary.commits}",
            "cost": "not told" if summary.cost is None else f"${summary.cost:.2f}",
            "took": f"{minutes} min {seconds} s",
        }
        self._printer.line("")
        for name, text in rows.items():
            self._printer.line(f"{name:<8} {text}")


class JsonLines:
    """One object a line; `event` says what it is."""

    def __init__(self, out: IO[str]) -> None:
        self._printer = Printer(out)

    def opened(self, run: int, issue: str, project: str) -> None:
        self._write("opened", {"run": run, "issue": issue, "project": project})

    def told(self, one: Told) -> None:
        self._write("notice", asdict(one))

    def turn(self, turn: Turn) -> None:
        self._write("turn", asdict(turn))

    def restarted(self, run: int, generation: int) -> None:
        self._write("restarted", {"run": run, "generation": generation, "code": End.RESTART.code})

    def summary(self, summary: Summary) -> None:
        values = asdict(summary)
        took = values.pop("took").total_seconds()
        self._write("ended", {**values, "seconds": took})

    def _write(self, event: str, values: Mapping[str, Any]) -> None:
        text = json.dumps({"event": event, **values}, default=_plain, ensure_ascii=False)
        self._printer.line(text)


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{value!r} has no form in JSON")
