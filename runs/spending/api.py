"""What was used on this day, and which limits are reached, over the API."""

from __future__ import annotations

from datetime import date

from django.http import HttpRequest
from ninja import Schema

from runs.api import replies
from runs.api.router import Router
from runs.models import Project, Settings
from runs.spending import day_rules, gathering
from runs.spending.day_rules import Sum
from runs.spending.gathering import Spending
from runs.wiring import lab

router = Router(tags=["Settings"])


class SpendingSum(Schema):
    """What runs used. `cost_usd` is null where no run told a cost, which is not zero.

    `unpriced` counts the runs of which nobody knows the cost, and `silent` those that told no tokens.
    """

    tokens: int
    cost_usd: float | None
    runs: int
    unpriced: int
    silent: int


class SpendingProject(SpendingSum):
    """The same of one project; `held` says why nothing starts there today, if a limit is reached."""

    project: int
    held: str


class SpendingToday(Schema):
    """One day of UTC: all runs together, and each project that used something or is held."""

    day: date
    all: SpendingSum
    projects: list[SpendingProject]


@router.get("", response=replies.look(SpendingToday), summary="Show what was used today")
def spending_show(request: HttpRequest) -> SpendingToday:
    """Tokens and money of this day of UTC, as far as they were told. The limits are in the settings
    and in each project."""
    day = day_rules.day_of(lab().now())
    found = Spending(Settings.current(), day, gathering.of_day(day))
    rows = [_project(found, one) for one in Project.objects.defer("token").order_by("pk")]
    shown = [row for row in rows if row.runs or row.held]
    return SpendingToday(day=day, all=_sum(day_rules.total(found.sums)), projects=shown)


def _sum(used: Sum) -> SpendingSum:
    is_known = used.runs > used.unpriced
    return SpendingSum(
        tokens=used.tokens,
        cost_usd=float(used.cost) if is_known else None,
        runs=used.runs,
        unpriced=used.unpriced,
        silent=used.silent,
    )


def _project(found: Spending, project: Project) -> SpendingProject:
    used = _sum(found.sums.get(project.pk, Sum()))
    return SpendingProject(**used.dict(), project=project.pk, held=found.hold(project))
