"""Follows a program to its end: hears what it prints, asks now and then whether it is still wanted."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable
from dataclasses import dataclass

from runs.machine import shell

ASK_EVERY = 1.0


@dataclass(frozen=True, slots=True)
class Followed:
    """How a program ended that was followed; its status is negative after a signal.

    `was_in_time` and `was_wanted`: whether it ended by itself, or why it was ended.
    """

    status: int
    was_in_time: bool = True
    was_wanted: bool = True


def follow(
    process: shell.Process,
    *,
    timeout: float,
    hear: Callable[[bytes], None],
    goes_on: Callable[[], bool],
    every: float = ASK_EVERY,
    hear_errors: Callable[[bytes], None] | None = None,
) -> Followed:
    """Hear a program until it has ended. Its whole group has ended when this returns.

    `hear_errors` hears its standard error where that is a pipe of its own. `goes_on` is asked before anything else and then every so many seconds. Time that the machine
    slept does not count.
    """
    end = time.monotonic() + timeout
    asks_at = 0.0
    in_time = wanted = True
    pipes = _Pipes(process, hear, hear_errors or hear)
    try:
        while process.poll() is None and in_time and wanted:
            if time.monotonic() >= asks_at:
                wanted = goes_on()
                asks_at = time.monotonic() + every
            if wanted:
                pipes.read(shell.STEP)
            in_time = time.monotonic() < end
        if process.poll() is not None:
            in_time = wanted = True
    finally:
        shell.end_group(process)
        pipes.close()
    return Followed(process.returncode, in_time, wanted)


class _Pipes:
    """The pipes of a program. What others hold open is not waited for."""

    def __init__(
        self,
        process: shell.Process,
        hear: Callable[[bytes], None],
        hear_errors: Callable[[bytes], None],
    ) -> None:
        heard = ((process.stdout, hear), (process.stderr, hear_errors))
        self._files = [pipe for pipe, _ in heard if pipe is not None]
        self._selector = selectors.DefaultSelector()
        for pipe, hears in heard:
            if pipe is not None:
                self._selector.register(pipe, selectors.EVENT_READ, hears)

    def read(self, seconds: float) -> None:
        """Hear what there is, waiting at most so long."""
        if not self._is_open:
            time.sleep(seconds)
            return
        for key, _ in self._selector.select(seconds):
            piece = os.read(key.fd, shell.PIECE)
            if piece:
                key.data(piece)
            else:
                self._selector.unregister(key.fileobj)

    def close(self) -> None:
        """Hear what is left in the pipes: all that is in them now, and more for at most a moment."""
        end = time.monotonic() + shell.DRAIN
        is_late = False
        while self._is_open and not is_late and self._selector.select(0.0):
            self.read(0.0)
            is_late = time.monotonic() >= end
        self._selector.close()
        for pipe in self._files:
            pipe.close()

    @property
    def _is_open(self) -> bool:
        return bool(self._selector.get_map())
