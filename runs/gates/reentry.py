"""Tells an agent in its own session what failed at a gate, so that it mends it in the next attempt.

An interactive program gets it typed in as one message; a one-shot program is started again in its
session. A session that cannot be told fails the run.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db import transaction
from django.db.models import F, QuerySet

from runs.agents import orders
from runs.core import budgets, tokens
from runs.core.ports import ENTER, Lab, MaybeGiven, SeamError
from runs.core.states import AttemptState, Gate, GateTurn, NoticeKind, RunState
from runs.core.tick_context import TickContext
from runs.gates import attempts, rules
from runs.gates.rules import Step
from runs.lifecycle import resuming
from runs.models import Attempt, Run
from runs.timeline import announce
from runs.transcript import screens
from runs.waits import rules as wait_rules

logger = logging.getLogger(__name__)

SCREEN_LINES = 200
WORDS_SHOWN = 35
# A one-shot program that has said that it is done says its last words within it.
ENDS_WITHIN = timedelta(minutes=5)
# Within it a program shows that it has got what it was told.
TAKEN_WITHIN = timedelta(seconds=15)


def can_be_told(lab: Lab, run: Run) -> bool | None:
    """Whether its agent has a session that can be told something; None: could not tell."""
    if run.is_one_shot:
        return orders.goes_on(run, run.agent_session)
    try:
        seen = lab.sessions.look().get(run.session)
    except SeamError:
        return None
    return seen is not None and seen.alive and seen.marker == run.marker(lab.paths)


def tell_agent(tick: TickContext, run: Run, attempt: Attempt, step: Step) -> str:
    """Give the run back to its agent with the reasons; empty, or why that cannot be done at all.

    What could not be done now is tried again by the next tick. Raises lease.Lost.
    """
    found = can_be_told(tick.lab, run)
    if found is None:
        return ""
    if not found:
        return rules.NOT_TOLD
    made = attempts.read_decisions(attempt)
    bad = rules.failed(made)
    gate = bad.gate if bad is not None else Gate.CLEAN_ROOM
    text = rules.message(step, gate, attempt.number, _left(attempt, gate))
    if not run.is_one_shot:
        _give_back(tick, run, text)
    elif not _says_last_words(tick, run, attempt):
        _start_again(tick, run, text)
    return ""


def _left(attempt: Attempt, gate: Gate) -> int:
    """How many attempts are left where this one failed."""
    rows = Attempt.objects.filter(run=attempt.run_id, number__lte=attempt.number)
    gates, reviews = attempts.count_failures(list(rows.exclude(state=AttemptState.ERROR)))
    if gate is Gate.REVIEW:
        return int(attempt.spec.get("most_review", 3)) - reviews
    return int(attempt.spec.get("most_gate", 3)) - gates


def _says_last_words(tick: TickContext, run: Run, attempt: Attempt) -> bool:
    """Whether a program that ends by itself lives still; it is not cut off at once."""
    seen = (tick.sightings or {}).get(run.session)
    is_alive = seen is not None and seen.alive
    return is_alive and budgets.age(tick.now, attempt.ended_at) < ENDS_WITHIN


def _give_back(tick: TickContext, run: Run, text: str) -> None:
    """Back to *working*, with what is typed as soon as its turn is over and no dialog is open.

    The budget goes on where it stood.
    """
    fresh = _as_before(tick, run)
    fresh |= {"gate_turn": GateTurn.TELLING, "gate_message": text, "gate_told_at": None}
    rows = Run.objects.checking().filter(pk=run.pk, gate_turn=run.gate_turn)
    if rows.update(**fresh, state=RunState.WORKING, rested_seconds=_rested(tick, run)):
        run.refresh_from_db()
        type_message(tick, run)


def type_message(tick: TickContext, run: Run) -> None:
    """Type what failed into the session of a run that is to be told so; safe to repeat.

    Noted before it is typed: where a process died over it, the screen says whether it was.
    """
    lab = tick.lab
    screen = _free_screen(lab, run)
    if screen is None:
        return
    mine = Run.objects.working().filter(
        pk=run.pk, gate_turn=GateTurn.TELLING, gate_told_at=run.gate_told_at
    )
    was_begun = run.gate_told_at is not None
    if was_begun and (_has_answered(run) or _shows(screen, run.gate_message)):
        if _has_answered(run) or _entered(lab, run):
            _note(lab, run, mine, "its agent is told what failed, in the same session")
            run.refresh_from_db()
        return
    is_fresh = was_begun and budgets.age(tick.now, run.gate_told_at) < TAKEN_WITHIN
    ended_at = run.turn_ended_at
    now = lab.now()  # later than all that its program has told
    # A word that it was done, from before it is told, is used up.
    if is_fresh or not mine.update(gate_told_at=now, turn_ended_at=None, look_asked_at=None):
        return
    run.gate_told_at = now
    told = Run.objects.filter(pk=run.pk, gate_told_at=now)
    try:
        lab.sessions.say(run.session, run.marker(lab.paths), run.gate_message)
    except MaybeGiven as error:
        logger.info("it may have been told", extra={"run_id": run.pk, "error": str(error)})
        if not was_begun:
            return  # a later look tells whether it was
    except SeamError as error:
        told.update(gate_told_at=None, turn_ended_at=ended_at)
        logger.info("it was not told yet", extra={"run_id": run.pk, "error": str(error)})
        return
    said = "its agent is told what failed, in the same session"
    again = f"{said}, once more, since its screen did not show it" if was_begun else said
    _note(lab, run, told, again)
    run.refresh_from_db()


def _note(lab: Lab, run: Run, rows: QuerySet[Run], text: str) -> None:
    """Say once that its agent was told."""
    with transaction.atomic():
        if not rows.update(gate_turn=GateTurn.NONE):
            return
        announce.tell(lab, NoticeKind.RUN_REENTERED, text, run=run)
        if _has_answered(run):  # this tick has judged already
            slug = run.project.slug
            transaction.on_commit(lambda: lab.bell.look(slug), robust=True)


def _entered(lab: Lab, run: Run) -> bool:
    """Press Enter for a message that stands on the screen, perhaps as a draft that nobody sent.

    Where it was sent its program takes an empty line, which says nothing. False: not done yet.
    """
    try:
        lab.sessions.press(run.session, run.marker(lab.paths), ENTER)
    except MaybeGiven as error:
        logger.info("Enter may have been pressed", extra={"run_id": run.pk, "error": str(error)})
    except SeamError as error:
        logger.info("Enter was not pressed yet", extra={"run_id": run.pk, "error": str(error)})
        return False
    return True


def _free_screen(lab: Lab, run: Run) -> str | None:
    """Its screen where a text may be typed in now, else None."""
    if run.began_at is not None and run.turn_ended_at is None and run.gate_told_at is None:
        return (
            None  # the turn in which it said that it is done: its end would be taken for a new word
        )
    screen = _screen(lab, run)
    # Letters and Enter would press a choice; whoever is asked under *Needs you* answers it first.
    if screen is None or wait_rules.dialog(screens.plain(screens.tidy(screen))).is_open:
        return None
    return screen


def _screen(lab: Lab, run: Run) -> str | None:
    try:
        return lab.sessions.screens([run.session], SCREEN_LINES).get(run.session, "")
    except SeamError as error:
        logger.info("screen was not read", extra={"run_id": run.pk, "error": str(error)})
        return None


def _has_answered(run: Run) -> bool:
    """Whether a turn has ended since it was told, or it said since that it is done."""
    told = run.gate_told_at
    since = (run.turn_ended_at, run.look_asked_at)
    return told is not None and any(at is not None and at > told for at in since)


def _shows(screen: str, text: str) -> bool:
    """Whether a screen shows the first words of a text, however its program broke the lines."""
    return "".join(text.splitlines()[0].split())[:WORDS_SHOWN] in "".join(screen.split())


def _start_again(tick: TickContext, run: Run, text: str) -> None:
    """A one-shot program is started again in its own session; it keeps its slot."""
    lab, now = tick.lab, tick.now
    if not resuming.end_session(lab, run):
        return
    fresh: dict[str, object] = {
        **resuming.forgotten(run),
        **_as_before(tick, run),
        "state": RunState.STARTING,
        "mark": tokens.new_mark(),
        "gate_message": text,
        "gate_told_at": now,
        "resumed_at": now,
        "launcher": "",
        "launch_deadline": None,
        "token_hash": "",
    }
    with transaction.atomic():
        tick.keep_lease()
        rows = Run.objects.checking().filter(pk=run.pk, gate_turn=run.gate_turn)
        if not rows.update(**fresh, rested_seconds=_rested(tick, run)):
            return
        said = "its agent is started again in its session and told what failed"
        announce.tell(lab, NoticeKind.RUN_REENTERED, said, run=run)
        transaction.on_commit(lambda: lab.queue.on(run.host).launch(run.pk), robust=True)
    run.refresh_from_db()
    tick.being_made.add(run.session)


def _as_before(tick: TickContext, run: Run) -> dict[str, object]:
    return {
        # A session that worked up to here has come up: what failed before counts no more.
        "resume_failures": 0,
        "retry_at": None,
        "gate_turn": GateTurn.NONE,
        "checking_at": None,
        "claim": "",
        "claim_reason": "",
        "look_asked_at": None,
    }


def _rested(tick: TickContext, run: Run) -> object:
    """The time at the gates does not count for the budget."""
    since = run.checking_at or tick.now
    return F("rested_seconds") + max(0, int((tick.now - since).total_seconds()))
