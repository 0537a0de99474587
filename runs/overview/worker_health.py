"""How the worker is doing, as far as the web process can tell from the last tick."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from runs.core import budgets
from runs.models import Host, Settings


@dataclass(frozen=True, slots=True)
class TickAge:
    """When the slowest host ticked last, whether that is too long ago, and what went wrong then."""

    at: datetime | None
    is_late: bool
    error: str
    age: timedelta | None = None


def last_tick(now: datetime, interval: timedelta | None = None) -> TickAge:
    """The age of the last tick. One query when the interval is given, else two.

    With several hosts it is the one that ticked longest ago; with none, nothing has ever ticked.
    """
    if interval is None:
        interval = Settings.current().tick_interval
    hosts = list(Host.objects.only("last_tick_at", "last_error"))
    ticks = [host.last_tick_at for host in hosts]
    at = None if None in ticks else min((tick for tick in ticks if tick), default=None)
    return TickAge(
        at=at,
        is_late=budgets.is_late(now, at, interval),
        error=" ".join(host.last_error for host in hosts if host.last_error),
        age=None if at is None else budgets.age(now, at),
    )
