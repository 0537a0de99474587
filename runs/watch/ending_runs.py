"""Ends what a watch session works on, when a person aborted or killed it."""

from __future__ import annotations

import logging

from django.db.models import QuerySet

from runs.core import lease
from runs.core.ports import Lab, SeamError
from runs.core.states import Outcome, RunState
from runs.lifecycle import outcomes, reaper
from runs.models import Run, WatchSession
from runs.validation import acts as validation_acts
from runs.watch.session import Request

logger = logging.getLogger(__name__)


def interrupt(lab: Lab, session: WatchSession, number: int) -> None:
    """Pass an interrupt on to every active run, once each; they have ten seconds to end.

    What has no agent at work, since it is starting, held or checking, ends at once.
    """
    for run in _active(session).filter(interrupted_at=None):
        lease.keep(lab, number)
        if run.state != RunState.WORKING:
            _end(lab, session, run, number)
        elif run.host == lab.host:
            Run.objects.active().filter(pk=run.pk).update(interrupted_at=lab.now())
            try:
                lab.sessions.interrupt(run.session, run.marker(lab.paths))
            except SeamError as error:
                logger.warning(
                    "run was not interrupted", extra={"run_id": run.pk, "why": str(error)}
                )
    if session.validation:
        validation_acts.interrupt(lab, session)


def kill(lab: Lab, session: WatchSession, number: int) -> None:
    """End every active run now: first all outcomes, then the process groups, one after the other."""
    ended = [run for run in _active(session) if _end(lab, session, run, number)]
    if session.validation:
        validation_acts.kill(lab, session)
    for run in ended:
        lease.keep(lab, number)
        if run.host == lab.host and run.did_start and not run.launcher:
            reaper.settle(lab, run)


def _active(session: WatchSession) -> QuerySet[Run]:
    return Run.objects.active().filter(watch=session).select_related("project").order_by("pk")


def _end(lab: Lab, session: WatchSession, run: Run, number: int) -> bool:
    how = "killed" if session.request == Request.KILL else "aborted"
    reason = f"watch session {session.pk} was {how} by {session.asked_by}; its work is kept"
    is_ours = run.host == lab.host
    return outcomes.record(
        lab,
        run,
        Outcome.INTERRUPTED,
        reason,
        by=session.asked_by,
        lease=number if is_ours else None,
    )
