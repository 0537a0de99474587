"""Takes over what agents' hooks left in signal folders: completed tasks, workers sent back, crashes."""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import datetime

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import QuerySet

from runs.core.database import prepared
from runs.core.ports import Lab, SeamError
from runs.core.states import NoticeKind
from runs.groups import signal_folders, tasks
from runs.groups.signal_rules import Signal
from runs.groups.terms import TaskStatus
from runs.models import Monitor, Task, TaskGroup, Worker
from runs.timeline import announce
from trackers.base import NotFound

logger = logging.getLogger(__name__)


def absorb(lab: Lab, group: TaskGroup) -> int:
    """Complete the tasks whose signal is there; how many. Safe to repeat, and at the same time.

    A folder that cannot be read says nothing this time.
    """
    if not group.signals:
        return 0
    open_tasks = Task.objects.filter(group=group, issue_key="").exclude(status=TaskStatus.COMPLETED)
    keys = frozenset(open_tasks.values_list("key", flat=True))
    try:
        done = 0
        if keys:
            folder = signal_folders.folder(lab, group)
            done = sum([_take(lab, group, one) for one in lab.signals.done(folder, keys)])
            _tell_crashes(lab, group, keys)
        _tell_sent_back(lab, group)
    except SeamError as error:
        what = {"group_id": group.pk, "error": str(error)}
        logger.warning("signals of a group could not be read", extra=what)
        return 0
    except (OperationalError, InterfaceError):
        raise
    except Exception:  # whatever files say, its monitor and other groups do not wait for it
        logger.exception("signals could not be taken over", extra={"group_id": group.pk})
        return 0
    return done


def catch_up(lab: Lab, project: str) -> int:
    """The same for every group of a project, by its slug, that no monitor looks at by its signals."""
    return sum([absorb(lab, group) for group in _unwatched(project).rows()])


@prepared
def _unwatched(_now: datetime, project: str) -> QuerySet[TaskGroup]:
    watched = Monitor.objects.running().filter(is_fast=True).values("group")
    groups = TaskGroup.objects.filter(project__slug=project, closed_at=None, signals=True)
    return groups.exclude(pk__in=watched).select_related("project")


def _take(lab: Lab, group: TaskGroup, signal: Signal) -> bool:
    """Complete one task, unless its worker's output is known and lacks something."""
    worker = Worker.objects.filter(group=group, name=signal.worker).select_related("run").first()
    if worker is not None and worker.run is not None:
        try:
            why = tasks.lacking(lab, group, worker)
        except SeamError:
            return False
        if why:
            text = f"task #{signal.task} was not accepted from {worker.name}: {why}"
            _send_back(lab, group, worker.name, why, text)
            return False
    try:
        return tasks.signalled(lab, tasks.find(group, signal.task), signal.worker)
    except NotFound:
        return False


def _tell_sent_back(lab: Lab, group: TaskGroup) -> None:
    found = lab.signals.sent_back(signal_folders.folder(lab, group))
    workers = Worker.objects.filter(group=group) if found else ()
    known = {worker.name: worker.sent_back_why for worker in workers}
    for one in found:
        if one.worker not in known:
            continue
        if one.is_over and one.why == known[one.worker]:
            gone = Worker.objects.filter(group=group, name=one.worker, sent_back_why=one.why)
            gone.update(sent_back_at=None, sent_back_why="")
        elif not one.is_over and one.why != known[one.worker]:
            _send_back(lab, group, one.worker, one.why, f"{one.worker} was sent back: {one.why}")


def _send_back(lab: Lab, group: TaskGroup, worker: str, why: str, text: str) -> None:
    """Keep and tell why a worker was sent back, once for each reason."""
    with transaction.atomic():
        rows = Worker.objects.filter(group=group, name=worker).exclude(sent_back_why=why)
        if rows.update(sent_back_at=lab.now(), sent_back_why=why):
            announce.tell(lab, NoticeKind.TASK_SENT_BACK, text, group=group)


def _tell_crashes(lab: Lab, group: TaskGroup, keys: Collection[str]) -> None:
    """A hook that crashed is told at its task, which may be done while nobody knows."""
    for crash in lab.signals.crashed(signal_folders.folder(lab, group)):
        why = f" ({crash.why})" if crash.why else ""
        note = f"A hook crashed before its signal was there{why}; the task may be done."
        if crash.task in keys:
            with transaction.atomic():
                rows = Task.objects.filter(group=group, key=crash.task)
                rows = rows.exclude(status=TaskStatus.COMPLETED).exclude(note=note)
                if rows.update(note=note):
                    text = f"task #{crash.task}: {note}"
                    announce.tell(lab, NoticeKind.MONITOR_WARNED, text, group=group)
