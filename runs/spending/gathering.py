"""The limits in force beside what was used, as a tick, a launch and a page ask for them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal

from runs.models import Project, Review, Run, Settings
from runs.spending import day_rules, limit_rules
from runs.spending.day_rules import Sum, Used
from runs.spending.limit_rules import Meter, Terms

NOTHING = Used()


@dataclass(frozen=True, slots=True)
class Spending:
    """The limits of the settings, and what each project used today; asked for where it matters."""

    settings: Settings
    day: date
    sums: Mapping[int, Sum] = field(default_factory=dict)

    def of_run(self, run: Run, beside: Used = NOTHING) -> tuple[Meter, ...]:
        """The limits that are set for a run, whose project is loaded.

        `beside`: what was used for it by others than its agent.
        """
        return self._meters(run.project, day_rules.more(run.used, beside))

    def of_project(self, project: Project) -> tuple[Meter, ...]:
        """Those of a day alone."""
        return self._meters(project, None)

    def hold(self, project: Project) -> str:
        """Why nothing may start in a project today; empty while it may."""
        found = limit_rules.reached(self.of_project(project))
        return limit_rules.holds(found) if found is not None else ""

    def _meters(self, project: Project, run: Used | None) -> tuple[Meter, ...]:
        own, everybody = self.sums.get(project.pk, Sum()), day_rules.total(self.sums)
        return limit_rules.meters(terms(self.settings, project), run, own, everybody)


def terms(settings: Settings, project: Project) -> Terms:
    """The limits in force for the runs of a project."""
    tokens, cost = project.run_tokens_limit, project.run_cost_limit
    return Terms(
        Used(
            settings.run_tokens_limit if tokens is None else tokens,
            settings.run_cost_limit if cost is None else cost,
        ),
        Used(project.day_tokens_limit, project.day_cost_limit),
        Used(settings.day_tokens_limit, settings.day_cost_limit),
    )


def is_limited(settings: Settings, projects: Iterable[Project]) -> bool:
    """Whether any limit is set for one of these projects."""
    return any(limit_rules.meters(terms(settings, one), Used(), Sum(), Sum()) for one in projects)


def spending(settings: Settings, projects: Iterable[Project], now: datetime) -> Spending:
    """One query where a limit of a day is set for one of these projects; else none."""
    day = day_rules.day_of(now)
    has_day = settings.day_tokens_limit or settings.day_cost_limit
    if not has_day and not any(one.day_tokens_limit or one.day_cost_limit for one in projects):
        return Spending(settings, day)
    return Spending(settings, day, of_day(day))


def of_day(day: date) -> Mapping[int, Sum]:
    """What each project used on a day, in runs and reviews. One query.

    Also of those that were at work later, by a wrong clock too.
    """
    runs = Run.objects.filter(spent_on__gte=day).values_list("project_id", "spent_days")
    reviews = Review.objects.filter(spent_on__gte=day)
    of_reviews = reviews.values_list("attempt__project_id", "spent_days")
    return day_rules.summed(runs.order_by().union(of_reviews.order_by(), all=True), day)


def of_reviews(run: Run) -> Used:
    """What the reviewers of a run used, in all its attempts. One query."""
    rows = Review.objects.filter(attempt__run=run, spent_on__isnull=False)
    return functools.reduce(day_rules.more, (one.used for one in rows), NOTHING)


def of_loaded(runs: Sequence[Run], day: date) -> Sum:
    """The same of runs that were loaded for a page."""
    return day_rules.total(
        day_rules.summed(((run.project_id, run.spent_days) for run in runs), day)
    )


def has_money(settings: Settings, project: Project) -> bool:
    """Whether a limit of money holds for runs of a project."""
    found = terms(settings, project)
    return any(
        one.cost not in (None, Decimal(0)) for one in (found.run, found.project, found.everybody)
    )


def has_tokens(settings: Settings, project: Project) -> bool:
    """Whether a limit of tokens does."""
    found = terms(settings, project)
    return any(one.tokens for one in (found.run, found.project, found.everybody))
