"""Limits concurrent calls per host, and those of polling a bit lower."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from trackers.account import Purpose

AT_ONCE = 4
POLLS_AT_ONCE = 3


@dataclass(frozen=True)
class _Slots:
    calls: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(AT_ONCE))
    polls: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(POLLS_AT_ONCE))


class HostLimits:
    """One pair of semaphores a host; a call waits for its slot, but never beyond its deadline."""

    def __init__(self, steady: Callable[[], float]) -> None:
        self._steady = steady
        self._slots: dict[str, _Slots] = {}
        self._lock = threading.Lock()

    @contextmanager
    def slot(self, host: str, purpose: Purpose, deadline: float) -> Iterator[bool]:
        """Yields whether a slot was free in time. Calls of people pass where polls wait."""
        with self._lock:
            slots = self._slots.setdefault(host, _Slots())
        wanted = (slots.polls, slots.calls) if purpose.is_polling else (slots.calls,)
        held: list[threading.Semaphore] = []
        try:
            for each in wanted:
                if not each.acquire(timeout=max(0.0, deadline - self._steady())):
                    break
                held.append(each)
            yield len(held) == len(wanted)
        finally:
            for each in held:
                each.release()
