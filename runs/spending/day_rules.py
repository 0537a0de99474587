"""How much of what a run used falls on which day. Pure; days are those of UTC.

What is told late counts for the day on which the run ended, what is told twice counts once, and a
clock that was set keeps what had been noted for each day.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from runs.core.lenient_json import MOST, MOST_MONEY

KEPT = 14  # days of one run; none is at work for longer
ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Used:
    """Tokens, in and out together, and money. None: nobody told, which is not nothing."""

    tokens: int | None = None
    cost: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Sum:
    """What several runs used: `silent` told no tokens, `unpriced` no cost."""

    tokens: int = 0
    cost: Decimal = ZERO
    runs: int = 0
    silent: int = 0
    unpriced: int = 0

    @property
    def told(self) -> Used:
        """As far as it is known: where no run told anything, that is not nothing."""
        tokens = None if self.runs and self.runs == self.silent else self.tokens
        return Used(tokens, None if self.runs and self.runs == self.unpriced else self.cost)

    def __add__(self, other: Sum) -> Sum:
        return Sum(
            self.tokens + other.tokens,
            self.cost + other.cost,
            self.runs + other.runs,
            self.silent + other.silent,
            self.unpriced + other.unpriced,
        )


def day_of(when: datetime) -> date:
    """The day on which something counts."""
    return when.astimezone(UTC).date()


def tokens(into: int | None, out: int | None) -> int | None:
    """What counts for a limit: all that went in, from the cache too, and all that came out."""
    return None if into is None and out is None else (into or 0) + (out or 0)


def more(one: Used, other: Used) -> Used:
    """Both together; what only one of them told is what is known."""
    costs = [cost for cost in (one.cost, other.cost) if cost is not None]
    return Used(tokens(one.tokens, other.tokens), sum(costs, ZERO) if costs else None)


def noted(stored: object, before: Used, after: Used, on: date) -> list[list[Any]]:
    """The days of a run after it told more; safe to repeat with what was stored by then."""
    days = read(stored)
    had = days.get(on, Used())
    days[on] = Used(
        _more(had.tokens, before.tokens, after.tokens), _money(had.cost, before.cost, after.cost)
    )
    if days[on] == Used():
        del days[on]
    newest = sorted(days)[-KEPT:]
    return [[day.isoformat(), days[day].tokens, _text(days[day].cost)] for day in newest]


def read(stored: object) -> dict[date, Used]:
    """The days as a column keeps them; what cannot be read counts as not there."""
    found: dict[date, Used] = {}
    for row in stored if isinstance(stored, list) else []:
        try:
            day, number, cost = row
            count = min(max(0, int(number)), MOST) if number is not None else None
            money = min(Decimal(cost), Decimal(MOST_MONEY)) if cost is not None else None
            found[date.fromisoformat(day)] = Used(count, money)
        except (TypeError, ValueError, InvalidOperation):
            continue
    return found


def summed(rows: Iterable[tuple[int, object]], on: date) -> Mapping[int, Sum]:
    """What each project used on a day, from its runs' days."""
    found: dict[int, Sum] = {}
    for project, stored in rows:
        used = read(stored).get(on)
        if used is not None:
            one = Sum(
                used.tokens or 0,
                used.cost or ZERO,
                1,
                int(used.tokens is None),
                int(used.cost is None),
            )
            found[project] = found.get(project, Sum()) + one
    return found


def total(sums: Mapping[int, Sum]) -> Sum:
    """The same of all projects."""
    return sum(sums.values(), Sum())


def newest(days: Sequence[Sequence[Any]]) -> date | None:
    """The last day of a run, as `noted` lists them."""
    return date.fromisoformat(days[-1][0]) if days else None


def _more(had: int | None, before: int | None, after: int | None) -> int | None:
    if after is None:
        return had
    more = after - (before or 0)
    return had if had is None and not more and before is not None else max(0, (had or 0) + more)


def _money(had: Decimal | None, before: Decimal | None, after: Decimal | None) -> Decimal | None:
    if after is None:
        return had
    more = after - (before or ZERO)
    return (
        had if had is None and not more and before is not None else max(ZERO, (had or ZERO) + more)
    )


def _text(cost: Decimal | None) -> str | None:
    return None if cost is None else str(cost)
