"""What a tick does with runs that are *checking*: begin an attempt, carry out what one came to.

It reads the runs that the tick has read anyway; one whose attempt is at work costs nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet

from runs.core.states import AttemptState, GateTurn, NoticeKind, Outcome, RunState
from runs.core.tick_context import TickContext
from runs.gates import attempts, closing, reentry, rules, runner
from runs.gates.hold import ATTEMPTS
from runs.gates.rules import Next, Resolution, Step, Tip
from runs.jobs import runner as jobs
from runs.lifecycle import outcomes
from runs.models import Attempt, Host, Run
from runs.telemetry import log_context
from runs.timeline import announce

logger = logging.getLogger(__name__)

OUTCOMES = {
    Resolution.SUCCESS: Outcome.SUCCEEDED,
    Resolution.NO_CHANGE: Outcome.NO_CHANGE,
    Resolution.OBSOLETE: Outcome.OBSOLETE,
}


def advance_runs(tick: TickContext, runs: Sequence[Run]) -> list[Run]:
    """Take each checking run one step on; return those that this call ended. Raises lease.Lost."""
    ended = []
    for run in runs:
        if run.outcome or run.gate_turn in (GateTurn.NONE, GateTurn.ASKING):
            continue
        tick.keep_lease()
        with tick.going_on(f"the gates of run {run.pk} were left for later", **log_context.of(run)):
            if _advance_run(tick, run):
                ended.append(run)
    return ended


def _advance_run(tick: TickContext, run: Run) -> bool:
    if not run.is_checking:
        if run.state == RunState.WORKING and run.gate_turn == GateTurn.TELLING:
            reentry.type_message(tick, run)
        return False
    if run.gate_turn == GateTurn.BEGIN:
        _begin_attempt(tick, run)
        return False
    attempt = Attempt.objects.filter(run=run).order_by("-number").first()
    if attempt is None or attempt.is_running:
        return False
    step = attempts.read_step(attempt)
    if step.next is Next.ACCEPT:
        return _accept_run(tick, run, attempt)
    if step.next is Next.ANEW:
        _begin_anew(tick, run, step)
        return False
    if step.next is Next.TELL:
        trouble = reentry.tell_agent(tick, run, attempt, step)
        return bool(trouble) and _fail_run(
            tick, run, attempt, Step(Next.FAIL, (*step.reasons, trouble))
        )
    return _fail_run(tick, run, attempt, step)


def _begin_attempt(tick: TickContext, run: Run) -> None:
    """Make the next attempt and have the worker take it through the gates; once, however raced."""
    lab = tick.lab
    made = attempts.make_attempt(lab, run)
    with transaction.atomic():
        rows = _select_run(tick, run)
        if not rows.update(gate_turn=GateTurn.NONE, attempts=F("attempts") + 1):
            return
        made.save()
        text = f"attempt {made.number} at the gates begins"
        announce.tell(lab, NoticeKind.GATE_STEP, text, run=run)
        jobs.request(lab, ATTEMPTS, made.pk, host=made.host, project=run.project_id)


def _begin_anew(tick: TickContext, run: Run, step: Step) -> None:
    with transaction.atomic():
        if _select_run(tick, run).update(gate_turn=GateTurn.BEGIN):
            text = f"{'; '.join(step.reasons)}: what is there now is checked anew"
            announce.tell(tick.lab, NoticeKind.GATE_STEP, text, run=run)
    run.refresh_from_db()
    if run.gate_turn == GateTurn.BEGIN:
        _begin_attempt(tick, run)


def _accept_run(tick: TickContext, run: Run, attempt: Attempt) -> bool:
    """The outcome that was proven; its issue is closed after the run level."""
    # Its session lives, and the tick may come late: what is accepted is what is there now.
    tip = runner.compare_tip(tick.lab, run, attempt)
    # What needed no commit needs no branch.
    is_same = tip is Tip.SAME or (tip is Tip.GONE and not attempt.commit)
    if not is_same or (
        attempt.spec.get("require_clean_git", True) and not runner.is_worktree_clean(tick.lab, run)
    ):
        _begin_anew(tick, run, Step(Next.ANEW, ("its branch or its worktree has changed since",)))
        return False
    outcome = OUTCOMES[Resolution(attempt.resolution or Resolution.SUCCESS)]
    if outcome is Outcome.SUCCEEDED:
        reason = f"the gates passed on commit {attempt.commit[:7]} (attempt {attempt.number})"
        reason += attempts.describe_unreviewed(attempt)
        seen: dict[str, object] = {"accepted_commit": attempt.commit}
    else:
        reason = f"{attempt.rationale.rstrip('.')} (its agent; nothing had to be committed)"
        seen = {}
    with transaction.atomic():
        won = outcomes.record(tick.lab, run, outcome, reason, lease=tick.number, seen=seen)
        if won:
            closing.request_closing(tick.lab, run, attempt)
    return won


def _fail_run(tick: TickContext, run: Run, attempt: Attempt, step: Step) -> bool:
    failed = rules.failed(attempts.read_decisions(attempt))
    gate = "gates"
    if failed is not None:
        gate = failed.unreviewed.words or f"gate {failed.gate.words.lower()}"
    if attempt.state == AttemptState.ERROR:
        gate = "gates"
    reason = f"{gate}: {'; '.join(step.reasons)}"[: rules.REASON_CHARACTERS]
    with transaction.atomic():
        won = outcomes.record(tick.lab, run, Outcome.FAILED, reason, lease=tick.number)
        if won and attempt.state != AttemptState.ERROR:  # a mistake of ours is no word on the work
            Run.objects.filter(pk=run.pk).update(note_asked_at=tick.lab.now())
    return won


def _select_run(tick: TickContext, run: Run) -> QuerySet[Run]:
    """The run while it is checking at this very turn, and the tick has its lease."""
    lease = Host.objects.filter(name=OuterRef("host"), lease_number=tick.number)
    return Run.objects.checking().filter(Exists(lease), pk=run.pk, gate_turn=run.gate_turn)
