"""Starts that turn out to have failed after the program had been seen alive for a moment."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta

from runs.core import budgets
from runs.core.ports import Lab, SeamError
from runs.lifecycle.verdict import Beginning, never_began, why
from runs.models import Run
from runs.transcript import screens

logger = logging.getLogger(__name__)

LINES = 20
SOON = timedelta(minutes=2)
# As of a run that never had a session: its claim is rolled back, and it counts as no failed run.
UNSTARTED: Mapping[str, object] = {"started_at": None}


def late_failure(lab: Lab, run: Run, seen: Mapping[str, object]) -> str:
    """Why a run whose program is gone is a failed start; empty when it is none.

    `seen` is what was found of its end: exit status and signal, and what its lines told. One that
    goes on with earlier work has begun before.
    """
    if run.takes_up:
        return ""
    status, signal = seen.get("exit_status"), seen.get("exit_signal")
    session = str(seen.get("agent_session", run.agent_session))
    facts = Beginning(
        status=status if isinstance(status, int) else None,
        signal=signal if isinstance(signal, int) else None,
        # A one-shot program's first line names its session; an interactive one was given an id
        # together with hooks, which tell when it was given its task.
        # Its hooks may be switched off, so one that was never heard of must have ended soon.
        tells=bool(run.output) if run.is_one_shot else bool(session) and _is_heard(run, seen),
        began=bool(session) if run.is_one_shot else run.began_at is not None,
        commits=run.commits,
    )
    if not never_began(facts):
        return ""
    return why(facts, str(seen.get("agent_note") or seen.get("last_line") or _words(lab, run)))


def _is_heard(run: Run, seen: Mapping[str, object]) -> bool:
    """Whether an interactive program would have told that it began."""
    ended_at = seen.get("exited_at")
    if run.output_read or not isinstance(ended_at, datetime):
        return bool(run.output_read)
    return budgets.age(ended_at, run.started_at) < SOON


def _words(lab: Lab, run: Run) -> str:
    """The last line of its screen, while tmux still has it."""
    try:
        screen = lab.sessions.screens([run.session], LINES).get(run.session, "")
    except SeamError as error:
        logger.info("last words were not read", extra={"run_id": run.pk, "error": str(error)})
        screen = ""
    return screens.last_line(screen) or run.last_line
