"""Time as rules see it: ages, budgets, next-due times. All against a clock passed in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

ZERO = timedelta(0)
JUMP = timedelta(seconds=10)
LIVED_STEP, LIVED_MOST = 60.0, 3600.0


@dataclass(frozen=True, slots=True)
class Spent:
    """One dimension of a budget, used and limit, as the run page shows it."""

    used: timedelta
    limit: timedelta

    @property
    def share(self) -> float:
        """The used part between 0 and 1."""
        return min(1.0, self.used / self.limit) if self.limit > ZERO else 1.0

    @property
    def is_low(self) -> bool:
        """True when less than a fifth is left, so that the page can warn."""
        return self.share >= 0.8


def age(now: datetime, since: datetime | None) -> timedelta:
    """The time since a moment, never negative, whatever the clock did."""
    return max(ZERO, now - since) if since is not None else ZERO


def is_due(now: datetime, next_at: datetime | None, interval: timedelta) -> bool:
    """Whether an activity with this interval is due.

    A stored time that lies further ahead than one interval can only come from a clock that was
    set back since; it counts as due, or the product would sleep until the old time comes again.
    """
    return next_at is None or now >= next_at or next_at - now > interval


def next_turn(now: datetime, due_at: datetime, interval: timedelta) -> datetime:
    """When it is due after a turn now that was due at `due_at`: an interval after that time.

    So a turn that comes a little late makes no other late. One that comes much too late, or from
    a wrong clock, starts the intervals anew.
    """
    after = due_at + interval
    return after if now < after <= now + interval else now + interval


def is_late(now: datetime, last_at: datetime | None, interval: timedelta) -> bool:
    """Whether the last tick is older than two intervals, so that a page must say so."""
    return last_at is None or age(now, last_at) > 2 * interval


@dataclass(frozen=True, slots=True)
class ClockReading:
    """The machine's clock beside one that nobody can set: in which boot, how far apart they are."""

    boot: str
    apart: float


def lived(before: ClockReading, counted_at: float | None, boot: str, at: float) -> float | None:
    """Seconds to add to those that labsite lived through; None while too few have passed.

    Of a time in which nobody counted no more than `LIVED_MOST` counts, and none across a boot.
    """
    if counted_at is None or not boot or before.boot != boot or at < counted_at:
        return 0.0
    passed = at - counted_at
    return min(passed, LIVED_MOST) if passed >= LIVED_STEP else None


def jump(before: ClockReading, after: ClockReading) -> timedelta:
    """How far the clock was set between two readings; zero when that is little or unknown.

    Little is what a clock that is corrected slowly drifts; another boot cannot be compared.
    """
    moved = timedelta(seconds=after.apart - before.apart)
    is_known = bool(after.boot) and before.boot == after.boot
    return moved if is_known and abs(moved) > JUMP else ZERO


_TYPED = re.compile(r"([0-9]{1,9})([smh]?)", re.ASCII)
_TYPED_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}
_UNITS = ((7 * 86400, "w"), (86400, "d"), (3600, "h"), (60, "m"))


def short(length: timedelta) -> str:
    """Under a minute or negative "just now", then minutes, hours, days, from 7 days weeks."""
    seconds = int(length.total_seconds())
    for size, letter in _UNITS:
        if seconds >= size:
            return f"{seconds // size}{letter}"
    return "just now"


def typed_seconds(text: str) -> int | None:
    """The seconds of a length as it is typed: 30s, 10m, 2h or a number; None for what is none."""
    found = _TYPED.fullmatch(text.strip())
    return int(found[1]) * _TYPED_UNITS[found[2]] if found else None
