"""One call of `bd`: the command line, its limits, and what an answer means.

Texts of people never become options: values go in as `--name=value`, keys and titles after `--`,
and there is no shell. `bd` is told by its environment not to start a daemon, which versions that
have none do not mind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from trackers.beads import reading
from trackers.errors import NotFound, NotUnderstood, Refused, Unreachable

POLL_SECONDS = 8.0  # below the deadline of a tick
SECONDS = 30.0
LONGEST_ARGUMENT = 100_000  # the system takes 131072 bytes in one argument
QUIET = {
    "BEADS_NO_DAEMON": "1",
    "BEADS_AUTO_START_DAEMON": "false",
    "BD_NON_INTERACTIVE": "1",
    "BD_DISABLE_METRICS": "1",
    "DO_NOT_TRACK": "1",
    "NO_COLOR": "1",
}
_STRANGE = ("unknown flag", "unknown command", "unknown shorthand")
_ABSENT = ("not found", "no issue found", "no issues found", "no matching issue")
_PASSING = re.compile(r"\block|\bbusy\b|timed? ?out|\bconnect|try again")
_NOWHERE = (
    "no beads database",
    "no active beads workspace",
    "beads not initialized",
    "run 'bd init'",
)


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that ended by itself; any status is an answer.

    `is_cut`: it printed more than is read, so `out` is not all of it.
    """

    status: int
    out: str
    err: str
    is_cut: bool = False


class Runner(Protocol):
    """Runs one command in a folder, without a shell."""

    def __call__(
        self, argv: Sequence[str], cwd: Path, seconds: float, env: Mapping[str, str]
    ) -> Ended:
        """Run it with these additions to the environment.

        Raises Refused when the program is not there, Unreachable when it gave no answer in time.
        """


class Bd:
    """The `bd` of one machine."""

    def __init__(self, run: Runner, program: str = "bd") -> None:
        self._run = run
        self._program = program

    def ask(
        self, root: str, command: Sequence[str], *words: str, seconds: float = SECONDS, by: str = ""
    ) -> str:
        """What a command printed as JSON. `words` are keys and texts, never options."""
        return self._ended(root, command, words, seconds, by).out

    def write(self, root: str, command: Sequence[str], *words: str, by: str = "") -> str:
        """The same for a change. Some versions tell of a refusal on stderr only, with status 0."""
        ended = self._ended(root, command, words, SECONDS, by, is_change=True)
        if not ended.out.strip():
            said = _said(ended) or "It gave no reason."
            raise Refused(f"{_name(command)} did nothing: {said}")
        return ended.out

    def _ended(
        self,
        root: str,
        command: Sequence[str],
        words: Sequence[str],
        seconds: float,
        by: str,
        *,
        is_change: bool = False,
    ) -> Ended:
        folder = _folder(root)
        argv = [self._program, *command, "--json", *(["--", *words] if words else [])]
        for word in argv:
            _check(word)
        env = {**QUIET, "BEADS_DIR": str(folder / ".beads")}
        if by:
            _check(by)
            env["BD_ACTOR"] = by
        ended = self._run(argv, folder, seconds, env)
        if ended.status != 0:
            raise _failure(command, ended, names_issue=bool(words), is_change=is_change)
        if ended.is_cut:
            raise NotUnderstood(f"{_name(command)} printed more than labsite reads.")
        return ended

    def version(self, root: str) -> str:
        """The first line of `bd version`."""
        folder = _folder(root)
        ended = self._run([self._program, "version"], folder, POLL_SECONDS, QUIET)
        if ended.status != 0:
            raise _failure(["version"], ended)
        return reading.shown(ended.out.strip().partition("\n")[0])


def _folder(root: str) -> Path:
    """The folder of a root. Raises Refused when no `.beads` is in it."""
    folder = Path(root)
    if not folder.is_absolute() or "\0" in root:
        raise Refused("The folder of a beads project has to be an absolute path.")
    try:
        is_there = (folder / ".beads").is_dir()
    except OSError as error:
        raise Refused(f"{folder} cannot be read: {error.strerror}.") from error
    if not is_there:
        raise Refused(f"There is no folder .beads in {folder}. Run bd init there.")
    return folder


def _check(word: str) -> None:
    """Raises Refused for a text that no program can be given."""
    if "\0" in word:
        raise Refused("A text holds a zero character, which bd cannot be given.")
    try:
        size = len(word.encode())
    except UnicodeEncodeError as error:
        raise Refused("A text holds characters that are not valid, so bd was not asked.") from error
    if size > LONGEST_ARGUMENT:
        raise Refused(f"A text is longer than {LONGEST_ARGUMENT} bytes, which bd cannot be given.")


def _failure(
    command: Sequence[str], ended: Ended, *, names_issue: bool = False, is_change: bool = False
) -> NotFound | Refused | Unreachable | NotUnderstood:
    """What a status other than 0 means; the words are bd's own."""
    said = _said(ended)
    name, low = _name(command), said.casefold()
    if any(part in low for part in _STRANGE):
        return NotUnderstood(f"This version of bd does not know what labsite asked of it: {said}")
    if any(part in low for part in _NOWHERE):
        return Refused(f"{name} found no issues to work with: {said}")
    if names_issue and any(part in low for part in _ABSENT):
        return NotFound(said)
    if is_change and not _PASSING.search(low):
        return Refused(f"{name} was refused: {said or f'exit status {ended.status}'}")
    return Unreachable(f"{name} failed: {said or f'exit status {ended.status}'}")


def _said(ended: Ended) -> str:
    """bd's own words. With --json newer versions print an error as an object, on either pipe."""
    for text in (ended.err, ended.out):
        try:
            told = reading.value(text)
        except NotUnderstood:
            continue
        if isinstance(told, dict) and isinstance(told.get("error"), str):
            return reading.shown(told["error"])
    return reading.shown((ended.err.strip() or ended.out).removeprefix("Error: "))


def _name(command: Sequence[str]) -> str:
    return " ".join(["bd", *(word for word in command if not word.startswith("-"))])
