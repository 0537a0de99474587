"""A group's signal folder: set up before anybody works, kept in step, taken away.

The folder only makes a monitor quicker. Whatever a disk does not take is a line in the log, and the
group is watched by listing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from django.db import transaction

from runs.core.ports import Lab, SeamError
from runs.groups.signal_rules import Inscription, Output, Signal
from runs.groups.terms import TaskStatus, is_name
from runs.models import Monitor, Project, Task, TaskGroup, Worker

logger = logging.getLogger(__name__)


def folder(lab: Lab, group: TaskGroup) -> Path:
    """Where the signals of a group are."""
    return lab.paths.signals(group.project.slug, group.name)


def prepare(lab: Lab, group: TaskGroup) -> None:
    """Once a new group is stored, set up its folder, unless the project has signals off."""
    transaction.on_commit(lambda: _prepare(lab, group), robust=True)


def expect(lab: Lab, group: TaskGroup) -> None:
    """Once it is stored that the group has other tasks or another monitor, say how many it waits for."""
    if group.signals:
        transaction.on_commit(
            lambda: _tried(
                group,
                lambda: lab.signals.expect(folder(lab, group), expected(group), inscription(group)),
            ),
            robust=True,
        )


def completed(lab: Lab, task: Task) -> None:
    """Once a completion is stored, leave its signal, whoever completed it."""
    group = task.group
    if group.signals:
        signal = _signal(task, lab.now())
        transaction.on_commit(lambda: _leave(lab, group, signal), robust=True)


def clean(lab: Lab, group: TaskGroup) -> None:
    """Once it is stored that the group is over, remove its folder."""
    if group.signals:
        transaction.on_commit(lambda: _clean(lab, group), robust=True)


def expected(group: TaskGroup) -> int:
    """How many signals are waited for: what its monitor expects, else as many as it has tasks."""
    monitor = Monitor.objects.running().filter(group=group).values_list("expected", flat=True)
    return monitor.first() or Task.objects.filter(group=group).count()


def inscription(group: TaskGroup) -> Inscription:
    """What is agreed for a group; signals of tasks that follow a run come from labsite alone."""
    workers = Worker.objects.filter(group=group).values_list("name", "output_file")
    tasks = Task.objects.filter(group=group, issue_key="").values_list("key", flat=True)
    return Inscription(
        workflow=group.preset,
        timestamp=f"{group.made_at:%Y-%m-%dT%H:%M:%SZ}",
        output_dir=group.output_dir,
        workers=tuple(Output(name, file) for name, file in workers),
        tasks=tuple(tasks),
    )


def sweep(lab: Lab, project: Project) -> None:
    """Remove folders of a project that no open group has any more. Raises SeamError."""
    # Folders first: one of a group that is made meanwhile is not among them, and stays.
    for name in lab.signals.names(lab.paths.signals(project.slug)):
        if not TaskGroup.objects.filter(project=project, closed_at=None, name=name).exists():
            lab.signals.clean(lab.paths.signals(project.slug, name))

    sweep_gone(lab)


def sweep_gone(lab: Lab) -> None:
    """Remove folders of projects that are there no more. Raises SeamError.

    Cut short, it goes on at the next sweep: a project's own folder goes last.
    """
    # Folders first, as above: those that a new project of that name makes meanwhile stay.
    found = {
        slug: lab.signals.names(lab.paths.signals(slug))
        for slug in lab.signals.names(lab.paths.signals())
    }
    for slug in found.keys() - set(Project.objects.values_list("slug", flat=True)):
        for name in found[slug]:
            lab.signals.clean(lab.paths.signals(slug, name))
        lab.signals.drop(lab.paths.signals(slug))


def clean_all(lab: Lab) -> int:
    """Remove every signal folder; how many open groups are watched by listing from now on.

    Raises SeamError.
    """
    lab.signals.clean_all(lab.paths.signals())
    return TaskGroup.objects.filter(closed_at=None, signals=True).update(signals=False)


def _prepare(lab: Lab, group: TaskGroup) -> None:
    if not group.project.signals:
        return

    def prepare() -> None:
        lab.signals.prepare(folder(lab, group), expected(group), inscription(group))
        for task in Task.objects.filter(group=group, status=TaskStatus.COMPLETED):
            lab.signals.write(folder(lab, group), _signal(task, lab.now()))
        rows = TaskGroup.objects.filter(pk=group.pk, closed_at=None)
        group.signals = bool(rows.update(signals=True))

    _tried(group, prepare)


def _signal(task: Task, at: datetime) -> Signal:
    worker = task.owner if is_name(task.owner) else ""
    return Signal(task.key, worker, task.subject, f"{at:%Y-%m-%dT%H:%M:%SZ}")


def _leave(lab: Lab, group: TaskGroup, signal: Signal) -> None:
    _tried(group, lambda: lab.signals.write(folder(lab, group), signal))
    lab.bell.look(group.project.slug)


def _clean(lab: Lab, group: TaskGroup) -> None:
    taken = TaskGroup.objects.filter(project=group.project, name=group.name, closed_at=None)
    if not taken.exists():
        _tried(group, lambda: lab.signals.clean(folder(lab, group)))


def _tried(group: TaskGroup, act: Callable[[], object]) -> None:
    try:
        act()
    except SeamError as error:
        what = {"group_id": group.pk, "error": str(error)}
        logger.warning("signals of a group could not be used", extra=what)
