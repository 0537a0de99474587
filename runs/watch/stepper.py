"""Steps the open watch sessions in a tick: facts, the rule, what it asks for (MALA-W).

Each step is stored before it is acted on, by whoever read the version that the session still has.
A process that dies in between loses nothing: the next tick steps from what is stored.
"""

from __future__ import annotations

import functools
import logging
import operator
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from runs.core import lease
from runs.core.database import prepared
from runs.core.ports import Lab
from runs.core.states import NoticeKind
from runs.core.tick_context import TickContext
from runs.dispatch import scope
from runs.models import Run, Settings, WatchSession
from runs.timeline import announce
from runs.validation import acts as validation_acts
from runs.watch import acts, ending_runs, rules
from runs.watch.models import FAR
from runs.watch.session import (
    Do,
    Facts,
    Phase,
    Poll,
    Reason,
    Request,
    Session,
    Step,
    Terms,
    Validation,
)

logger = logging.getLogger(__name__)

MOST_STEPS = 20
AT_ONCE = 200
_COLUMNS = (
    *("phase", "completed", "failed", "threshold", "validated", "poll_failures"),
    *("next_poll_at", "idle_noted_at", "code"),
)

STORED = (*_COLUMNS, "reason", "validation", "look_at", "version")
_MARKS = ("version", "next_poll_at", "look_at", "request")


def look(tick: TickContext) -> list[WatchSession]:
    """Step every open session; those that ask their queue now, longest ago started first.

    One query while nothing changes, whatever their number. Whoever forces a tick wants every queue
    asked. Raises lease.Lost.
    """
    asking = []
    for row in _open_sessions().rows():
        if tick.is_forced:
            row.next_poll_at = None
        with tick.going_on(f"watch session {row.pk} was not stepped", watch=row.pk):
            _follow_switch(tick.lab, row)
            if advance(tick, row):
                asking.append(row)
    return asking


@prepared
def _open_sessions(_now: datetime) -> QuerySet[Any, Any]:
    order = F("project__last_opened_at").asc(nulls_first=True)
    rows = WatchSession.objects.open().select_related("project", "project__agent")
    live = Run.objects.active().filter(project=OuterRef("project"))
    found: QuerySet[Any, Any] = scope.with_active(rows).annotate(is_live=Exists(live))
    return found.order_by(order, "pk")


def advance(tick: TickContext, row: Any, poll: Poll | None = None) -> Step | None:
    """Step one session until it waits; the step with which it asks for its queue or for runs.

    None: there is nothing to ask and to start.
    """
    lab, number, asked_at = tick.lab, tick.number, row.next_poll_at
    for _ in range(MOST_STEPS):
        done = decide(tick, row, poll)
        if done.do is Do.POLL:
            return None if _waits(lab, row) else done
        if not store(lab, row, done, number):
            # The count or a request changed meanwhile. An answer from before is worth nothing to
            # whoever wants to be asked anew.
            if not read_again(row):
                return None
            poll = poll if row.next_poll_at == asked_at else None
            continue
        if done.do is Do.START:
            return done
        poll = None
        if not _act(lab, row, done.do, number):
            return None
    return None


def _follow_switch(lab: Lab, row: Any) -> None:
    """Somebody may have turned the switch in the admin, which knows no sessions."""
    if row.is_auto and not row.project.is_auto and not row.request:
        acts.drain(lab, row, by="")
        read_again(row)


def _is_proving(row: WatchSession) -> bool:
    """Whether each issue is validated: a session without an end would prove and close nothing else."""
    return row.is_auto and row.every is None and row.project.has_gates


def of(row: WatchSession, settings: Settings) -> Session:
    """A session as the rule sees it."""
    every = row.project.poll_interval or (
        settings.launch_interval if row.is_auto else settings.watch_interval
    )
    is_proving = _is_proving(row)
    after = 1 if is_proving else row.every
    threshold = row.validated + 1 if is_proving else row.threshold
    return Session(
        Terms(row.is_watching, row.limit, after, every, row.is_auto),
        phase=Phase(row.phase),
        completed=row.completed,
        failed=row.failed,
        unstarted=row.unstarted,
        stopped=row.stopped,
        threshold=threshold,
        validated=row.validated,
        poll_failures=row.poll_failures,
        next_poll_at=row.next_poll_at,
        idle_noted_at=row.idle_noted_at,
        ending=Reason(row.reason) if row.reason else None,
        code=row.code,
    )


def decide(tick: TickContext, row: Any, poll: Poll | None = None) -> Step:
    """The next step of a session that was read with its active runs."""
    return rules.step(of(row, tick.settings), _facts(tick.lab, row, poll))


def _facts(lab: Lab, row: Any, poll: Poll | None) -> Facts:
    return Facts(
        lab.now(),
        active=row.active,
        poll=poll,
        validation=Validation(row.validation),
        request=Request(row.request),
        asked_at=row.asked_at,
        is_paused=row.project.is_paused,
    )


