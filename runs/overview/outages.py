"""Gathers when trackers and agents' accounts were out of order, for whoever was not there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from runs.core.states import NoticeKind, RunState, TrackerKind
from runs.models import Notice, Project, Run
from runs.overview import outage_rules
from runs.overview.outage_rules import Outage, Told, What
from runs.timeline.models import OUTAGE_KINDS

MOST = 1000
_DOWN = (NoticeKind.PROJECT_WARNED, NoticeKind.RUN_HELD)
_TRACKER = (NoticeKind.PROJECT_WARNED, NoticeKind.PROJECT_RECOVERED)
_AGENT = (NoticeKind.RUN_HELD, NoticeKind.RUN_RESUMED)


@dataclass(frozen=True, slots=True)
class Silent:
    """Projects whose tracker gives no answer just now, for which nobody can do anything yet."""

    names: Sequence[str]
    since: datetime


def between(begin: datetime, end: datetime) -> list[Outage]:
    """The outages of that time. One query by an index of its own, two where there was one."""
    rows = Notice.objects.filter(kind__in=OUTAGE_KINDS, at__gt=begin)
    rows = rows.select_related("project__forge", "run__profile").order_by("at", "id")
    found = list(rows.only(*_SHOWN)[:MOST])
    if not found:
        return []
    down = {
        What.TRACKER: frozenset(
            one.project.pk for one in found if one.project is not None and one.project.warnings
        ),
        What.AGENT: frozenset(
            one.run.pk for one in found if one.run is not None and _holds(one.run)
        ),
    }
    told = outage_rules.outages(_told(found), begin, end, down)
    return outage_rules.with_starts(told, _starts(told))


def silent(projects: Sequence[Project], now: datetime) -> Silent | None:
    """Whose tracker gives no answer just now; None where all answer."""
    found = [one for one in projects if outage_rules.is_calm(one.silent_since, now)]
    since = [one.silent_since for one in found if one.silent_since is not None]
    return Silent(sorted({_name(one) for one in found}), min(since)) if since else None


def _told(rows: Sequence[Notice]) -> Iterator[Told]:
    for row in rows:
        is_down = row.kind in _DOWN
        if row.kind in _TRACKER and row.project is not None:
            yield Told(What.TRACKER, row.project.pk, _name(row.project), row.at, is_down)
        elif row.kind in _AGENT and row.run is not None:
            name = row.run.profile.name if row.run.profile else row.run.agent
            yield Told(What.AGENT, row.run.pk, name or "An agent", row.at, is_down)


def _starts(found: Sequence[Outage]) -> list[tuple[int, datetime]]:
    """When runs of these projects were asked for around the ends of the outages. At most one query."""
    ends = [(one, one.until) for one in found if not one.is_agent and one.until is not None]
    if not ends:
        return []
    projects = {source for one, _ in ends for source in one.sources}
    last = max(until for _, until in ends) + outage_rules.SOON
    rows = Run.objects.filter(project__in=projects, requested_at__lt=last)
    rows = rows.filter(requested_at__gte=min(until for _, until in ends))
    return list(rows.order_by().values_list("project_id", "requested_at"))


def _holds(run: Run) -> bool:
    return not run.outcome and run.state == RunState.HELD


def _name(project: Project) -> str:
    """What people call what did not answer: the account on a forge, else the project."""
    if project.tracker not in ("", TrackerKind.BUILTIN) and project.forge is not None:
        return project.forge.name
    return project.name


_SHOWN = (
    *("at", "kind", "project_id", "run_id"),
    *("project__name", "project__tracker", "project__warning", "project__origin_warning"),
    *("project__forge__name", "run__outcome", "run__state", "run__agent", "run__profile__name"),
)
