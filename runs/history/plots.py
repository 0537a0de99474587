"""The numbers behind the plots: who ran when, slots in use, spending a day, weeks of a project."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

from django.db.models import Q

from runs.core.states import GOOD, NEUTRAL, NoticeKind
from runs.history import plot_rules
from runs.history.plot_rules import Bar, Span
from runs.models import Notice, Project, Review, Run, Settings
from runs.spending import day_rules, limit_rules
from runs.spending.day_rules import Sum
from runs.web import words

DAY = timedelta(days=1)
MOST_SPANS = 1000
DAYS, WEEKS = 14, 12
_WAITS = (NoticeKind.RUN_WAITS,)
_WAIT_ENDS = (NoticeKind.RUN_ANSWERED, NoticeKind.RUN_GOES_ON, NoticeKind.RUN_HELD)
_HOLDS, _HOLD_ENDS = (NoticeKind.RUN_HELD,), (NoticeKind.RUN_RESUMED,)


@dataclass(frozen=True, slots=True)
class Spent:
    """What one day used of tokens or money, and in words."""

    day: date
    used: Sum

    @property
    def tokens(self) -> str:
        return _tokens(self.used.tokens)

    @property
    def cost(self) -> str:
        return limit_rules.money(self.used.told.cost)

    @property
    def runs(self) -> int:
        return self.used.runs


@dataclass(frozen=True, slots=True)
class Plot:
    """Bars from a first to a last day, against a limit. `limit_at`: how high its line is, if any."""

    name: str
    bars: Sequence[Bar]
    top: str
    first: date
    last: date
    limit: str = ""
    limit_at: float | None = None


def night(now: datetime, settings: Settings) -> Mapping[str, Any]:
    """The last 24 hours: lanes by slot, and slots in use. Two queries."""
    begin = now - DAY
    spans = _spans(begin, now)
    steps = plot_rules.in_use(spans, begin, now)
    most = max(number for _, number in steps)
    top = max(settings.session_cap, most, 1)
    lanes = plot_rules.lanes(spans, begin, now)
    return {
        "begin": begin,
        "spans": sorted(spans, key=lambda one: one.begin, reverse=True),
        "lanes": lanes,
        "has_unknown": any(not lane.slot for lane in lanes),
        "slots_path": plot_rules.stairs(steps, top, begin, now),
        "cap": settings.session_cap,
        "cap_at": plot_rules.up(settings.session_cap, top),
        "slots_top": top,
        "slots_most": most,
        "steps": list(reversed(steps[1:]))[:100],
        "marks": [begin + timedelta(hours=6 * n) for n in range(5)],
    }


def spending(now: datetime, limits: Settings | Project) -> Mapping[str, Any]:
    """Tokens and money of the last days against the limit of a day; of one project, or of all.

    Two queries.
    """
    today = day_rules.day_of(now)
    days = [today - timedelta(days=n) for n in reversed(range(DAYS))]
    sums = _by_day(days[0], limits.pk if isinstance(limits, Project) else None)
    found = [sums.get(day, Sum()) for day in days]
    tokens, cost = [float(one.tokens) for one in found], [float(one.cost) for one in found]
    plots = (
        _by_days("Tokens a day", days, tokens, limits.day_tokens_limit, _tokens),
        _by_days("Cost a day", days, cost, limits.day_cost_limit, _money),
    )
    return {
        "days": [Spent(day, one) for day, one in reversed(list(zip(days, found, strict=True)))],
        "spent": [one for one in plots if one is not None],
    }


def weeks(project: Project, now: datetime) -> Mapping[str, Any]:
    """Success and duration of a project's runs by week. One query."""
    rows = Run.objects.filter(project=project, started_at__isnull=False).exclude(outcome="")
    rows = rows.filter(ended_at__gte=now - timedelta(weeks=WEEKS + 1)).exclude(outcome__in=NEUTRAL)
    ended = rows.values_list("ended_at", "outcome", "took_seconds")
    told = ((when, outcome in GOOD, took) for when, outcome, took in ended if when)
    found = plot_rules.weeks(told, day_rules.day_of(now), WEEKS)
    most = max((week.minutes or 0 for week in found), default=0)
    top = plot_rules.ceiling(most)
    width = plot_rules.WIDTH / WEEKS
    line = [
        None
        if week.percent is None
        else (round((n + 0.5) * width, 1), plot_rules.up(week.percent, 100))
        for n, week in enumerate(found)
    ]
    return {
        "weeks": list(reversed(found)),
        "has_weeks": any(week.runs for week in found),
        "success_path": plot_rules.path(line),
        "success_dots": [point for point in line if point is not None],
        "durations": Plot(
            "Median run by week",
            plot_rules.columns([week.minutes or 0 for week in found], top),
            f"{top:g} min",
            found[0].monday,
            found[-1].monday,
        ),
        "first_week": found[0].monday,
        "last_week": found[-1].monday,
    }


