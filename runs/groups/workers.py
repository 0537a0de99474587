"""Who works on the tasks of a group: each under a name, and no more of them than a page can show."""

from __future__ import annotations

from django.db import transaction

from runs.groups.task_rules import MOST_WORKERS, NAME_RULE, NOTHING
from runs.groups.tasks import TaskRefused, closed
from runs.groups.terms import is_name
from runs.models import Run, TaskGroup, Worker


def worker_of(
    group: TaskGroup, name: str, run: Run | None = None, *, is_new: bool = False
) -> Worker:
    """The worker of that name, with `is_new` made when it is not there. Raises TaskRefused.

    A name belongs to the run that uses it until that run ends.
    """
    if not is_name(name):
        raise TaskRefused(f"A worker's name {NAME_RULE}. {NOTHING}", code="invalid", field="worker")
    worker = _found(group, name) or (_hire(group, name, run) if is_new else None)
    if worker is None:
        raise TaskRefused(f"{name} has taken no task of this group. {NOTHING}", code="not_yours")
    if run is None or worker.run_id == run.pk:
        return worker
    if worker.run is not None and worker.run.is_active:
        raise TaskRefused(f"{name} works for run {worker.run_id}. {NOTHING}", code="not_yours")
    Worker.objects.filter(pk=worker.pk).update(run=run)
    worker.run = run
    return worker


def _found(group: TaskGroup, name: str) -> Worker | None:
    return Worker.objects.select_related("run").filter(group=group, name=name).first()


def _hire(group: TaskGroup, name: str, run: Run | None) -> Worker:
    """A new worker, while the group has room; names of a group that is full go on."""
    with transaction.atomic():
        # One at a time: who is counted is there, and nobody comes in between.
        held = TaskGroup.objects.select_for_update(no_key=True).filter(pk=group.pk, closed_at=None)
        if not list(held.values_list("pk")):
            raise closed(group)
        if (worker := _found(group, name)) is not None:
            return worker
        if Worker.objects.filter(group=group).count() >= MOST_WORKERS:
            text = f"A group has at most {MOST_WORKERS} workers, so {name} was not added. {NOTHING}"
            raise TaskRefused(text, code="full")
        return Worker.objects.create(group=group, name=name, run=run)
