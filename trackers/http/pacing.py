"""How often to ask, so that what is left of a quota lasts until there is a new one."""

from __future__ import annotations

import math
from datetime import timedelta

ZERO = timedelta(0)


def floor(limit: int, share: float) -> int:
    """How many calls of a window are kept for people."""
    return math.ceil(limit * share - 1e-9)


def pace(
    limit: int, remaining: int, share: float, reset_in: timedelta, calls: int, interval: timedelta
) -> timedelta:
    """The time between two polls that cost `calls` each; never less than the normal interval.

    What may be spent is what remains above the human's share; it is spread evenly over the rest
    of the window, so polling slows before it hurts. When less than one poll is left, the next
    one waits for the new window. Without a known quota pass a limit of 0.
    """
    if limit <= 0 or calls <= 0 or reset_in <= ZERO:
        return interval
    polls = (remaining - floor(limit, share)) // calls
    if polls < 1:
        return max(interval, reset_in)
    return max(interval, reset_in / polls)
