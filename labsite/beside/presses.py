"""Ctrl-C and the closed terminal of a command that follows the product, heeded by its loop."""

from __future__ import annotations

import signal

CODE_INTERRUPTED = 130
CODE_HUNG_UP = 129


class Presses:
    """Counts stop signals; the loop heeds them, so that nothing is done inside a handler."""

    def __init__(self) -> None:
        self.count = 0
        self.is_hung_up = False
        self._heeded = 0

    def listen(self) -> None:
        """Heed Ctrl-C and the like, and a closed terminal unless that was to be ignored (nohup)."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self._press())
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            signal.signal(signal.SIGHUP, lambda *_: self._hang_up())

    def take(self) -> int:
        """How often it was pressed by now; 0 when there was none since the last call."""
        if self._heeded == self.count:
            return 0
        self._heeded = self.count
        return self.count

    def _press(self) -> None:
        self.count += 1

    def _hang_up(self) -> None:
        self.is_hung_up = True
