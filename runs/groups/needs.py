"""Task groups that need a person: an INVESTIGATE that still stands, a monitor that failed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from django.db.models import BooleanField, Exists, ExpressionWrapper, OuterRef, Q, QuerySet

from runs.groups import rows as group_rows
from runs.groups.terms import Decision, MonitorState, TaskStatus
from runs.models import Checkpoint, Monitor, Project, Task, WorkflowPhase
from runs.overview.need_facts import GroupNeeds
from runs.workflows.rules import WorkflowState

AT_MOST = 200


def with_suspects(rows: QuerySet[Project]) -> QuerySet[Project]:
    """Projects with whether a group of theirs may need somebody, so that this costs no query."""
    found = Q(pk__in=_suspects().order_by().values("group__project"))
    return rows.annotate(has_suspects=ExpressionWrapper(found, BooleanField()))


def by_project(projects: Iterable[Project], now: datetime) -> Mapping[int, Sequence[GroupNeeds]]:
    """What of the groups of each project needs somebody now. No query, two while something may.

    An INVESTIGATE stands while a task is stalled, whoever settles it.
    """
    if not any(getattr(project, "has_suspects", False) for project in projects):
        return {}
    monitors = list(_suspects().select_related("group").order_by("pk")[:AT_MOST])
    active: dict[int, list[Task]] = {}
    running = [one.group_id for one in monitors if one.is_running]
    if running:
        rows = Task.objects.filter(group__in=running, status=TaskStatus.IN_PROGRESS)
        for task in rows.defer("description", "note"):
            active.setdefault(task.group_id, []).append(task)
    found: dict[int, list[GroupNeeds]] = {}
    for monitor in monitors:
        need = _need(monitor, active.get(monitor.group_id, ()), now)
        if need is not None:
            found.setdefault(monitor.group.project_id, []).append(need)
    return found


def _suspects() -> QuerySet[Monitor]:
    """Running monitors that told to investigate, and those of open groups that failed last.

    What holds a workflow is told by that one.
    """
    told = Checkpoint.objects.filter(monitor=OuterRef("pk"), decision=Decision.INVESTIGATE)
    later = Monitor.objects.filter(group=OuterRef("group"), pk__gt=OuterRef("pk"))
    running = Monitor.objects.running().filter(Exists(told))
    holding = WorkflowPhase.objects.filter(
        monitor=OuterRef("pk"), workflow__state=WorkflowState.HELD
    )
    failed = Monitor.objects.filter(~Exists(later), ~Exists(holding), state=MonitorState.ERROR)
    wanted = Q(pk__in=running.values("pk")) | Q(pk__in=failed.values("pk"))
    rows = Monitor.objects.filter(wanted, group__closed_at=None)
    return rows.defer("completed", "incomplete")


def _need(monitor: Monitor, tasks: Sequence[Task], now: datetime) -> GroupNeeds | None:
    name = monitor.group.name
    if not monitor.is_running:
        return GroupNeeds(monitor.group_id, name, error=monitor.error)
    rows = [group_rows.TaskRow(task) for task in tasks]
    stalled = group_rows.blockers(monitor, rows, now)
    if not stalled:
        return None
    said = [f"#{one.row.task.key} {one.row.task.subject}" for one in stalled]
    return GroupNeeds(monitor.group_id, name, tuple(said), frozenset(one.fate for one in stalled))
