"""What somebody who comes back is told: when a visit begins, and the sum of what ended meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from runs.core.states import Outcome

AWAY = timedelta(minutes=30)
NOTED_EVERY = timedelta(minutes=5)
TOLD_AT_MOST = timedelta(days=60)

_ORDER = (
    Outcome.SUCCEEDED,
    Outcome.DIED,
    Outcome.TIMED_OUT,
    Outcome.FAILED,
    Outcome.REJECTED,
    Outcome.LIMIT_REACHED,
    Outcome.OVER_LIMIT,
    Outcome.STOPPED,
    Outcome.INTERRUPTED,
    Outcome.NO_CHANGE,
    Outcome.OBSOLETE,
)


@dataclass(frozen=True, slots=True)
class Ended:
    """The runs that ended one way: how many, how many had a pull request, and what they told.

    Sums are None where no run told anything; `priced` is how many told their cost.
    """

    outcome: str
    runs: int
    pulls: int = 0
    priced: int = 0
    cost: Decimal | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """The numbers of the card."""

    counts: Sequence[tuple[Outcome, int]]
    runs: int
    pulls: int
    cost: Decimal | None
    priced: int
    tokens: int | None

    @property
    def tokens_words(self) -> str:
        """Short, as people read it: 950, 12 k, 4.9 M."""
        number = self.tokens or 0
        if number < 1000:
            return str(number)
        return f"{number / 1000:.0f} k" if number < 999_500 else f"{number / 1e6:.1f} M"


def is_due(noted: datetime | None, now: datetime) -> bool:
    """Whether it is time to note again that somebody is here; not at every request."""
    return noted is None or not timedelta(0) <= now - noted < NOTED_EVERY


def was_away(seen: datetime | None, now: datetime) -> bool:
    """Whether a new visit begins: longer than half an hour without a request.

    Nobody is told of the time before the first visit.
    """
    return seen is not None and now - seen > AWAY


def begin(since: datetime, until: datetime) -> datetime:
    """From when on is told: after very long, the last weeks only."""
    return max(since, until - TOLD_AT_MOST)


def summary(ended: Sequence[Ended]) -> Summary:
    """Counts by outcome, in a fixed order; what nobody told stays unknown and is never zero."""
    by: Mapping[str, Ended] = {one.outcome: one for one in ended}
    counts = [(one, by[one].runs) for one in _ORDER if one in by and by[one].runs]
    costs = [one.cost for one in ended if one.cost is not None]
    tokens = [one.tokens for one in ended if one.tokens is not None]
    return Summary(
        counts,
        sum(one.runs for one in ended),
        sum(one.pulls for one in ended),
        sum(costs, Decimal(0)) if costs else None,
        sum(one.priced for one in ended),
        sum(tokens) if tokens else None,
    )
