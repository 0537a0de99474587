"""Stores what a look at a monitor came to: once, by whoever read the version that it still has.

Everything of one turn is one transaction, so a process that dies in it leaves nothing half told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import (
    Case,
    DateTimeField,
    ExpressionWrapper,
    F,
    Q,
    QuerySet,
    When,
)
from django.db.models.functions import Least

from runs.core import lease
from runs.core.ports import Lab
from runs.core.states import NoticeKind
from runs.groups import monitor_rules, monitors
from runs.groups.fast_path import CHECK_EVERY
from runs.groups.monitor_models import FAR, columns
from runs.groups.monitor_rules import Event, Kind, Memory
from runs.groups.terms import Decision, MonitorState, Result, TaskStatus
from runs.models import Checkpoint, Monitor, Task
from runs.timeline import announce

_KINDS = {
    Kind.PROGRESS: NoticeKind.MONITOR_PROGRESS,
    Kind.CHECKPOINT: NoticeKind.MONITOR_CHECKPOINT,
    Kind.STALLED: NoticeKind.MONITOR_WARNED,
    Kind.RELEASED: NoticeKind.TASK_RELEASED,
    Kind.TIMEOUT: NoticeKind.MONITOR_WARNED,
    Kind.SIGNALS: NoticeKind.MONITOR_PROGRESS,
    Kind.FELL_BACK: NoticeKind.MONITOR_WARNED,
}


@dataclass(frozen=True, slots=True)
class Turn:
    """What is to be stored of a monitor that was looked at: events, memory, times or an end."""

    events: tuple[Event, ...] = ()
    is_fast: bool = False
    checks: int = 0
    pass_at: datetime | None = None
    check_at: datetime | None = None
    memory: Memory | None = None
    end: MonitorState | None = None
    result: Result | None = None
    error: str = ""

    @property
    def is_check(self) -> bool:
        """Whether it is a check of a signal folder after which the monitor only waits on."""
        return self.is_fast and self.memory is None and self.end is None


def store(lab: Lab, row: Monitor, turn: Turn, number: int) -> bool:
    """Store a turn and tell of it; False: another tick, a person or a closed group was first."""
    now = lab.now()
    with transaction.atomic():
        ours = _ours(lab, number).filter(pk=row.pk, version=row.version)
        if not ours.update(**_columns(row, turn, now)):
            return False
        told = [(*_told(event), row.group) for event in turn.events if _holds(event)]
        if turn.end is not None:
            told.append((NoticeKind.MONITOR_ENDED, _end_words(row, turn), row.group))
        announce.tell_all(lab, told)
        Checkpoint.objects.bulk_create(_checkpoints(row, turn, now))
    return True


def store_checks(
    lab: Lab, checks: Sequence[tuple[Monitor, Turn]], number: int, now: datetime
) -> None:
    """Count the checks after which monitors wait on, and tell of those that have a progress to tell.

    A handful of statements for any number of monitors; one whose check another tick has counted
    already, or that has ended meanwhile, is left out.
    """
    if not checks:
        return
    in_time = Q(check_at__gt=now - CHECK_EVERY, check_at__lte=now)
    plus = ExpressionWrapper(F("check_at") + CHECK_EVERY, DateTimeField())
    after = Case(When(in_time, then=plus), default=now + CHECK_EVERY)
    due = Q(check_at__lte=now) | Q(check_at__gt=now + CHECK_EVERY)
    rows = _ours(lab, number).filter(due, pk__in=[row.pk for row, _ in checks])
    with transaction.atomic():
        won: set[int] = set()
        if any(turn.events for _, turn in checks):
            won.update(rows.select_for_update(of=("self",)).values_list("pk", flat=True))
        rows.update(checks=F("checks") + 1, check_at=after, look_at=Least(F("pass_at"), after))
        said = [
            (row.group, event) for row, turn in checks if row.pk in won for event in turn.events
        ]
        announce.tell_all(lab, [(*_told(event), group) for group, event in said])


def _ours(lab: Lab, number: int) -> QuerySet[Monitor]:
    """Running monitors, as long as this tick holds the lease."""
    return Monitor.objects.running().filter(lease.is_held(lab, number))


def _columns(row: Monitor, turn: Turn, now: datetime) -> dict[str, Any]:
    kept: dict[str, Any] = dict(columns(turn.memory)) if turn.memory is not None else {}
    if turn.end is not None:
        kept |= {**monitors.ended(turn.end), "ended_at": now, "error": turn.error}
        if turn.result is not None:
            kept["completed"] = list(turn.result.completed)
            kept["incomplete"] = list(turn.result.incomplete)
            kept["timed_out"] = turn.result.timed_out
        return kept
    times = [at for at in (turn.pass_at, turn.check_at) if at is not None]
    return kept | {
        "is_fast": turn.is_fast,
        "checks": turn.checks,
        "pass_at": turn.pass_at,
        "check_at": turn.check_at,
        # A time too far ahead counts as wrong, so a long interval is looked at in between.
        "look_at": min([*times, now + FAR]),
        "version": row.version + 1,
    }


def _holds(event: Event) -> bool:
    """Whether an event may be told; a release only when the task was still as it was listed."""
    if event.kind is not Kind.RELEASED or event.task is None:
        return True
    rows = Task.objects.filter(pk=event.task.pk, claim=event.task.claim, issue_key="")
    return bool(
        rows.filter(status=TaskStatus.IN_PROGRESS).update(
            status=TaskStatus.PENDING, owner="", claimed_at=None, run=None, note=event.text
        )
    )


def _told(event: Event) -> tuple[NoticeKind, str]:
    point = event.checkpoint
    if point is not None and point.decision is Decision.INVESTIGATE:
        return NoticeKind.MONITOR_INVESTIGATE, event.text
    return _KINDS[event.kind], event.text


def _end_words(row: Monitor, turn: Turn) -> str:
    label, result = row.label, turn.result
    if result is None:
        return (
            f"{label}: the tasks could not be listed, so the monitor ended without a result; "
            f"no task changed. Start it again when this is mended: {turn.error}"
        )
    if result.timed_out:
        return monitor_rules.partial(row.options, result, row.expected)
    left = f", {len(result.incomplete)} incomplete" if result.incomplete else ""
    return f"{label} completed: {len(result.completed)}/{row.expected}{left}"


def _checkpoints(row: Monitor, turn: Turn, now: datetime) -> list[Checkpoint]:
    points = [event.checkpoint for event in turn.events if event.checkpoint is not None]
    return [
        Checkpoint(
            monitor=row,
            at=now,
            n=point.n,
            label=point.label,
            completed=point.completed,
            total=point.total,
            percentage=point.percentage,
            active=list(point.active),
            blockers=list(point.blockers),
            decision=point.decision,
        )
        for point in points
    ]