def _spans(begin: datetime, now: datetime) -> list[Span]:
    """The runs of late, with their waits. One that was held had no slot meanwhile, and which one it
    had before is not kept: those pieces have none."""
    later = Run.objects.exclude(outcome="").filter(ended_at__gte=begin).values("pk")
    rows = Run.objects.past().filter(Q(pk__in=later) | Q(outcome=""))
    runs = list(rows.order_by("-pk")[:MOST_SPANS])
    told: dict[int, list[tuple[str, datetime]]] = {}
    kinds = {*_WAITS, *_WAIT_ENDS, *_HOLDS, *_HOLD_ENDS}
    notices = Notice.objects.filter(run_id__in=[run.pk for run in runs], kind__in=kinds)
    for run_id, kind, at in notices.order_by("pk").values_list("run_id", "kind", "at"):
        told.setdefault(run_id or 0, []).append((kind, at))
    found = [span for run in runs for span in _of_run(run, told.get(run.pk, ()))]
    return [one for one in found if one.end is None or one.end >= begin]


def _of_run(run: Run, told: Sequence[tuple[str, datetime]]) -> Iterator[Span]:
    holds = plot_rules.times(told, _HOLDS, _HOLD_ENDS)
    waits = plot_rules.times(told, _WAITS, _WAIT_ENDS)
    pieces = plot_rules.without(run.started_at or run.requested_at, run.ended_at, holds)
    state = words.outcome_words(run.outcome) or run.state
    for number, (since, until) in enumerate(pieces, 1):
        is_last = number == len(pieces) and not (holds and holds[-1][1] is None)
        yield Span(
            (run.slot or 0) if is_last else 0,
            since,
            until,
            words.outcome_tone(run.outcome) if run.outcome else "live",
            f"{run.project.name} #{run.issue_key}: {state}",
            run.pk,
            [
                (start, end or run.ended_at)
                for start, end in waits
                if start >= since and (until is None or start < until)
            ],
        )


def _by_day(first: date, project: int | None) -> Mapping[date, Sum]:
    runs, reviews = (
        Run.objects.filter(spent_on__gte=first),
        Review.objects.filter(spent_on__gte=first),
    )
    if project is not None:
        runs, reviews = runs.filter(project_id=project), reviews.filter(attempt__project_id=project)
    stored = [*runs.order_by().values_list("spent_days", flat=True)]
    stored += reviews.order_by().values_list("spent_days", flat=True)
    found: dict[date, Sum] = {}
    for days in stored:
        for day in day_rules.read(days):
            if day >= first:
                found[day] = found.get(day, Sum()) + day_rules.summed([(0, days)], day)[0]
    return found


def _by_days(
    name: str, days: Sequence[date], values: Sequence[float], limit: Any, say: Any
) -> Plot | None:
    """None where there is nothing to show."""
    limit = float(limit or 0)
    if not any(values):
        return None
    top = plot_rules.ceiling(max(*values, limit))
    plot = Plot(name, plot_rules.columns(values, top), say(top), days[0], days[-1])
    return replace(plot, limit=say(limit), limit_at=plot_rules.up(limit, top)) if limit else plot


def _tokens(number: float) -> str:
    if number < 1000:
        return f"{number:.0f}"
    return f"{number / 1000:.0f} k" if number < 999_500 else f"{number / 1e6:.1f} M"


def _money(amount: float) -> str:
    return f"${amount:,.2f}"
