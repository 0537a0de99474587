"""The rule of a watch session: from what is stored and seen to one next act (MALA-W).

`step` is asked again after each act, with the act's answer among the facts, until it says wait.
It knows no clock and no database, so a restart between two steps loses nothing.
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime, timedelta

from runs.core import budgets
from runs.core.states import GOOD, NEUTRAL, Outcome, ValidationState
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

NOTICE_EVERY = timedelta(seconds=300)
GRACE = timedelta(seconds=10)
RESUME_FIRST, RESUME_LONGEST = timedelta(minutes=1), timedelta(minutes=15)
MOST_FAILURES = 3
FAILED = (1, 3)  # codes that somebody has to look at; what a person interrupted is none


def opened(terms: Terms) -> Session:
    """A session before its first step."""
    return Session(terms, threshold=terms.every)


def counted(session: Session, *, is_success: bool) -> Session:
    """After an issue came to its end. The queue may hold others now."""
    failed = session.failed + (not is_success)
    return replace(session, completed=session.completed + 1, failed=failed, next_poll_at=None)


def counts(outcome: Outcome, did_start: bool) -> bool | None:
    """Whether an ended run counts as a success or a failure; None: it does not count.

    What a person or a limit ended counts as nothing, and so does what never came to life.
    """
    if outcome in GOOD:
        return True
    if outcome in NEUTRAL or not did_start:
        return None
    return False


def step(session: Session, facts: Facts) -> Step:
    """What is to be done next, and what is to be stored before it is done."""
    if session.phase is Phase.ENDED:
        return Step(session)
    asked = _asked(session, facts)
    if asked is not None:
        return asked
    if facts.validation is Validation.PASSED:
        session = _validated(session)
    session = _polled(session, facts.poll)
    session = replace(session, ending=session.ending or _why_end(session, facts))
    if session.ending is not None:
        return _drain(session, facts)
    if session.threshold is not None and session.completed >= session.threshold:
        return _validate(session, facts, Phase.WAITING)
    return _go_on(session, facts)


def _asked(session: Session, facts: Facts) -> Step | None:
    """What a person or a validation decides by itself; None when neither does."""
    if facts.request is Request.KILL:
        do = Do.KILL if facts.active or facts.validation is Validation.RUNNING else Do.END
        return _ending(session, Reason.INTERRUPTED, do, code=130)
    if facts.validation is Validation.FAILED:
        session = replace(session, ending=Reason.VALIDATION_FAILED)
    is_failed = session.ending is Reason.VALIDATION_FAILED
    if facts.request is Request.ABORT and (facts.active or not is_failed):
        return _abort(session, facts)
    if is_failed:
        return _failed(session, facts)
    if facts.validation is Validation.RUNNING:
        return Step(replace(session, phase=Phase.VALIDATING, idle_noted_at=None))
    return None


def _polled(session: Session, poll: Poll | None) -> Session:
    if poll is None or poll.is_repeat:
        return session
    failures = session.poll_failures + 1 if poll.ready is None else 0
    return replace(session, poll_failures=failures)


def exit_code(session: Session) -> tuple[int, Reason]:
    """The code and the reason of a session whose last validation did not fail.

    0 says that all issues passed. A run that a person stopped has neither passed nor failed: the
    session was interrupted.
    """
    if session.ending is Reason.POLL_FAILED:
        return 3, Reason.POLL_FAILED
    if session.ending is Reason.INTERRUPTED:
        return 130, Reason.INTERRUPTED
    if session.failed or session.unstarted:
        return 1, Reason.ISSUES_FAILED
    if session.stopped:
        return 130, Reason.INTERRUPTED
    return 0, session.ending or Reason.QUEUE_EMPTY


def is_mended(reason: str, repeat: ValidationState | str | None) -> bool:
    """Return whether a session whose validation failed needs nobody: a repeat passed or is at work."""
    good = (ValidationState.PASSED, ValidationState.RUNNING)
    return reason == Reason.VALIDATION_FAILED and repeat in good


def resume_wait(retries: int) -> timedelta:
    """How long to wait before a tracker that ended a session is asked again; grows with each try."""
    return min(RESUME_FIRST * (1 << min(retries, 10)), RESUME_LONGEST)


def idle_text(poll: Poll, wait: timedelta) -> str:
    """The notice of an idle session."""
    known = poll.blocked or 0
    what = f"{known} issues exist but none ready" if known else "no ready issues"
    return f"Idle: {what}. Polling in {math.ceil(wait.total_seconds())}s..."


def is_notice_due(session: Session, now: datetime) -> bool:
    """Whether an idle answer would be told, so that the blocked count is asked only then."""
    last = session.idle_noted_at
    return budgets.is_due(now, last + NOTICE_EVERY if last else None, NOTICE_EVERY)


def _why_end(session: Session, facts: Facts) -> Reason | None:
    terms = session.terms
    if session.poll_failures >= MOST_FAILURES:
        return Reason.POLL_FAILED
    if facts.request is Request.DRAIN:
        return Reason.INTERRUPTED
    if terms.limit is not None and session.completed >= terms.limit:
        return Reason.LIMIT_REACHED
    is_empty = facts.poll is not None and facts.poll.ready == 0 and not facts.active
    if is_empty and not terms.is_watching and not facts.is_paused:
        return Reason.QUEUE_EMPTY
    return None


def _drain(session: Session, facts: Facts) -> Step:
    """Nothing is asked and nothing starts; what works is waited for, then validated once."""
    if facts.active:
        return Step(_quiet(session, Phase.DRAINING))
    if session.completed > session.validated:
        return _validate(session, facts, Phase.DRAINING)
    code, reason = exit_code(session)
    return _ending(session, reason, Do.END, code)


def _validate(session: Session, facts: Facts, waiting: Phase) -> Step:
    if facts.active:
        return Step(_quiet(session, waiting))
    return Step(_quiet(session, Phase.VALIDATING), Do.VALIDATE)


def _validated(session: Session) -> Session:
    """After a pass the threshold goes up until it is above the count."""
    every, threshold = session.terms.every, session.threshold
    if every is not None and threshold is not None and threshold <= session.completed:
        threshold += every * ((session.completed - threshold) // every + 1)
    return replace(session, phase=Phase.WORKING, validated=session.completed, threshold=threshold)


def _failed(session: Session, facts: Facts) -> Step:
    """A failed validation ends the session with 1, whatever else was asked for."""
    if facts.active:
        return Step(_quiet(session, Phase.DRAINING))
    return _ending(session, Reason.VALIDATION_FAILED, Do.END, code=1)


def _abort(session: Session, facts: Facts) -> Step:
    """Interrupt what works, give it ten seconds, then end it; 1 if a validation failed."""
    reason, code = Reason.INTERRUPTED, 130
    if session.ending is Reason.VALIDATION_FAILED:
        reason, code = session.ending, 1
    is_busy = facts.active > 0 or facts.validation is Validation.RUNNING
    if not is_busy:
        return _ending(session, reason, Do.END, code)
    is_over = budgets.age(facts.now, facts.asked_at) >= GRACE
    return _ending(session, reason, Do.KILL if is_over else Do.CANCEL, code)


def _go_on(session: Session, facts: Facts) -> Step:
    room = _room(session, facts)
    if facts.poll is None:
        if room == 0:
            return Step(_quiet(session, Phase.WORKING))
        if facts.is_paused and session.terms.is_auto:
            return Step(_quiet(session, Phase.PAUSED))
        every = session.terms.poll_every
        if budgets.is_due(facts.now, session.next_poll_at, every):
            return Step(session, Do.POLL)
        return Step(replace(session, phase=_phase(session, facts)))
    again = facts.now + session.terms.poll_every
    session = replace(session, next_poll_at=again)
    if facts.is_paused:
        return Step(replace(session, phase=Phase.PAUSED, idle_noted_at=None))
    if facts.poll.ready:
        return Step(_quiet(session, Phase.WORKING, again), Do.START, most=room)
    if facts.active or facts.poll.ready is None:
        is_idle = session.phase is Phase.IDLE and not facts.active
        return Step(replace(session, phase=Phase.IDLE if is_idle else Phase.WORKING))
    return _idle(session, facts, facts.poll)


def _idle(session: Session, facts: Facts, poll: Poll) -> Step:
    """A notice on the way into idleness, then one every five minutes."""
    session = replace(session, phase=Phase.IDLE)
    if session.terms.is_auto or not is_notice_due(session, facts.now):
        return Step(session)
    text = idle_text(poll, session.terms.poll_every)
    return Step(replace(session, idle_noted_at=facts.now), notice=text)


def _room(session: Session, facts: Facts) -> int | None:
    """How many more may start: completed and active together never pass the limit."""
    limit = session.terms.limit
    return None if limit is None else max(0, limit - session.completed - facts.active)


def _phase(session: Session, facts: Facts) -> Phase:
    if facts.is_paused:
        return Phase.PAUSED
    if facts.active:
        return Phase.WORKING
    return session.phase if session.phase is Phase.IDLE else Phase.WORKING


def _quiet(session: Session, phase: Phase, next_poll_at: datetime | None = None) -> Session:
    """Not idle any more; with no time given the queue is asked as soon as it may be again."""
    return replace(session, phase=phase, idle_noted_at=None, next_poll_at=next_poll_at)


def _ending(session: Session, reason: Reason, do: Do, code: int) -> Step:
    is_over = do is Do.END
    return Step(
        replace(
            session,
            ending=reason,
            phase=Phase.ENDED if is_over else Phase.DRAINING,
            code=code if is_over else None,
            idle_noted_at=None,
        ),
        do,
    )
