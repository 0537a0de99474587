"""Limits of tokens and money: how near a run is to each, what is held, and in which words. Pure.

Zero sets no limit. What nobody told is not known and reaches none, and counts as nothing nowhere:
for a program that does not tell its cost a limit of money cannot hold, and that is said.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from runs.core.states import AgentMode, OutputKind
from runs.spending.day_rules import Sum, Used

NEAR = Decimal("0.8")
_TELL_TOKENS = ("claude", "codex")
UNTIL = "until 00:00 UTC"
AGAIN = "from 00:00 UTC on"


class Limit(StrEnum):
    """What is limited."""

    RUN_TOKENS = "run_tokens"
    RUN_COST = "run_cost"
    PROJECT_TOKENS = "project_tokens"
    PROJECT_COST = "project_cost"
    ALL_TOKENS = "all_tokens"
    ALL_COST = "all_cost"

    @property
    def is_money(self) -> bool:
        return self in (Limit.RUN_COST, Limit.PROJECT_COST, Limit.ALL_COST)

    @property
    def is_of_day(self) -> bool:
        return self not in (Limit.RUN_TOKENS, Limit.RUN_COST)

    @property
    def is_of_all(self) -> bool:
        return self in (Limit.ALL_TOKENS, Limit.ALL_COST)

    @property
    def words(self) -> str:
        """As the end of "its limit of" or "the limit of"."""
        what = "money" if self.is_money else "tokens"
        return f"{what} {_WHOSE[self]}"


_WHOSE = {
    Limit.RUN_TOKENS: "for one run",
    Limit.RUN_COST: "for one run",
    Limit.PROJECT_TOKENS: "for this project today",
    Limit.PROJECT_COST: "for this project today",
    Limit.ALL_TOKENS: "for all projects today",
    Limit.ALL_COST: "for all projects today",
}


@dataclass(frozen=True, slots=True)
class Terms:
    """The limits that hold for a run: of itself, of its project's day, of everybody's day."""

    run: Used = Used(0, Decimal(0))  # noqa: RUF009  (frozen)
    project: Used = Used(0, Decimal(0))  # noqa: RUF009
    everybody: Used = Used(0, Decimal(0))  # noqa: RUF009


@dataclass(frozen=True, slots=True)
class Meter:
    """One limit that is set, and how much of it is used; None: nobody told.

    `unknown`: how many runs of the day told nothing of it, beside those that did.
    """

    limit: Limit
    used: Decimal | None
    most: Decimal
    unknown: int = 0

    @property
    def percent(self) -> int | None:
        """Rounded down, so that it is 100 only when it is reached."""
        return None if self.used is None else int(100 * self.used / self.most)

    @property
    def is_near(self) -> bool:
        return self.used is not None and self.used >= NEAR * self.most

    @property
    def is_reached(self) -> bool:
        return self.used is not None and self.used >= self.most

    @property
    def numbers(self) -> str:
        """As "415,000 of 500,000 tokens"."""
        what = "cost" if self.limit.is_money else "tokens"
        runs = "run" if self.unknown == 1 else "runs"
        more = f", and {self.unknown} {runs} of unknown {what}" if self.unknown else ""
        if self.limit.is_money:
            return f"{money(self.used)} of {money(self.most)}{more}"
        used = "unknown" if self.used is None else f"{self.used:,.0f}"
        return f"{used} of {self.most:,.0f} tokens{more}"


def meters(terms: Terms, run: Used | None, project: Sum, everybody: Sum) -> tuple[Meter, ...]:
    """The limits that are set, those of a run (None: of a project as a whole) first."""
    own = run or Used()
    of_run = terms.run if run is not None else Used()
    found = (
        (Limit.RUN_TOKENS, own.tokens, of_run.tokens, 0),
        (Limit.RUN_COST, own.cost, of_run.cost, 0),
        (Limit.PROJECT_TOKENS, project.told.tokens, terms.project.tokens, project.silent),
        (Limit.PROJECT_COST, project.told.cost, terms.project.cost, project.unpriced),
        (Limit.ALL_TOKENS, everybody.told.tokens, terms.everybody.tokens, everybody.silent),
        (Limit.ALL_COST, everybody.told.cost, terms.everybody.cost, everybody.unpriced),
    )
    return tuple(
        Meter(limit, None, Decimal(most))
        if used is None
        else Meter(limit, Decimal(used), Decimal(most), unknown)
        for limit, used, most, unknown in found
        if most
    )


def reached(found: Sequence[Meter]) -> Meter | None:
    """The first of these that is reached."""
    return next((one for one in found if one.is_reached), None)


def to_tell(found: Sequence[Meter], told: str) -> Meter | None:
    """Of which limit an agent is to be told now; each is told once, `told` names those that were."""
    return next((one for one in found if one.is_near and one.limit not in told.split()), None)


def ended(meter: Meter) -> str:
    """Why a run ended, in a sentence without its end."""
    return f"the limit of {meter.limit.words} is reached: {meter.numbers}; its work is kept"


def message(meter: Meter) -> str:
    """What an agent is told when most of a limit is used."""
    return (
        f"About {meter.percent} % of the limit of {meter.limit.words} is used ({meter.numbers}). "
        "When it is reached, your session is ended. Finish what you are at, commit and push it, and "
        "hand it over now: open the pull request, and say in it what is left to do."
    )


def holds(meter: Meter) -> str:
    """Why nothing starts, as a sentence."""
    words = meter.limit.words
    return f"The limit of {words} is reached: {meter.numbers}. Nothing new starts {UNTIL}."


def amounts(tokens: int, cost: Decimal) -> str:
    """Two limits as a page names them."""
    found = [f"{tokens:,} tokens"] if tokens else []
    found += [money(cost)] if cost else []
    return " or ".join(found) or "no limit"


def money(amount: Decimal | None) -> str:
    return "unknown" if amount is None else f"${amount:,.2f}"


@dataclass(frozen=True, slots=True)
class Program:
    """An agent's program: what it is called, how it works, and what it is started with."""

    name: str
    mode: str = AgentMode.INTERACTIVE
    output: str = OutputKind.PLAIN
    argv: Sequence[str] = ()

    @property
    def tells_tokens(self) -> bool:
        program = os.path.basename(str(self.argv[0])) if self.argv else ""  # noqa: PTH119
        return bool(self.output) or program in _TELL_TOKENS

    @property
    def tells_cost(self) -> bool:
        return self.output == OutputKind.CLAUDE


def caveats(program: Program, *, tokens: bool, cost: bool) -> list[str]:
    """What limits of tokens and of money, where they are set, cannot do with a program."""
    found = []
    if tokens and not program.tells_tokens:
        found.append(f"{program.name} tells no tokens, so a limit of tokens cannot hold for it.")
    if cost and not program.tells_cost:
        found.append(f"{program.name} tells no cost, so a limit of money cannot hold for it.")
    elif cost:
        found.append(
            f"{program.name} tells its cost when it ends, so a limit of money keeps the next run "
            "from starting and ends none in the middle."
        )
    if (tokens or cost) and program.mode == AgentMode.ONE_SHOT:
        found.append(f"{program.name} cannot be told beforehand that a limit is near.")
    return found
