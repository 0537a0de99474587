"""When the shared repository of a project is packed."""

from __future__ import annotations

from datetime import datetime, timedelta

EVERY = timedelta(days=1)
MOST_LOOSE = 1000
MOST_PACKS = 20


def is_time(now: datetime, packed_at: datetime | None) -> bool:
    """Return whether it is long enough ago; also where the clock was put back since."""
    return packed_at is None or not timedelta(0) <= now - packed_at < EVERY


def has_room(size: int, free: int | None) -> bool:
    """Return whether a disk holds a second copy of so many bytes, and half as much for agents."""
    return free is not None and free >= 1.5 * size


def is_scattered(loose: int, packs: int) -> bool:
    """Return whether objects lie in so many files that packing them is worth its time."""
    return loose > MOST_LOOSE or packs > MOST_PACKS
