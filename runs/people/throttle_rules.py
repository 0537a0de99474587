"""How many wrong tries are let through: a few at once, then one at a time, never a lock for good.

What was tried is one moment: when it will be as if nothing had been tried. Each try moves it on
by the time that one try takes to come back.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from runs.core.budgets import ZERO


@dataclass(frozen=True, slots=True)
class Limit:
    """So many tries at once; all of them are back after `time`."""

    tries: int
    time: timedelta

    @property
    def each(self) -> timedelta:
        """The time after which one try is back."""
        return self.time / self.tries


def wait(now: datetime, clear_at: datetime | None, limit: Limit) -> timedelta:
    """How long until one more try is let through; zero for now, and never more than `each`."""
    return max(ZERO, _owed(now, clear_at, limit) + limit.each - limit.time)


def charged(now: datetime, clear_at: datetime | None, limit: Limit) -> datetime:
    """When all will be clear after one more try."""
    return now + _owed(now, clear_at, limit) + limit.each


def _owed(now: datetime, clear_at: datetime | None, limit: Limit) -> timedelta:
    """What is left of earlier tries. More than `time` can only come from a clock set back."""
    return min(limit.time, max(ZERO, clear_at - now)) if clear_at is not None else ZERO
