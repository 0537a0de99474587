"""Tasks that stand for an issue follow its runs, in the transaction of the run's own change."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from django.db.models import F, Q, QuerySet

from runs.core.database import prepared_with_keys
from runs.core.effects import RunEnd, RunStart
from runs.core.ports import Lab
from runs.core.states import NoticeKind, Outcome
from runs.groups import signal_folders
from runs.groups.terms import TaskStatus
from runs.models import Project, Run, Task, TaskGroup
from runs.timeline import announce


class RunStarted(Exception):
    """A run started while a group was made of issues; making it again sees the run."""


def hold(project: Project, keys: Sequence[str]) -> frozenset[int]:
    """Let no active run of these issues end until the transaction does."""
    active = Run.objects.active().filter(project=project, issue_key__in=keys).order_by("pk")
    return frozenset(active.select_for_update(no_key=True).values_list("pk", flat=True))


def catch_up(lab: Lab, group: TaskGroup, held: Collection[int]) -> None:
    """Let the tasks of a new group stand as the newest run of each issue does. Raises RunStarted.

    A start that failed is none. The project is held, so that no run starts; `held` are the runs that
    cannot end.
    """
    tasks = {task.issue_key: task for task in group.tasks.exclude(issue_key="")}
    begun = Q(outcome="") | Q(started_at__isnull=False)
    runs = Run.objects.filter(begun, project=group.project_id, issue_key__in=tasks)
    newest = {run.issue_key: run for run in runs.order_by("pk").select_related("project")}
    for key, run in newest.items():
        tasks[key].group = group
        delivered = _delivered(run)
        if delivered is not None:
            finish(lab, tasks[key], delivered)
        elif run.is_active and run.pk not in held:
            raise RunStarted
        elif run.is_active:
            begin(lab, tasks[key], run)


def _delivered(run: Run | None) -> Run | None:
    """The run that delivered: this one, or one before it whose pull request it was only to change."""
    while run is not None and run.outcome != Outcome.SUCCEEDED:
        run = run.continues if run.amends is not None else None
    return run


def started(lab: Lab, start: RunStart) -> None:
    """The tasks of a run's issue are in progress; a completed one stays completed."""
    tasks = _open_of().rows(keys=(start.project_id, start.issue_key))
    if tasks:
        run = Run.objects.select_related("project").get(pk=start.run_id)
        for task in tasks:
            begin(lab, task, run)


@prepared_with_keys(2)
def _open_of(_now: datetime, project: int, issue: int) -> QuerySet[Task]:
    """The tasks of an issue that are not completed; `issue` stands for its key."""
    rows = Task.objects.filter(issue_key=issue, group__project=project, group__closed_at=None)
    return rows.exclude(status=TaskStatus.COMPLETED).select_related("group__project")


def begin(lab: Lab, task: Task, run: Run) -> None:
    """Let one task be in progress by a run."""
    rows = Task.objects.filter(pk=task.pk).exclude(status=TaskStatus.COMPLETED)
    if rows.update(
        status=TaskStatus.IN_PROGRESS,
        owner=owner_of(run),
        claim=F("claim") + 1,
        claimed_at=lab.now(),
        run=run,
        note="",
    ):
        text = f"task {task} was taken by run {run.pk}"
        announce.tell(lab, NoticeKind.TASK_CLAIMED, text, run=run, group=task.group)


def of(run_id: int) -> QuerySet[Task]:
    """The tasks that a run works on."""
    return Task.objects.filter(run=run_id, status=TaskStatus.IN_PROGRESS).exclude(issue_key="")


@prepared_with_keys(1)
def _worked_on(_now: datetime, run: int) -> QuerySet[Task]:
    return of(run).select_related("group__project", "run__project")


def ended(lab: Lab, end: RunEnd) -> None:
    """A success completes the tasks of a run; any other end lets them wait again, and says which."""
    for task in _worked_on().rows(keys=[end.run_id]):
        assert task.run is not None  # noqa: S101  (by the query)
        if end.outcome is Outcome.SUCCEEDED:
            finish(lab, task, task.run)
        else:
            _let_wait(lab, task, task.run, f"Run {end.run_id} {end.outcome.words}.")


def finish(lab: Lab, task: Task, run: Run) -> None:
    """Let one task be completed by a run that succeeded."""
    rows = Task.objects.filter(pk=task.pk).exclude(status=TaskStatus.COMPLETED)
    done = {"status": TaskStatus.COMPLETED, "completed_at": lab.now(), "run": run, "note": ""}
    if rows.update(owner=owner_of(run), **done):
        task.owner = owner_of(run)
        text = f"task {task} was completed by run {run.pk}"
        announce.tell(lab, NoticeKind.TASK_COMPLETED, text, run=run, group=task.group)
        signal_folders.completed(lab, task)


def _let_wait(lab: Lab, task: Task, run: Run, note: str) -> None:
    free = {"status": TaskStatus.PENDING, "owner": "", "claimed_at": None, "note": note}
    if of(run.pk).filter(pk=task.pk).update(**free):
        text = f"task {task} waits again: {note}"
        announce.tell(lab, NoticeKind.TASK_HANDED_BACK, text, run=run, group=task.group)


def owner_of(run: Run) -> str:
    """How a run is called among the workers of a group."""
    return f"run-{run.pk}"