def changes(lab: Lab, row: WatchSession, done: Step) -> dict[str, object]:
    """The columns that a step changes, the next look among them."""
    session = done.session
    wanted: dict[str, object] = {name: getattr(session, name) for name in _COLUMNS}
    if _is_proving(row):  # as long as its project has gates
        wanted["threshold"] = row.threshold
    wanted["reason"] = session.ending or ""
    wanted["validation"] = _validation(row, done)
    wanted["look_at"] = _look_at(row, session, lab.now())
    if session.phase is Phase.ENDED:
        wanted["ended_at"] = lab.now()
        wanted["needs_resume"] = row.is_auto and session.code == 3
        wanted["retry_at"] = lab.now() + rules.resume_wait(0) if wanted["needs_resume"] else None
    return {name: value for name, value in wanted.items() if getattr(row, name) != value}


def store_all(rows: Sequence[WatchSession]) -> list[WatchSession]:
    """Store what was set on sessions whose version grew by one; those that somebody else changed.

    A handful of statements for any number of sessions.
    """
    lost: list[WatchSession] = []
    for first in range(0, len(rows), AT_ONCE):
        some = rows[first : first + AT_ONCE]
        mine = [Q(pk=row.pk, version=row.version - 1) for row in some]
        wanted = WatchSession.objects.open().filter(functools.reduce(operator.or_, mine))
        if _update(wanted, some) < len(some):
            lost += _lost(some)
    return lost


def _update(wanted: QuerySet[WatchSession], rows: Sequence[WatchSession]) -> int:
    if len(rows) > 1:
        return wanted.bulk_update(rows, STORED)
    return wanted.update(**{name: getattr(rows[0], name) for name in STORED})


def _lost(rows: Sequence[WatchSession]) -> list[WatchSession]:
    kept = WatchSession.objects.filter(pk__in=[row.pk for row in rows]).values_list("pk", *_MARKS)
    known = {pk: marks for pk, *marks in kept}
    return [row for row in rows if known.get(row.pk) != [getattr(row, name) for name in _MARKS]]


def store(lab: Lab, row: WatchSession, done: Step, number: int) -> bool:
    """Store a step, tell of it, and begin a validation that it asks for; False: somebody was first."""
    changed = changes(lab, row, done)
    if not changed and not done.notice:
        return True
    with transaction.atomic():
        if not lease.update(WatchSession.objects.open(), row, lab, number, **changed):
            return False
        for name, value in {**changed, "version": row.version + 1}.items():
            setattr(row, name, value)
        _tell(lab, row, done)
        if done.do is Do.VALIDATE:
            validation_acts.begin(lab, row)
    return True


def _validation(row: WatchSession, done: Step) -> str:
    """What the session waits for after this step: an answer is heard once."""
    if done.do is Do.VALIDATE:
        return Validation.RUNNING
    return row.validation if row.validation == Validation.RUNNING else Validation.NONE


def _look_at(row: WatchSession, session: Session, now: datetime) -> datetime:
    """When there may be something to do next; what waits for an event is woken by it."""
    if row.request >= Request.ABORT and row.asked_at is not None:
        until = row.asked_at + rules.GRACE
        if until > now:
            return until
    if session.next_poll_at is not None:
        return session.next_poll_at
    is_far = row.look_at is not None and now < row.look_at <= now + FAR
    return row.look_at if row.look_at is not None and is_far else now + FAR


def _tell(lab: Lab, row: WatchSession, done: Step) -> None:
    if done.notice:
        kind = NoticeKind.WATCH_IDLE
        announce.tell(lab, kind, done.notice, project=row.project, watch_id=row.pk)
    if done.do is Do.END:
        text = f"watch session {row.pk} ended: {row.reason} (exit code {row.code}); {_counts(row)}"
        if row.needs_resume:
            text = (
                f"{text}. Automatic work is stopped: tracker unreachable. It goes on by itself when "
                "the tracker answers again; Resume asks at once"
            )
        is_failed = row.code in rules.FAILED
        kind = NoticeKind.WATCH_FAILED if is_failed else NoticeKind.WATCH_ENDED
        announce.tell(lab, kind, text, project=row.project, watch_id=row.pk)


def _counts(row: WatchSession) -> str:
    parts = [f"{row.completed} completed"]
    parts += [f"{row.failed} of them failed"] if row.failed else []
    parts += [f"{row.unstarted} could not start"] if row.unstarted else []
    parts += [f"{row.stopped} stopped by a person"] if row.stopped else []
    return ", ".join(parts)


def _act(lab: Lab, row: Any, do: Do, number: int) -> bool:
    """Do what a stored step asks for; True when there is another step to take now."""
    if do is Do.CANCEL:
        ending_runs.interrupt(lab, row, number)
    elif do is Do.KILL:
        ending_runs.kill(lab, row, number)
    elif do is not Do.VALIDATE:
        return False
    if not read_again(row):
        return False
    return do is not Do.CANCEL or not (row.active or row.validation)


def _waits(lab: Lab, row: Any) -> bool:
    """Whether starts that came to nothing have to be given a while before the queue is asked."""
    retry_at = row.project.retry_at
    if retry_at is None or lab.now() >= retry_at:
        return False
    if row.look_at != retry_at:
        rows = WatchSession.objects.filter(pk=row.pk, version=row.version)
        rows.update(look_at=min(retry_at, lab.now() + FAR))
    return True


def read_again(row: Any) -> bool:
    """The session as it is stored now; False when it has ended or its project is gone."""
    rows = WatchSession.objects.open().filter(pk=row.pk)
    fresh = scope.with_active(rows.select_related("project", "project__agent")).first()
    if fresh is None:
        return False
    row.__dict__.update(fresh.__dict__)
    return True
