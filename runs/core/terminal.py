"""What commands print, and who gave them. Imports no Django, so that arguments are checked first."""

from __future__ import annotations

import contextlib
import getpass
import sys
from typing import IO

from trackers import plain

CODE_ARGUMENTS, CODE_INTERRUPTED, CODE_HUNG_UP = 2, 130, 129


class Printer:
    """Writes lines; when nobody reads them any more the command goes on all the same."""

    def __init__(self, out: IO[str]) -> None:
        self._out: IO[str] | None = out

    def line(self, text: str) -> None:
        if self._out is None:
            return
        try:
            # A terminal may not know every letter; that ends no command.
            letters = getattr(self._out, "encoding", None) or "utf-8"
            self._out.write(f"{plain.text(text).encode(letters, 'replace').decode(letters)}\n")
            self._out.flush()
        except OSError:
            self._out = None


def say(text: str) -> None:
    """One line for the log of the terminal; results alone go to standard output.

    A terminal that was closed must not end the product's shutdown half way.
    """
    with contextlib.suppress(OSError):
        print(plain.text(text), file=sys.stderr, flush=True)


def who() -> str:
    """The name that the timeline keeps for acts of a command."""
    name = ""
    with contextlib.suppress(OSError, KeyError):
        name = getpass.getuser()
    return f"{name or 'somebody'} at the command line"
