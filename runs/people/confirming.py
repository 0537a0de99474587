"""How long it counts that a person has shown who they are."""

from __future__ import annotations

from datetime import datetime, timedelta

from runs.core.budgets import ZERO

LASTS = timedelta(minutes=10)


def is_fresh(now: datetime, confirmed_at: datetime | None) -> bool:
    """Whether no question is needed. A moment to come is from a clock that was set back: ask."""
    return confirmed_at is not None and ZERO <= now - confirmed_at < LASTS
