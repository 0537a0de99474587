"""Commands that prove a commit: how they are written down, run, and what one of them gave."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from runs.core.ports import Output

MOST_COMMANDS = 50
LINE_CHARACTERS = 1000
# What only a shell reads. Handed to a program as an argument it would silently mean something else.
_FOR_A_SHELL = frozenset({"&&", "||", "|", ";", "&", "<", ">", ">>", "2>", "2>&1", "<<"})


class UnfitCommands(ValueError):
    """The text is no list of commands; says in which line and what to write in its place."""


def read_commands(text: str) -> list[list[str]]:
    """One argument list a line; empty lines and lines that begin with # are left out.

    Raises UnfitCommands.
    """
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if line and not line.startswith("#"):
            found.append(_argv(line, number))
    if len(found) > MOST_COMMANDS:
        raise UnfitCommands(f"Write at most {MOST_COMMANDS} commands; these are {len(found)}.")
    return found


def shown(argv: Sequence[str]) -> str:
    """An argument list as a person would type it."""
    return shlex.join(argv)


def _argv(line: str, number: int) -> list[str]:
    if len(line) > LINE_CHARACTERS:
        raise UnfitCommands(f"Line {number} is longer than {LINE_CHARACTERS} characters.")
    if not line.isprintable():
        raise UnfitCommands(f"Line {number} holds a character that cannot be seen.")
    try:
        raw, argv = shlex.split(line, posix=False), shlex.split(line)
    except ValueError as error:
        why = "a quotation is not closed" if "quotation" in str(error) else str(error)
        raise UnfitCommands(f"Line {number}: {why}.") from error
    odd = next((word for word in raw if word in _FOR_A_SHELL or word.endswith(";")), "")
    if odd:
        raise UnfitCommands(
            f"Line {number}: no shell reads this, so {odd} would be an argument. Write one command "
            "a line, or sh -c '…'."
        )
    if "=" in argv[0] and "/" not in argv[0].partition("=")[0]:
        raise UnfitCommands(f"Line {number}: to set a variable write env {line[:40]}…")
    if not argv[0]:
        raise UnfitCommands(f"Line {number}: the name of the program is empty.")
    return argv


@dataclass(frozen=True, slots=True)
class Check:
    """One command to be run. What it prints goes into the file `name` of `folder`.

    `mark` is carried by every process that it starts, `secrets` are taken out of what it prints.
    With `errors` its standard error goes into a file of its own. `given` is a file that it reads as
    its standard input. `env` adds to its environment; variables of the operator whose names begin
    as one of `without` are left out of it. With `whole` both outputs go into this file too, in
    their order. Of commands with the same `lock` file one runs at a time; waiting for that is no
    part of its time. Whoever holds it for longer than its command may take is told as `trouble`.
    """

    argv: Sequence[str]
    cwd: Path
    folder: Path
    name: str
    mark: str
    limit: timedelta
    secrets: Sequence[str] = field(default=(), repr=False)
    errors: str = ""
    given: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    without: Sequence[str] = ()
    whole: str = ""
    lock: Path | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """What one command gave. `status` is None when a signal or we ended it, or it never ran.

    `tail` is the end of what it printed, of `whole` where there is one; `error_tail` of its
    standard error, where that is apart.
    """

    status: int | None
    seconds: float
    tail: str = ""
    signal: int | None = None
    is_over_time: bool = False
    is_given_up: bool = False
    trouble: str = ""
    error_tail: str = ""


class Checks(Protocol):
    """The commands of a project, run on this machine without the product's own secrets."""

    def run(self, check: Check, goes_on: Callable[[], bool]) -> Checked:
        """Run one command to its end, at most for its limit. Raises SeamError.

        `goes_on` is asked every second or so; once it says no, the command is ended. Whatever it
        started has ended when this returns. A program that is not there is an answer, not an error.
        """

    def end(self, mark: str) -> None:
        """End every process that carries the mark; idempotent. Raises SeamError if one survives."""

    def output(self, folder: Path, name: str, start: int, limit: int) -> Output | None:
        """What a command printed, while it runs too, from byte `start` on; negative: from the end."""
