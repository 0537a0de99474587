"""Finds the runs of a filter, a page at a time: each page by the keys of the last row before it.

An order has stretches: the runs whose column is known, by it, then those of which it is not, and
those that have not ended, by their number; the last ones are on top of "ended last first". The list is as it was at
one moment: what has ended since stands where it stood, so that no page moves under its reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db.models import Q, QuerySet

from runs.history.filters import ACTIVE, Place, Sort, Wanted
from runs.models import Run

PAGE = 50
AT_ONCE = 500
MOST_NEWS = 100
COLUMNS = {"ended": "ended_at", "took": "took_seconds", "cost": "cost_usd", "started": "id"}

_KEYS = ("id", "ended_at", "took_seconds", "cost_usd")
_Keys = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """A page of runs, and the last of it when more follow. `is_lost`: `after` is no run any more, and
    where it stood is not known."""

    runs: Sequence[Run]
    last: int | None = None
    is_lost: bool = False


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Rows that are in order by one column and their number; without a column by that alone."""

    rows: Q
    column: str
    is_down: bool

    @property
    def order(self) -> list[str]:
        names = [self.column, "id"] if self.column else ["id"]
        return [f"-{name}" if self.is_down else name for name in names]

    def behind(self, pk: int, value: Any) -> Q:
        """What comes after a row with this value."""
        side = "lt" if self.is_down else "gt"
        later = Q(**{f"id__{side}": pk})
        if not self.column:
            return later
        at_most = Q(**{f"{self.column}__{side}e": value})  # what an index can begin at
        return at_most & (Q(**{f"{self.column}__{side}": value}) | later)


def page(
    wanted: Wanted,
    place: Place,
    now: datetime,
    limit: int = PAGE,
    rows: QuerySet[Run] | None = None,
    before: Run | None = None,
) -> Found:
    """The page that was asked for, by three queries at most, and one more for any but the first.

    `rows`: what is read of each run; without it, what the list shows. `before`: the run `after` as it
    was read, where it is at hand: it may be gone, and more is not asked.
    """
    at = place.at or now
    stretches, last = _stretches(wanted, at), _last(wanted.sort, place.after, before)
    is_lost = last is None and place.after is not None
    found: list[Run] = []
    reading = rows if rows is not None else Run.objects.past()
    fitting = (rows if rows is not None else Run.objects.all()).order_by()
    fitting = fitting.filter(narrowed(wanted))
    if place.at is not None:
        fitting = fitting.filter(requested_at__lte=place.at)
    for number, one in enumerate(stretches):
        behind = Q()
        if last is not None:
            if number < _stretch_of(wanted.sort, last, at):
                continue
            if number == _stretch_of(wanted.sort, last, at):
                behind = one.behind(last["id"], last.get(one.column))
        # Numbers first: what is sorted that no index has in order is then not whole rows.
        some = fitting.filter(one.rows, behind).order_by(*one.order)
        numbers = some.values("pk")[: limit + 1 - len(found)]
        found += reading.filter(pk__in=numbers).order_by(*one.order)
        if len(found) > limit:
            break
    return Found(found[:limit], found[limit - 1].pk if len(found) > limit else None, is_lost)


def every(wanted: Wanted, at: datetime) -> Iterator[Sequence[Run]]:
    """All runs of a filter, some at a time."""
    before: Run | None = None
    while True:
        found = page(wanted, Place(at=at), at, AT_ONCE, before=before)
        yield found.runs
        if found.last is None:
            return
        before = found.runs[-1]


def news(wanted: Wanted, at: datetime) -> int:
    """How many runs of a filter began or ended since a moment; counted no further than 100."""
    ended = Run.objects.exclude(outcome="").filter(ended_at__gt=at)
    begun = Run.objects.active().filter(requested_at__gt=at)
    rows = Run.objects.filter(Q(pk__in=ended.values("pk")) | Q(pk__in=begun.values("pk")))
    return rows.filter(narrowed(wanted)).order_by()[:MOST_NEWS].count()


def narrowed(wanted: Wanted) -> Q:
    """The filters, without order and page."""
    exact = {"project_id": wanted.project, "agent": wanted.agent, "started_by": wanted.person}
    found = Q(**{name: value for name, value in exact.items() if value not in (None, "")})
    if wanted.outcome:
        found &= Q(outcome="" if wanted.outcome == ACTIVE else wanted.outcome)
    if wanted.model:
        found &= Q(model=wanted.model) | Q(agent_model=wanted.model)
    if wanted.text:
        found &= _words(wanted.text)
    return found & _between(wanted)


def _between(wanted: Wanted) -> Q:
    """The days on which runs ended, and what they cost."""
    found = Q()
    if wanted.since is not None:
        found &= Q(ended_at__gte=_start(wanted.since))
    if wanted.until is not None and wanted.until < date.max:
        found &= Q(ended_at__lt=_start(wanted.until + timedelta(days=1)))
    if wanted.least is not None:
        found &= Q(cost_usd__gte=wanted.least)
    if wanted.most is not None:
        found &= Q(cost_usd__lte=wanted.most)
    return found


def _words(text: str) -> Q:
    key = Q(issue_key=text.removeprefix("#"))
    return Q(issue_title__icontains=text) | Q(branch__icontains=text) | key


def _stretches(wanted: Wanted, at: datetime) -> list[_Stretch]:
    sort = wanted.sort
    if sort.key == "started":
        return [_Stretch(Q(), "", sort.is_down)]
    column, ended = COLUMNS[sort.key], ~Q(outcome="")
    # Each part by its own index: together they would have every run read.
    active = Run.objects.active().values("pk")
    later = Run.objects.exclude(outcome="").filter(ended_at__gt=at).values("pk")
    going = _Stretch(Q(pk__in=active) | Q(pk__in=later), "", sort is not Sort.ENDED_UP)
    if sort.key == "ended":
        known = _Stretch(ended & Q(ended_at__lte=at), column, sort.is_down)
        return [going, known] if sort.is_down else [known, going]
    # In words for which no database takes the index of the ends.
    ended &= ~Q(pk__in=later)
    known = _Stretch(ended & Q(**{f"{column}__isnull": False}), column, sort.is_down)
    return [known, _Stretch(ended & Q(**{f"{column}__isnull": True}), "", True), going]


def _stretch_of(sort: Sort, row: _Keys, at: datetime) -> int:
    """In which stretch a run stands."""
    if sort.key == "started":
        return 0
    is_going = row["ended_at"] is None or row["ended_at"] > at
    if sort.key == "ended":
        return int(is_going is not sort.is_down)
    return 2 if is_going else int(row[COLUMNS[sort.key]] is None)


def _last(sort: Sort, pk: int | None, before: Run | None) -> _Keys | None:
    """By what a page begins behind a run; None on the first page, and where the run is gone."""
    if before is not None:
        return {name: getattr(before, name) for name in _KEYS}
    if pk is None or sort.key == "started":
        return None if pk is None else {"id": pk}
    rows: list[_Keys] = list(Run.objects.filter(pk=pk).values(*_KEYS))
    return rows[0] if rows else None


def _start(day: date) -> datetime:
    return datetime.combine(day, time.min, UTC)
