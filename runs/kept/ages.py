"""The age of parked work in one short word (LAB-120)."""

from __future__ import annotations

from datetime import timedelta

_UNITS = ((7 * 86400, "w"), (86400, "d"), (3600, "h"), (60, "m"))


def short(length: timedelta) -> str:
    """Under a minute or negative "just now", then minutes, hours, days, from 7 days weeks."""
    seconds = int(length.total_seconds())
    for size, letter in _UNITS:
        if seconds >= size:
            return f"{seconds // size}{letter}"
    return "just now"
