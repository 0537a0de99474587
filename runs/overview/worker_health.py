"""How the worker is doing, as far as the web process can tell from the last tick."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from runs.core import budgets
from runs.models import Host, Settings


@dataclass(frozen=True, slots=True)
class TickAge:
    """When a worker ticked last, whether that is too long ago, and what went wrong then."""

    at: datetime | None
    is_late: bool
    error: str
    age: timedelta | None = None


def last_tick(now: datetime, host: str, interval: timedelta | None = None) -> TickAge:
    """The age of the last tick of a host. One query when the interval is given, else two.

    Where that has no worker it is the newest tick of any: how each of the others does is told on the
    page Hosts and by the metrics, and one that is away says nothing of this machine.
    """
    if interval is None:
        interval = Settings.current().tick_interval
    found = Host.objects.filter(removed_at=None).only("name", "last_tick_at", "last_error")
    hosts = [one for one in found if one.name == host] or list(found)
    at = max((one.last_tick_at for one in hosts if one.last_tick_at), default=None)
    return TickAge(
        at=at,
        is_late=budgets.is_late(now, at, interval),
        error=" ".join(one.last_error for one in hosts if one.last_error),
        age=None if at is None else budgets.age(now, at),
    )
