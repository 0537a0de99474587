"""Starts whose program ended at once, or after it had been seen alive for a moment."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta

from runs.core import budgets
from runs.core.ports import Lab, SeamError
from runs.core.states import AnswerCode
from runs.lifecycle import reaper
from runs.lifecycle.verdict import Beginning, did_run, never_began, why
from runs.models import Run
from runs.transcript import listening, screens

logger = logging.getLogger(__name__)

LINES = 20
SOON = timedelta(minutes=2)
# As of a run that never had a session: its claim is rolled back, and it counts as no failed run.
UNSTARTED: Mapping[str, object] = {"started_at": None}


class StartFailed(Exception):
    """The start cannot go on; the text is for the person who pressed the button."""

    def __init__(self, text: str, code: AnswerCode = AnswerCode.START_FAILED) -> None:
        super().__init__(text)
        self.code = code


class NotAlive(StartFailed):
    """The program ended at once."""


class Undecided(Exception):
    """The session was made, but could not be looked at: the next tick decides."""


def look_again(lab: Lab, run: Run) -> bool:
    """Whether the program still runs.

    A session that vanished at once is a failed start, with its last words as the reason.
    """
    try:
        seen = lab.sessions.look().get(run.session)
    except SeamError as error:
        raise Undecided(str(error)) from error
    exit_facts = reaper.seen_exit(seen, reaper.exit_file(lab, run))
    status = exit_facts.get("exit_status")
    alive = seen is not None and seen.alive
    if did_run(run.mode, alive, status if isinstance(status, int) else None):
        return alive
    if run.output and listening.finish(lab, run).report.trouble:
        return False  # it was turned away for its account's sake: that is judged, not undone
    how = f" with status {status}" if status is not None else ""
    words = _first_words(lab, run)
    said = f" Its final output: {words}" if words else ""
    raise NotAlive(f"the agent exited immediately{how}.{said}")


def _first_words(lab: Lab, run: Run) -> str:
    """What a program said that ended at once."""
    if run.output:
        report = listening.finish(lab, run).report
        return report.agent_note or report.last_line
    try:
        return screens.last_line(lab.sessions.screens([run.session], 20).get(run.session, ""))
    except SeamError as error:
        logger.info("last words were not read", extra={"run_id": run.pk, "error": str(error)})
        return ""


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
