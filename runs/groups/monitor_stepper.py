"""Looks at due monitors in a tick, and stores what a look came to over the version that it read."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, InterfaceError, OperationalError, transaction
from django.db.models import Case, DateTimeField, ExpressionWrapper, F, Q, QuerySet, When
from django.db.models.functions import Least

from runs.core import budgets, database, lease
from runs.core.database import prepared
from runs.core.database_trouble import database_words
from runs.core.ports import Lab
from runs.core.states import NoticeKind
from runs.core.tick_context import TickContext
from runs.groups import fast_path, monitor_rules, monitors, signal_folders, signal_import, terms
from runs.groups.fast_path import CHECK_EVERY, Check, Next
from runs.groups.models import FAR, columns
from runs.groups.monitor_rules import End, Event, Kind, Memory
from runs.groups.terms import Decision, MonitorState, Result, TaskFacts, TaskStatus
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
        if not lease.update(
            Monitor.objects.running(), row, lab, number, **_columns(row, turn, now)
        ):
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
    rows = Monitor.objects.running().filter(
        lease.is_held(lab, number), due, pk__in=[row.pk for row, _ in checks]
    )
    with transaction.atomic():
        won: set[int] = set()
        if any(turn.events for _, turn in checks):
            won.update(rows.select_for_update(of=("self",)).values_list("pk", flat=True))
        rows.update(checks=F("checks") + 1, check_at=after, look_at=Least(F("pass_at"), after))
        said = [
            (row.group, event) for row, turn in checks if row.pk in won for event in turn.events
        ]
        announce.tell_all(lab, [(*_told(event), group) for group, event in said])


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


logger = logging.getLogger(__name__)

AT_ONCE = 50
_STATUS = {status.value: status for status in TaskStatus}


class NotListed(Exception):
    """The tasks of a group could not be listed; nothing is retried."""


def look(tick: TickContext) -> None:
    """Look at every due monitor of this host, and at all signals of the tick's project now.

    One query finds them; each pass lists the tasks of its group once. What goes wrong with one
    keeps no other waiting; a database that stores nothing keeps all of them. Raises lease.Lost.
    """
    try:
        _look(tick)
    except (OperationalError, InterfaceError) as error:
        # The runs of this host are still to be looked at, if the database is there for them.
        tick.errors.append(database_words(str(error)))
        database.renew_connection()


def _look(tick: TickContext) -> None:
    lab, project, now = tick.lab, tick.project, tick.lab.now()
    checks: list[tuple[Monitor, Turn]] = []
    for count, row in enumerate(_wanted(lab, now, project), 1):
        if count % AT_ONCE == 0:
            tick.keep_lease()
        with tick.going_on(
            f"monitor {row.pk} was not looked at",
            OperationalError,
            InterfaceError,
            monitor_id=row.pk,
        ):
            turn = look_at(lab, row, now, is_woken=row.group.project.slug == project)
            if turn is not None and turn.is_check:
                checks.append((row, turn))
            elif turn is not None:
                store(lab, row, turn, tick.number)
    store_checks(lab, checks, tick.number, now)
    if project:
        signal_import.catch_up(lab, project)


def _wanted(lab: Lab, now: datetime, project: str) -> list[Monitor]:
    return _due(lab.host, project).rows(now)


@prepared
def _due(now: datetime, host: str, project: str) -> QuerySet[Monitor]:
    rows = Monitor.objects.due(host, now)
    if project:
        mine = Q(host=host, is_fast=True, group__project__slug=project)
        rows |= Monitor.objects.running().filter(mine)
    return rows.select_related("group__project").order_by("pk")


def look_at(lab: Lab, row: Monitor, now: datetime, *, is_woken: bool = False) -> Turn | None:
    """What a look at one monitor comes to; None: nothing was due, and nothing is new."""
    try:
        return _look_at(lab, row, now, is_woken=is_woken)
    except NotListed as error:
        return Turn(end=MonitorState.ERROR, error=str(error))


def _look_at(lab: Lab, row: Monitor, now: datetime, *, is_woken: bool) -> Turn | None:
    elapsed = budgets.age(now, row.started_at)
    is_pass_due = budgets.is_due(now, row.pass_at, row.options.poll)
    is_check_due = row.is_fast and budgets.is_due(now, row.check_at, CHECK_EVERY)
    turn = Turn((), row.is_fast, row.checks, row.pass_at, row.check_at)
    if row.is_fast and (is_woken or is_pass_due):
        signal_import.absorb(lab, row.group)
    if row.is_fast and (is_check_due or is_woken):
        found = _check(lab, row, row.checks + 1 if is_check_due else 0, elapsed)
        if found.next in (Next.FINISH, Next.TIME_OUT):
            swept = _swept(lab, row, found)
            if swept is not None:
                return swept
            found = fast_path.corrupted(row.options)
        turn = replace(turn, events=found.events)
        if is_check_due:
            after = budgets.next_turn(now, row.check_at or now, CHECK_EVERY)
            turn = replace(turn, checks=row.checks + 1, check_at=after)
        if found.next is Next.FALL_BACK:
            turn, is_pass_due = replace(turn, is_fast=False, check_at=None), True
        elif not (is_pass_due or is_check_due):
            return None
    return _passed(lab, row, turn, now, elapsed) if is_pass_due else turn


def _check(lab: Lab, row: Monitor, number: int, elapsed: timedelta) -> Check:
    """One check of the signal folder, which is the same work for any number of tasks."""
    folder, options = signal_folders.folder(lab, row.group), row.options
    is_counted = fast_path.is_counted(options, number, elapsed)
    return fast_path.check(
        options,
        row.expected,
        number,
        lab.signals.sentinel(folder),
        lab.signals.count(folder) if is_counted else None,
        elapsed,
    )


def _swept(lab: Lab, row: Monitor, found: Check) -> Turn | None:
    """All signals are there, or the time is up: the tasks are listed once, and that is the end.

    None when the sentinel says that all is done and the list says otherwise: the list is right.
    """
    signal_import.absorb(lab, row.group)
    is_late = found.next is Next.TIME_OUT
    result = terms.split(_listed(lab, row), timed_out=is_late)
    done = len(result.completed)
    memory, last = row.memory, tuple[Event, ...]()
    if not is_late and done < row.expected:
        return None
    if not is_late:
        memory, last = monitor_rules.closing(row.options, row.expected, memory, done)
    end = MonitorState.TIMED_OUT if is_late else MonitorState.COMPLETE
    return Turn((*found.events, *last), memory=memory, end=end, result=result)


def _passed(lab: Lab, row: Monitor, turn: Turn, now: datetime, elapsed: timedelta) -> Turn:
    """One pass by listing. On the fast path it does the same."""
    options = row.options
    found = monitor_rules.look(options, row.expected, row.memory, _listed(lab, row), elapsed)
    turn = replace(turn, events=(*turn.events, *found.events), memory=found.memory)
    if found.end is End.COMPLETE:
        return replace(turn, end=MonitorState.COMPLETE, result=found.result)
    if found.end is End.TIMEOUT:
        result = terms.split(_listed(lab, row), timed_out=True)
        return replace(turn, end=MonitorState.TIMED_OUT, result=result)
    return replace(turn, pass_at=budgets.next_turn(now, row.pass_at or now, options.poll))


def _listed(lab: Lab, row: Monitor) -> list[TaskFacts]:
    """The tasks of a group, in one query."""
    rows = Task.objects.filter(group_id=row.group_id).order_by("pk")
    names = ("pk", "key", "subject", "status", "claim", "issue_key")
    try:
        return [
            TaskFacts(pk, key, subject, _STATUS[status], claim, not issue)
            for pk, key, subject, status, claim, issue in rows.values_list(*names)
        ]
    except DatabaseError as error:
        raise NotListed(str(error)) from error
