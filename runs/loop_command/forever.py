"""`./lab loop --forever`: when a loop has ended the next one is begun, after a pause by its code."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from runs.core.refusal import ActRefused
from runs.core.terminal import CODE_INTERRUPTED, say
from runs.loops import rules

NEXT = "The next loop begins in {} s. Ctrl-C ends this."
REFUSED_CODE = 2


class Followed(Protocol):
    """A loop as it is followed."""

    def press(self, times: int) -> int | None: ...
    def news(self) -> int | None: ...
    def leave(self) -> None: ...


class Forever:
    """Follows loop after loop until somebody presses Ctrl-C; the code is then that of the last one.

    `begin` is told the code of the loop before; None: not yet, it is asked again.
    """

    def __init__(
        self,
        first: Followed,
        begin: Callable[[int], Followed | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._followed: Followed | None = first
        self._last = first
        self._begin = begin
        self._clock = clock
        self._due = 0.0
        self._code = 0
        self._is_pressed = False

    def press(self, times: int) -> int | None:
        """Stop the loop that runs; between two loops there is none, so that this is the end."""
        self._is_pressed = True
        if self._followed is not None:
            return self._followed.press(times)
        self._last.leave()
        return CODE_INTERRUPTED

    def news(self) -> int | None:
        """Tell what is new; a code only once somebody has pressed."""
        if self._followed is None:
            if self._clock() >= self._due:
                self._begin_next()
            return None
        code = self._followed.news()
        if code is None or self._is_pressed:
            return code
        self._rest(code)
        return None

    def _begin_next(self) -> None:
        try:
            self._followed = self._begin(self._code)
            self._last = self._followed or self._last
        except ActRefused as refused:
            say(refused.text)
            self._pause(REFUSED_CODE)

    def _rest(self, code: int) -> None:
        self._followed, self._code = None, code
        self._pause(code)

    def _pause(self, code: int) -> None:
        pause = rules.pause_before_restart(code).total_seconds()
        self._due = self._clock() + pause
        if pause:
            say(NEXT.format(int(pause)))
