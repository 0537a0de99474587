"""The plots of what is left of a loop's limits, on the page of its run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from runs.loop_pages import burn_down_rules
from runs.loop_pages.burn_down_rules import Line, Turn, Used
from runs.loops import stored
from runs.loops.rules import SOFT_LANDING, Limits
from runs.models import Loop, LoopTurn
from runs.spending import limit_rules
from runs.web import words

_COLUMNS = (
    *("number", "ordered_at", "ended_at", "used_turns", "used_seconds", "used_cost"),
    *("seconds", "cost", "was_refused"),
)


@dataclass(frozen=True, slots=True)
class Plot:
    """One quantity against its limit; `cells` are its numbers for the rows of the table."""

    name: str
    line: Line
    text: str
    top: str
    cells: Sequence[str]


@dataclass(frozen=True, slots=True)
class BurnDown:
    """The plots over the turns of a generation, and some of these turns as rows of a table."""

    plots: Sequence[Plot]
    first: Turn
    last: Turn
    rows: Sequence[tuple[Turn, Sequence[str]]]
    has_unknown: bool

    @property
    def has_marks(self) -> bool:
        return any(plot.line.mark_at is not None for plot in self.plots)


def build(loop: Loop) -> BurnDown | None:
    """Return the plots of the present generation, where there is one to draw. At most one query."""
    rows = LoopTurn.objects.filter(
        loop=loop,
        generation=loop.generation,
        number__in=burn_down_rules.picks(loop.number),
        used_turns__isnull=False,
    )
    turns = [_turn(*row) for row in rows.order_by("number").values_list(*_COLUMNS)]
    if len(turns) < burn_down_rules.FEWEST_TURNS:
        return None
    shown = [turns[n] for n in burn_down_rules.spread(len(turns), burn_down_rules.MOST_ROWS)]
    shown.reverse()
    is_whole = stored.counters(loop.counters).is_cost_whole
    limits = stored.terms(loop.terms["rules"]).limits
    plots = list(_plots(turns, shown, limits, is_whole=is_whole))
    if not plots:
        return None
    cells = zip(*(plot.cells for plot in plots), strict=True)
    return BurnDown(
        plots=plots,
        first=turns[0],
        last=turns[-1],
        rows=list(zip(shown, cells, strict=True)),
        has_unknown=not is_whole and _is_told(turns),
    )


def _turn(number: int, began_at: datetime, ended_at: datetime, *rest: Any) -> Turn:
    turns, seconds, cost, own_seconds, own_cost, was_refused = rest
    own = None if own_cost is None else float(own_cost)
    return Turn(
        number, began_at, ended_at, turns, seconds, float(cost), own_seconds, own, was_refused
    )


def _plots(
    turns: Sequence[Turn], shown: Sequence[Turn], limits: Limits, *, is_whole: bool
) -> Iterator[Plot]:
    """Turns and time where they have a limit; money where any is told, without a limit what is used."""
    if limits.turns is not None:
        amounts: list[float | None] = [one.used_turns for one in shown]
        yield _plot("Turns left", burn_down_rules.turns_used(turns), limits.turns, _count, amounts)
    if limits.runtime is not None:
        most = limits.runtime.total_seconds()
        amounts = [one.used_seconds for one in shown]
        yield _plot("Time left", burn_down_rules.time_used(turns), most, _time, amounts)
    if _is_told(turns):
        name, budget = "Cost so far" if is_whole else "Cost so far, at least", None
        if limits.cost is not None:
            name, budget = "Money left" if is_whole else "Money left, at most", float(limits.cost)
        amounts = [one.used_cost if one.is_cost_known else None for one in shown]
        yield _plot(name, burn_down_rules.money_used(turns), budget, _money, amounts)


def _plot(
    name: str,
    used: Sequence[Used],
    limit: float | None,
    say: Callable[[float], str],
    amounts: Sequence[float | None],
) -> Plot:
    line = burn_down_rules.line(used, limit, float(SOFT_LANDING))
    cells = ["unknown" if one is None else _left(one, limit, say) for one in amounts]
    text = _left(line.used, limit, say)
    if limit is not None and line.used <= limit:
        text += f" of {say(limit)}"
    return Plot(name, line, text, say(line.top) if limit is None else "100 %", cells)


def _left(used: float, limit: float | None, say: Callable[[float], str]) -> str:
    if limit is None:
        return say(used)
    return say(limit - used) if used <= limit else f"{say(used - limit)} over"


def _is_told(turns: Sequence[Turn]) -> bool:
    return any(one.used_cost or one.own_cost is not None for one in turns)


def _count(number: float) -> str:
    return f"{number:,.0f}"


def _time(seconds: float) -> str:
    return words.duration(timedelta(seconds=seconds))


def _money(amount: float) -> str:
    return limit_rules.money(Decimal(amount))
