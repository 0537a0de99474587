"""What the pages of task groups show: the list of a project, one group, all its tasks, its feed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, IntegerField, QuerySet, Value, When
from django.http import Http404

from runs.core.ports import Lab
from runs.groups import card as group_card
from runs.groups import rows as group_rows
from runs.groups.card import GroupCard
from runs.groups.rows import Blocker, Ended, TaskRow, Told, WorkerRow, folded
from runs.groups.signal_rules import Crash
from runs.groups.terms import TaskStatus
from runs.models import Checkpoint, Monitor, Notice, Project, Task, TaskGroup, Worker, WorkflowPhase
from runs.overview import board
from runs.overview.board import Board
from runs.workflows import acts as workflows

PAGE = 50
TASKS, LISTED = 50, 500
CHECKPOINTS, WORKERS, NOTICES = 20, 100, 200
OLDER = 100
_RANK = Case(
    When(status=TaskStatus.IN_PROGRESS, then=Value(0)),
    When(status=TaskStatus.PENDING, then=Value(1)),
    default=Value(2),
    output_field=IntegerField(),
)


@dataclass(frozen=True)
class GroupPage:
    """Everything that a group's page shows. `monitor`: the newest, which is the running one if any."""

    board: Board
    project: Project
    card: GroupCard
    monitor: Monitor | None
    checkpoints: Sequence[Checkpoint]
    tasks: Sequence[TaskRow]
    blockers: Sequence[Blocker]
    workers: Sequence[WorkerRow]
    feed: Sequence[Told]
    older: int | None
    crashes: Sequence[Crash]
    phase: WorkflowPhase | None = None

    @property
    def group(self) -> TaskGroup:
        return self.card.group

    @property
    def is_running(self) -> bool:
        return self.monitor is not None and self.monitor.is_running

    @property
    def deadline(self) -> datetime | None:
        """When the running monitor gives up; None when it never does."""
        timeout = self.monitor.options.timeout if self.monitor is not None else None
        return (
            None if self.monitor is None or timeout is None else self.monitor.started_at + timeout
        )

    @property
    def result(self) -> Ended | None:
        """How the newest monitor ended, when its end told something."""
        return group_rows.ended(self.monitor)


def project_of(project_id: int) -> Project:
    """A project without its secrets, else 404."""
    found = Project.objects.filter(pk=project_id).defer("token", "hook_secret").first()
    if found is None:
        raise Http404("There is no such project.")
    return found


def group_of(project_id: int, group_id: int) -> TaskGroup:
    """A group of a project, which comes along without its secrets; else 404. One query."""
    rows = TaskGroup.objects.filter(pk=group_id, project=project_id).select_related("project")
    found = rows.defer("project__token", "project__hook_secret").first()
    if found is None:
        raise Http404("There is no such task group.")
    return found


def task_of(group: TaskGroup, task_id: int) -> Task:
    """A task of a group, else 404."""
    found = Task.objects.filter(pk=task_id, group=group).first()
    if found is None:
        raise Http404("There is no such task.")
    found.group = group
    return found


def group(lab: Lab, group_id: int) -> GroupPage | None:
    """Everything that a group's page shows; None when there is none.

    Ten queries, and one more when a workflow watches it.
    """
    picture = board.load(lab)
    found = group_card.counted(TaskGroup.objects.filter(pk=group_id)).first()
    if found is None or found.project_id not in picture.by_id:
        return None
    found.project = picture.by_id[found.project_id]
    monitor = Monitor.objects.filter(group=found).order_by("-pk").first()
    tasks = [TaskRow(task) for task in _listed(found)[:LISTED]]
    files = group_rows.files_of(lab, found)
    workers = Worker.objects.filter(group=found)[:WORKERS]
    notices = list(Notice.objects.filter(group=found).order_by("-pk")[: NOTICES + 1])
    return GroupPage(
        picture,
        found.project,
        group_card.card(found),
        monitor,
        _checkpoints(monitor),
        tasks[:TASKS],
        group_rows.blockers(monitor, tasks, picture.facts.now),
        group_rows.workers(list(workers), tasks, files.sent_back),
        folded(notices[:NOTICES]),
        notices[NOTICES - 1].pk if len(notices) > NOTICES else None,
        files.crashes,
        _phase(monitor),
    )


def _phase(monitor: Monitor | None) -> WorkflowPhase | None:
    """The phase of a workflow that a monitor is, or was before it failed."""
    if monitor is None or monitor.preset != workflows.PRESET:
        return None
    return WorkflowPhase.objects.filter(monitor=monitor).select_related("workflow").first()


def groups(project: Project, page: int) -> Mapping[str, Any]:
    """The groups of a project, open ones first and then the newest. One query."""
    first = (page - 1) * PAGE
    rows = group_card.counted(TaskGroup.objects.filter(project=project))
    is_closed = Case(When(closed_at=None, then=Value(0)), default=Value(1))
    found = list(rows.order_by(is_closed, "-pk")[first : first + PAGE + 1])
    cards = [group_card.card(row) for row in found[:PAGE]]
    return {"project": project, "cards": cards, **_pages(page, len(found) > PAGE)}


def all_groups(page: int) -> Mapping[str, Any]:
    """The groups of all projects, open ones first and then the newest. One query."""
    first = (page - 1) * PAGE
    rows = group_card.counted(TaskGroup.objects.select_related("project"))
    rows = rows.defer("project__token", "project__hook_secret")
    is_closed = Case(When(closed_at=None, then=Value(0)), default=Value(1))
    found = list(rows.order_by(is_closed, "-pk")[first : first + PAGE + 1])
    cards = [group_card.card(row) for row in found[:PAGE]]
    return {"cards": cards, "names_project": True, **_pages(page, len(found) > PAGE)}


def tasks(group: TaskGroup, page: int) -> Mapping[str, Any]:
    """All tasks of a group, a page at a time, in the order in which they were added. One query."""
    first = (page - 1) * PAGE
    found = list(Task.objects.filter(group=group)[first : first + PAGE + 1])
    rows = [TaskRow(task) for task in found[:PAGE]]
    more = _pages(page, len(found) > PAGE)
    return {"group": group, "project": group.project, "rows": rows, **more}


def older(group: TaskGroup, before: int) -> Mapping[str, Any]:
    """What was told of a group before an entry, newest first. One query."""
    rows = Notice.objects.filter(group=group, pk__lt=before).order_by("-pk")
    found = list(rows[: OLDER + 1])
    return {
        "group": group,
        "project": group.project,
        "feed": folded(found[:OLDER]),
        "older": found[OLDER - 1].pk if len(found) > OLDER else None,
    }


def _pages(page: int, has_next: bool) -> Mapping[str, Any]:
    return {
        "chosen": {"page": page},
        "previous": f"?page={page - 1}" if page > 1 else "",
        "next": f"?page={page + 1}" if has_next else "",
    }


def _listed(group: TaskGroup) -> QuerySet[Task]:
    """What somebody works on first, then what waits, then what is done."""
    return Task.objects.filter(group=group).defer("description").order_by(_RANK, "pk")


def _checkpoints(monitor: Monitor | None) -> Sequence[Checkpoint]:
    if monitor is None:
        return ()
    return list(Checkpoint.objects.filter(monitor=monitor).order_by("-n")[:CHECKPOINTS])
