"""Which adapter serves which kind of tracker. Adapters are made on demand, never at import."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from trackers.base import Tracker


def _wall_clock() -> datetime:
    return datetime.now(UTC)


def tracker(kind: str, now: Callable[[], datetime] = _wall_clock) -> Tracker | None:
    """The adapter of a kind, or None for a kind that labsite cannot drive (LAB-64)."""
    if kind == "builtin":
        # Here, not above: its models need the app registry, which imports come before.
        from trackers.builtin.adapter import BuiltinTracker

        return BuiltinTracker(now)
    return None
