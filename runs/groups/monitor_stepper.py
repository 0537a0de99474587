"""Looks at due monitors in a tick: a check of a signal folder, a listing, the rule (RUNE, C-22, C-25).

Whoever dies in between loses nothing: the next tick looks at what is stored.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime, timedelta

from django.db import DatabaseError, InterfaceError, OperationalError
from django.db.models import Q

from runs.core import budgets, connections
from runs.core.database_trouble import database_words
from runs.core.ports import Lab
from runs.core.tick_context import TickContext
from runs.groups import fast_path, monitor_rules, monitor_turns, signal_folders, signal_import
from runs.groups import terms as grouping
from runs.groups.fast_path import CHECK_EVERY, Check, Next
from runs.groups.monitor_rules import End, Event
from runs.groups.monitor_turns import Turn
from runs.groups.terms import MonitorState, TaskFacts, TaskStatus
from runs.models import Monitor, Project, Task

logger = logging.getLogger(__name__)

AT_ONCE = 50
_STATUS = {status.value: status for status in TaskStatus}


class NotListed(Exception):
    """The tasks of a group could not be listed; nothing is retried (C-25)."""


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
        connections.renew()


def _look(tick: TickContext) -> None:
    lab, project, now = tick.lab, tick.project, tick.lab.now()
    checks: list[tuple[Monitor, Turn]] = []
    for count, row in enumerate(_wanted(lab, now, project), 1):
        if count % AT_ONCE == 0:
            tick.keep_lease()
        with tick.going_on(f"monitor {row.pk} was not looked at", OperationalError, InterfaceError):
            turn = look_at(lab, row, now, is_woken=row.group.project.slug == project)
            if turn is not None and turn.is_check:
                checks.append((row, turn))
            elif turn is not None:
                monitor_turns.store(lab, row, turn, tick.number)
    monitor_turns.store_checks(lab, checks, tick.number, now)
    for woken in Project.objects.filter(slug=project) if project else ():
        signal_import.catch_up(lab, woken)


def _wanted(lab: Lab, now: datetime, project: str) -> list[Monitor]:
    rows = Monitor.objects.due(lab.host, now)
    if project:
        mine = Q(host=lab.host, is_fast=True, group__project__slug=project)
        rows = rows | Monitor.objects.running().filter(mine)
    return list(rows.select_related("group__project").order_by("pk"))


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
    """One check of the signal folder, which is the same work for any number of tasks (RUNE-85)."""
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
    result = grouping.split(_listed(lab, row), timed_out=is_late)
    done = len(result.completed)
    memory, last = row.memory, tuple[Event, ...]()
    if not is_late and done < row.expected:
        return None
    if not is_late:
        memory, last = monitor_rules.closing(row.options, row.expected, memory, done)
    end = MonitorState.TIMED_OUT if is_late else MonitorState.COMPLETE
    return Turn((*found.events, *last), memory=memory, end=end, result=result)


def _passed(lab: Lab, row: Monitor, turn: Turn, now: datetime, elapsed: timedelta) -> Turn:
    """One pass by listing. On the fast path it does the same (RUNE-82)."""
    options = row.options
    found = monitor_rules.look(options, row.expected, row.memory, _listed(lab, row), elapsed)
    turn = replace(turn, events=(*turn.events, *found.events), memory=found.memory)
    if found.end is End.COMPLETE:
        return replace(turn, end=MonitorState.COMPLETE, result=found.result)
    if found.end is End.TIMEOUT:
        result = grouping.split(_listed(lab, row), timed_out=True)
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
