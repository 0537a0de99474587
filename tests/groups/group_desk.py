"""A task group with a monitor, as rows: what a pass would have stored, without one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import transaction

from runs.core.ports import Lab
from runs.core.states import NoticeKind
from runs.groups.terms import Decision, MonitorState, TaskStatus
from runs.models import Checkpoint, Monitor, Notice, Project, TaskGroup, Worker
from runs.timeline import announce
from tests import make
from tests.fakes import START

BUSY = TaskStatus.IN_PROGRESS
DONE = TaskStatus.COMPLETED


def a_monitor(group: TaskGroup, **fields: Any) -> Monitor:
    """A running monitor of the `work` preset since START; one in another state has ended."""
    state = fields.setdefault("state", MonitorState.RUNNING)
    if state == MonitorState.RUNNING:
        fields.setdefault("look_at", START + timedelta(seconds=30))
        fields.setdefault("pass_at", START + timedelta(seconds=30))
    else:
        fields.setdefault("ended_at", START + timedelta(minutes=9))
    given = {
        "label": "Work",
        "preset": "work",
        "timeout_seconds": 1800,
        "release_seconds": 600,
        "has_checkpoints": True,
        "host": "local",
        "expected": group.tasks.count(),
        "started_at": START,
        "started_by": "anna",
        **fields,
    }
    return Monitor.objects.create(group=group, **given)


def a_checkpoint(monitor: Monitor, n: int = 1, **fields: Any) -> Checkpoint:
    given = {
        "at": START,
        "label": monitor.label,
        "completed": 1,
        "total": 4,
        "percentage": 25,
        "decision": Decision.CONTINUE,
        **fields,
    }
    monitor.checkpoint_count = n
    monitor.save(update_fields=["checkpoint_count"])
    return Checkpoint.objects.create(monitor=monitor, n=n, **given)


def tell(lab: Lab, group: TaskGroup, kind: NoticeKind, text: str, **more: Any) -> Notice:
    with transaction.atomic():
        return announce.tell(lab, kind, text, group=group, **more)


def a_wave(project: Project, lab: Lab, size: int = 4, **fields: Any) -> TaskGroup:
    """A quarter done, the second task with fa-2 since the start, a worker that was sent back."""
    group = make.a_group(project, made_by="anna")
    for number in range(1, size + 1):
        status = {1: DONE, 2: BUSY}.get(number, TaskStatus.PENDING)
        more = {"owner": "fa-2", "claim": 1, "claimed_at": START} if status is BUSY else {}
        make.a_task(group, str(number), status, **more)
    Worker.objects.create(group=group, name="fa-2")
    Worker.objects.create(
        group=group, name="fa-3", sent_back_at=START, sent_back_why="out/fa-3.md has 12 bytes"
    )
    seen = {"2": [1, 0.0], **fields.pop("seen", {})}
    monitor = a_monitor(group, milestone=25, seen=seen, **fields)
    a_checkpoint(monitor, 1, active=["Part 2"])
    tell(lab, group, NoticeKind.MONITOR_STARTED, "Work: No signal directory", by="anna")
    return group
