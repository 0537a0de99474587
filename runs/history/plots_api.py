"""The numbers behind the plots over the API: one operation for each plot, with what its table shows."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated

from django.http import HttpRequest
from ninja import Schema
from pydantic import Field

from runs.api import replies
from runs.api.asked import ProjectId
from runs.api.router import Router
from runs.history import plots
from runs.history.plots import Spent
from runs.models import Project, Settings
from runs.projects.api import project_of
from runs.wiring import lab

router = Router(tags=["Plots"])
of_project = Router(tags=["Plots"])


class PlotWait(Schema):
    """A time in which a run waited for a person. `until` is null while it goes on."""

    since: datetime
    until: datetime | None


class PlotSpan(Schema):
    """A time in which a run had a slot. A run that was held has several, and the slot of the earlier
    ones is not kept: null. `until` is null while it goes on."""

    run: int
    slot: int | None
    since: datetime
    until: datetime | None
    waits: list[PlotWait]


class PlotNight(Schema):
    """The last 24 hours as lanes by slot, newest first."""

    begin: datetime
    spans: list[PlotSpan]


class PlotStep(Schema):
    """How many slots were in use from a moment on."""

    at: datetime
    slots: int


class PlotSlots(Schema):
    """Slots in use over the last 24 hours, newest first; `most` of them at once, of `cap`."""

    begin: datetime
    most: int
    cap: int
    steps: list[PlotStep]


class PlotDay(Schema):
    """What one day of UTC used. Null is not known and never zero."""

    day: date
    tokens: int | None
    cost_usd: float | None
    runs: int


class PlotSpending(Schema):
    """Tokens and money of the last 14 days, newest first, and the limits of a day; 0: none."""

    day_tokens_limit: int
    day_cost_limit: float
    days: list[PlotDay]


class PlotWeek(Schema):
    """The runs that ended in the week from a Monday. Null where none did."""

    monday: date
    runs: int
    good: int
    success_percent: Annotated[int | None, Field(ge=0, le=100)]
    median_minutes: float | None


class PlotWeeks(Schema):
    """Success and duration of a project's runs over the last 12 weeks, newest first."""

    weeks: list[PlotWeek]


@router.get("/night", response=replies.look(PlotNight), summary="Show who ran when")
def plot_night(request: HttpRequest) -> PlotNight:
    """The runs of the last 24 hours by slot, with their waits, as on the page *Night*."""
    found = plots.night(lab().now(), Settings.current())
    spans = [
        PlotSpan(
            run=one.key,
            slot=one.slot or None,
            since=one.begin,
            until=one.end,
            waits=[PlotWait(since=since, until=until) for since, until in one.waits],
        )
        for one in found["spans"]
    ]
    return PlotNight(begin=found["begin"], spans=spans)


@router.get("/slots", response=replies.look(PlotSlots), summary="Show slots in use")
def plot_slots(request: HttpRequest) -> PlotSlots:
    """How many slots were in use over the last 24 hours; the newest 100 changes."""
    found = plots.night(lab().now(), Settings.current())
    return PlotSlots(
        begin=found["begin"],
        most=found["slots_most"],
        cap=found["cap"],
        steps=[PlotStep(at=when, slots=number) for when, number in found["steps"]],
    )


@router.get("/spending", response=replies.look(PlotSpending), summary="Show spending by day")
def plot_spending(request: HttpRequest) -> PlotSpending:
    """What all projects used on each of the last 14 days of UTC."""
    return _spending(Settings.current())


@of_project.get(
    "/{int:project_id}/plots/spending",
    response=replies.look(PlotSpending),
    summary="Show a project's spending",
)
def project_plot_spending(request: HttpRequest, project_id: ProjectId) -> PlotSpending:
    """What one project used on each of the last 14 days of UTC."""
    return _spending(project_of(project_id))


@of_project.get(
    "/{int:project_id}/plots/weeks",
    response=replies.look(PlotWeeks),
    summary="Show a project's weeks",
)
def project_plot_weeks(request: HttpRequest, project_id: ProjectId) -> PlotWeeks:
    """How many runs of a project ended well in each of the last 12 weeks, and their median length."""
    found = plots.weeks(project_of(project_id), lab().now())
    weeks = [
        PlotWeek(
            monday=one.monday,
            runs=one.runs,
            good=one.good,
            success_percent=one.percent,
            median_minutes=one.minutes,
        )
        for one in found["weeks"]
    ]
    return PlotWeeks(weeks=weeks)


def _spending(limits: Settings | Project) -> PlotSpending:
    days = plots.spending(lab().now(), limits)["days"]
    return PlotSpending(
        day_tokens_limit=limits.day_tokens_limit,
        day_cost_limit=float(limits.day_cost_limit),
        days=[_day(one) for one in days],
    )


def _day(one: Spent) -> PlotDay:
    told = one.used.told
    cost = None if told.cost is None else float(told.cost)
    return PlotDay(day=one.day, tokens=told.tokens, cost_usd=cost, runs=one.runs)
