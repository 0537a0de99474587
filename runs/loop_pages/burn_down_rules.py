"""What is left of a loop's limits after each of its turns, as lines of a plot. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from runs.history import plot_rules

MOST_POINTS, MOST_ROWS = 200, 20
FEWEST_TURNS = 2


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that has ended. `used_…` is what was used of the limits by then, `own_…` by this turn.

    None of its own: the turn did not tell it. One that `was_refused` counts as no turn.
    """

    number: int
    began_at: datetime
    ended_at: datetime
    used_turns: int
    used_seconds: float
    used_cost: float
    own_seconds: float | None = None
    own_cost: float | None = None
    was_refused: bool = False

    @property
    def is_cost_known(self) -> bool:
        return self.own_cost is not None or self.was_refused


@dataclass(frozen=True, slots=True)
class Used:
    """How much is used from a moment on. None: not known, until the next one."""

    since: datetime
    amount: float | None


@dataclass(frozen=True, slots=True)
class Line:
    """The line of what is left of a limit, or without one of what is used; it begins or ends at `top`.

    `mark_at`: how high it stands where a loop is told that little is left; None without a limit.
    """

    path: str
    top: float
    used: float
    mark_at: float | None


def spread(count: int, most: int) -> list[int]:
    """Return all places from 0 on, or so many of them at even steps; the first and the last are among them."""
    if count <= most:
        return list(range(count))
    return [n * (count - 1) // (most - 1) for n in range(most)]


def picks(last: int, most: int = MOST_POINTS) -> list[int]:
    """Return the numbers of the turns that are drawn. The last may still run, so the one before it is too."""
    return [1 + place for place in spread(last - 1, most - 1)] + [last] * (last > 0)


def turns_used(turns: Sequence[Turn]) -> list[Used]:
    """Return the turns that counted, from the begin of the first one on."""
    first = turns[0]
    before = first.used_turns - (not first.was_refused)
    return [Used(first.began_at, before), *(Used(one.ended_at, one.used_turns) for one in turns)]


def time_used(turns: Sequence[Turn]) -> list[Used]:
    """Return the seconds that counted; those in which the loop rested are in none of them."""
    first = turns[0]
    before = max(0.0, first.used_seconds - (first.own_seconds or 0))
    return [Used(first.began_at, before), *(Used(one.ended_at, one.used_seconds) for one in turns)]


def money_used(turns: Sequence[Turn]) -> list[Used]:
    """Return the US dollars that were told. While a turn ran that told none, nothing is known."""
    first = turns[0]
    found = [Used(first.began_at, first.used_cost - (first.own_cost or 0))]
    for turn in turns:
        if not turn.is_cost_known:
            found.append(Used(found[-1].since, None))
        found.append(Used(turn.ended_at, turn.used_cost))
    return found


def line(used: Sequence[Used], limit: float | None, mark: float) -> Line:
    """Return the line of what is left of a limit, marked where this share of it is used.

    The clock may have been set back meanwhile: no step stands left of the one before it.
    """
    amounts = [one.amount for one in used if one.amount is not None]
    top = limit or plot_rules.ceiling(max(amounts))
    steps: list[tuple[datetime, float | None]] = []
    since = used[0].since
    for one in used:
        since = max(since, one.since)
        is_used = limit is None or one.amount is None
        steps.append((since, one.amount if is_used else top - (one.amount or 0)))
    until = max(since, used[0].since + timedelta(seconds=1))
    return Line(
        path=plot_rules.stairs(steps, top, used[0].since, until),
        top=top,
        used=amounts[-1],
        mark_at=None if limit is None else plot_rules.up(1 - mark, 1),
    )
