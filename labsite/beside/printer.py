"""Lines of a command on its standard output."""

from __future__ import annotations

from typing import IO

from trackers import plain


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
