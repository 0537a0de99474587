"""Asks an agent that stopped without a delivery once for it, before it is said to wait for a person."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db import transaction

from runs.agents import orders
from runs.core.ports import MaybeGiven, SeamError
from runs.core.states import NoticeKind, RunState, Wait
from runs.core.tick_context import TickContext
from runs.followups import nudge_rules
from runs.followups.nudge_rules import Stopped
from runs.forges import cadence
from runs.models import Run
from runs.timeline import announce
from runs.transcript import screens
from runs.waits import rules
from runs.waits.rules import Waiting

logger = logging.getLogger(__name__)

# Within it a program shows that it has read what it was told.
READ_WITHIN = timedelta(seconds=30)


def is_asked(tick: TickContext, run: Run, found: Waiting) -> bool:
    """Whether the agent has no word because it is asked just now, so that it waits for nobody yet."""
    if found.kind is not Wait.IDLE or run.is_one_shot:
        return False
    at = run.nudged_at
    if at is not None:
        is_before = found.since is not None and found.since <= at
        return is_before and timedelta(0) <= tick.now - at < READ_WITHIN
    stopped = Stopped(
        is_on=tick.settings.nudges,
        was_asked=False,
        is_well=run.turn_interrupted_at is None and run.interrupted_at is None,
        can_be_told=run.waits == Wait.NONE,
        is_adding=run.amends is not None or run.is_gated,
    )
    return nudge_rules.is_asked(stopped) and _ask(tick, run)


def _ask(tick: TickContext, run: Run) -> bool:
    """Ask, unless its screen shows a dialog, in which a text would press a choice."""
    lab = tick.lab
    try:
        screen = lab.sessions.screens([run.session]).get(run.session, "")
    except SeamError as error:
        logger.info("screen was not read", extra={"run_id": run.pk, "error": str(error)})
        return False
    if rules.dialog(screens.plain(screens.tidy(screen))).is_open:
        return False
    told = nudge_rules.told(of_commits=cadence.is_without_pulls(lab, run.project))
    with transaction.atomic():
        rows = Run.objects.filter(pk=run.pk, outcome="", state=RunState.WORKING, nudged_at=None)
        if not rows.filter(turn_ended_at=run.turn_ended_at).update(nudged_at=tick.now):
            return False
        announce.tell(lab, NoticeKind.RUN_STEP, told, run=run)
    run.nudged_at = tick.now
    try:
        lab.sessions.say(run.session, run.marker(lab.paths), orders.nudge(lab, run))
    except MaybeGiven as error:
        logger.info("it may have been asked", extra={"run_id": run.pk, "error": str(error)})
    except SeamError as error:
        with transaction.atomic():
            text = f"it could not be asked: {lab.mask(str(error))}"
            announce.tell(lab, NoticeKind.RUN_STEP, text, run=run)
        return False
    return True
