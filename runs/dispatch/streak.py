"""How an outcome moves a project's failure streak, and when automatic work pauses."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from runs.core.states import GOOD, NEUTRAL, Outcome

PAUSE_AT = 3
_FIRST_WAIT = timedelta(minutes=1)
_LONGEST_WAIT = timedelta(hours=1)


class Move(StrEnum):
    """What one ended run does to the streak."""

    ADDS = "adds"
    CLEARS = "clears"
    LEAVES = "leaves"


def move(outcome: Outcome, did_start: bool) -> Move:
    """Every failed run adds one, success and no work needed clear, the rest leaves it.

    A run that never came to life is no failed run: nothing was spent on it.
    """
    if outcome in GOOD:
        return Move.CLEARS
    if outcome in NEUTRAL or not did_start:
        return Move.LEAVES
    return Move.ADDS


def is_paused(streak: int) -> bool:
    """Whether nothing is started automatically until a person looks."""
    return streak >= PAUSE_AT


def wait_after(failed_starts: int) -> timedelta:
    """How long automatic work waits after that many starts in a row that came to nothing.

    A start that fails gives its issue back, so without a wait it would fail again for ever.
    """
    doublings = min(max(failed_starts - 1, 0), 10)
    return min(_FIRST_WAIT * (1 << doublings), _LONGEST_WAIT)
