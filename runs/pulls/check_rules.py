"""What the checks of a pull request say together. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from trackers.base import Check, CheckState, PullState

MOVES_SECONDS, RESTS_SECONDS = 30, 120
_FIRST = (CheckState.FAILED, CheckState.RUNNING, CheckState.PASSED)


def in_order(checks: Sequence[Check]) -> list[Check]:
    """What failed first, then what runs; each by name."""
    return sorted(checks, key=lambda one: (_FIRST.index(one.state), one.name.casefold()))


def in_words(checks: Sequence[Check]) -> str:
    """All of them in a few words."""
    if not checks:
        return "no checks yet"
    count = Counter(one.state for one in checks)
    if count[CheckState.PASSED] == len(checks):
        return f"all {len(checks)} passed" if len(checks) > 1 else "passed"
    told = [f"{count[state]} {state}" for state in _FIRST if count[state]]
    return ", ".join(told)


def worst(checks: Sequence[Check]) -> CheckState | None:
    """The state that stands for all; None without any."""
    return min((one.state for one in checks), key=_FIRST.index, default=None)


def again_seconds(state: PullState | None, checks: Sequence[Check] | None) -> int | None:
    """When to look again at a pull request that somebody has before them; None when it is over.

    Soon while checks run or have not begun, else seldom: a commit, a merge, or an answer may come.
    None for what the tracker did not tell.
    """
    if state in (PullState.MERGED, PullState.CLOSED):
        return None
    if checks is None:
        return RESTS_SECONDS
    moves = not checks or any(one.state == CheckState.RUNNING for one in checks)
    return MOVES_SECONDS if moves else RESTS_SECONDS
