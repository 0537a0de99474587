"""A watched group on the fake outside, and the days that it lives through."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from runs import tick
from runs.core.states import NoticeKind
from runs.groups import monitors, signal_folders
from runs.groups.signal_rules import Signal
from runs.groups.terms import TaskStatus
from runs.models import Monitor, Notice, Project, Task, TaskGroup
from tests import make
from tests.fakes import START, World

OFFER = 5


def a_watched(
    world: World,
    tasks: int = 4,
    *,
    fast: bool = False,
    project: str = "demo",
    name: str = "wave",
    **given: Any,
) -> Monitor:
    """A monitor of a new group, not looked at yet: the preset `work` with what is given."""
    home = Project.objects.filter(name=project).first() or make.a_project(project)
    group = make.a_group(home, name, tasks)
    if fast:
        prepare(world, group)
    return monitors.start(world.lab, group, by="anna", given=given)


def prepare(world: World, group: TaskGroup) -> None:
    """Set up a group's signal folder."""
    with transaction.atomic():
        signal_folders.prepare(world.lab, group)
    group.refresh_from_db()


def claim(monitor: Monitor, *keys: str, owner: str = "fa-1") -> None:
    for task in Task.objects.filter(group=monitor.group_id, key__in=keys):
        task.status, task.owner, task.claimed_at = TaskStatus.IN_PROGRESS, owner, START
        task.claim += 1
        task.save()


def complete(monitor: Monitor, *keys: str) -> None:
    """Completed in the database, and no signal."""
    rows = Task.objects.filter(group=monitor.group_id, key__in=keys)
    rows.update(status=TaskStatus.COMPLETED, completed_at=START)


def signal(world: World, monitor: Monitor, *keys: str) -> None:
    """Completed by a worker, with a signal and nothing in the database."""
    folder = signal_folders.folder(world.lab, monitor.group)
    for key in keys:
        said = Signal(key, "fa-1", f"Part {key}", world.clock().isoformat())
        world.signals.write(folder, said)


def offer(world: World, seconds: float = OFFER) -> tick.Report:
    """Time passes, and the periodic task is offered."""
    world.clock.forward(seconds=seconds)
    return tick.tick(world.lab)


def passes(world: World, count: int, seconds: float = 30) -> None:
    """So many passes, each an interval after the one before."""
    for _ in range(count):
        offer(world, seconds)


def told(*kinds: NoticeKind) -> list[str]:
    """What was told, in order; of some kinds, or of all."""
    rows = Notice.objects.order_by("pk")
    return list((rows.filter(kind__in=kinds) if kinds else rows).values_list("text", flat=True))


def listings(seen: CaptureQueriesContext) -> int:
    """How often tasks were listed."""
    return sum(
        q["sql"].startswith("SELECT") and 'FROM "runs_task" ' in q["sql"]
        for q in seen.captured_queries
    )


def watched() -> CaptureQueriesContext:
    """Queries, to be counted."""
    return CaptureQueriesContext(connection)


def random_moments(count: int, within: float, seed: int = 7) -> Sequence[timedelta]:
    """Moments of completions, the same in every run of the tests."""
    dice = random.Random(seed)  # noqa: S311
    return [timedelta(seconds=dice.uniform(0, within)) for _ in range(count)]
