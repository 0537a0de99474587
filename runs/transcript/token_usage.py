"""How many tokens an agent used, as far as its messages tell: each message counts once.

A message is told several times, once for each part of it, and those of agents that it has started
come in between; what was told last of a message counts. The totals of the program itself, which
come at its end, replace the sum. What was used before a run was held and resumed is added.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from runs.core.lenient_json import MOST, MOST_MONEY

LISTED = 32  # messages that may still be told again


@dataclass(frozen=True, slots=True)
class Tokens:
    """A number of tokens. `into` includes those from the cache, `cached`."""

    into: int = 0
    cached: int = 0
    out: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        mine, its = (self.into, self.cached, self.out), (other.into, other.cached, other.out)
        return Tokens(*(min(a + b, MOST) for a, b in zip(mine, its, strict=True)))

    def at_least(self, other: Tokens) -> Tokens:
        """The greater number of each: what was counted is not taken back."""
        return Tokens(
            max(self.into, other.into), max(self.cached, other.cached), max(self.out, other.out)
        )


@dataclass(frozen=True, slots=True)
class Spent:
    """What an agent used. `before`, `turns` and `cost`: by programs that worked on the run before.

    `older`: by messages of this program that are not listed any more. Empty: nothing was told.
    """

    before: Tokens = Tokens()
    turns: int = 0
    cost: Decimal = Decimal(0)
    older: Tokens = Tokens()
    listed: tuple[tuple[str, Tokens], ...] = ()

    @property
    def now(self) -> Tokens:
        """By this program alone."""
        return sum((tokens for _, tokens in self.listed), self.older)

    @property
    def total(self) -> Tokens:
        return self.before + self.now


NOTHING = Spent()


def told(spent: Spent, message: str, tokens: Tokens) -> Spent:
    """A message was told, perhaps not for the first time."""
    others = [one for one in spent.listed if one[0] != message]
    cut = max(0, len(others) + 1 - LISTED)
    older = sum((one for _, one in others[:cut]), spent.older)
    return replace(spent, older=older, listed=(*others[cut:], (message, tokens)))


def ended(spent: Spent, tokens: Tokens) -> Spent:
    """The program told its totals."""
    return replace(spent, older=tokens.at_least(spent.now), listed=())


def again(spent: Spent, turns: int | None, cost: Decimal | None) -> Spent:
    """Another program goes on with the run; these are all turns and costs up to now. Safe to repeat."""
    return Spent(spent.total, turns or 0, cost or Decimal(0))


def to_json(spent: Spent) -> list[Any]:
    """As a column keeps it; an empty list when nothing was told."""
    if spent == NOTHING:
        return []
    sums = [[one.into, one.cached, one.out] for one in (spent.before, spent.older)]
    listed = [[name, one.into, one.cached, one.out] for name, one in spent.listed]
    return [*sums, spent.turns, str(spent.cost), listed]


def from_json(stored: Any) -> Spent:
    """The same back; what cannot be read counts as nothing."""
    try:
        before, older, turns, cost, listed = stored
        return Spent(
            _tokens(before),
            int(turns),
            min(Decimal(cost), Decimal(MOST_MONEY)),
            _tokens(older),
            tuple((str(name), _tokens(counts)) for name, *counts in listed),
        )
    except (TypeError, ValueError, InvalidOperation):
        return NOTHING


def _tokens(counts: Iterable[Any]) -> Tokens:
    return Tokens(*(min(max(0, int(one)), MOST) for one in counts))
