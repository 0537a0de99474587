"""Takes one attempt through the gates: each decision is stored before the next gate is asked.

A worker that dies in between goes on at the gate that had no decision yet, and says so.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef

from runs.core import writing
from runs.core.database import NO_DATABASE
from runs.core.ports import Lab, SeamError, UnremovableError
from runs.core.states import AttemptState, Claim, Gate, GateTurn, JobKind, NoticeKind
from runs.gates import attempts, clean_room, evidence, reentry, review, rules
from runs.gates.hold import ATTEMPTS, Hold, PostponedError
from runs.gates.rules import AttemptFacts, Decision, Next, Resolution, Step, Tip
from runs.guard import acts as guard
from runs.jobs import runner as jobs
from runs.jobs.recovery import Handler
from runs.jobs.runner import LostError
from runs.models import Attempt, Job, Run
from runs.reviewers import round_rules
from runs.telemetry import log_context
from runs.timeline import announce

logger = logging.getLogger(__name__)

TOLD_AT = 5  # then people with a notice for warnings are told

Judge = Callable[[Lab, Hold], Decision]
JUDGES: Mapping[Gate, Judge] = {
    Gate.EVIDENCE: evidence.judge,
    Gate.CLEAN_ROOM: clean_room.judge,
    Gate.REVIEW: review.judge,
}
_FAILED = {Next.FAIL, Next.TELL}


def _never() -> bool:
    return False


def carry_out(
    lab: Lab,
    attempt_id: int,
    is_stopping: Callable[[], bool] = _never,
    judges: Mapping[Gate, Judge] = JUDGES,
) -> None:
    """Take an attempt that waits for it through its gates. Safe to call twice.

    Never raises for what the outside does.
    """
    hold = _claim(lab, attempt_id, is_stopping)
    if hold is None:
        return
    with hold, log_context.about(**log_context.of(hold.run)):
        _go_through(lab, hold, judges)


@transaction.atomic
def _claim(lab: Lab, attempt_id: int, is_stopping: Callable[[], bool]) -> Hold | None:
    """Claim the job of an attempt, and read it; None when another has it, or it waits."""
    job = jobs.claim(lab, JobKind.ATTEMPT, attempt_id)
    if job is None:
        return None
    found = Attempt.objects.select_related("run__project__agent", "run__project__forge")
    attempt = found.select_related("project", "run__profile").get(pk=attempt_id)
    return Hold(lab, attempt, job, is_stopping)


def _go_through(lab: Lab, hold: Hold, judges: Mapping[Gate, Judge]) -> None:
    try:
        _pass_gates(lab, hold, judges)
    except LostError:
        logger.info("attempt was taken away", extra={"attempt": hold.attempt.pk})
    except PostponedError as error:
        _postpone(lab, hold, error)
    except SeamError as error:
        _try_again(lab, hold, str(error))
    except NO_DATABASE as error:
        logger.warning("attempt was not stored", extra={"error": str(error)})
        # It has been waited for, so that the gate begins anew at once for the first time.
        gate = Gate(hold.attempt.gate).words.lower()
        why = f"the database did not answer in the middle of {gate}, which begins anew"
        _try_again(lab, hold, why, None if hold.job.troubles else timedelta(0))
    except Exception as error:
        logger.exception("attempt failed by a mistake of ours")
        mistake = f"labsite made a mistake ({type(error).__name__}); it is in the log"
        with contextlib.suppress(LostError, *NO_DATABASE):
            _end_attempt(lab, hold, Step(Next.FAIL, (mistake,)), AttemptState.ERROR)
    with contextlib.suppress(*NO_DATABASE):
        hold.persist(lambda: _release(lab, hold))


def _release(lab: Lab, hold: Hold) -> None:
    hold.release()
    for attempt in _read_attempts([hold.attempt.pk]).values():
        _close_if_over(lab, attempt, False)


def _pass_gates(lab: Lab, hold: Hold, judges: Mapping[Gate, Judge]) -> None:
    """Gate after gate until the rule says what the attempt came to. Raises LostError, SeamError."""
    attempt = hold.attempt
    if not hold.is_held():  # its run was ended before it was begun
        raise LostError
    while True:
        step = rules.next_step(_gather_facts(lab, hold))
        if step.next.value in set(Gate):
            gate = Gate(step.next.value)
            if attempt.gate != gate:
                hold.store(gate=gate)
            made = rules.skipped(attempt.resolution, attempts.list_gates_off(attempt), gate)
            _store_decision(lab, hold, made or judges[gate](lab, hold))
        elif step.next in (Next.WAIT, Next.LOOK):
            raise SeamError("what has to be known before the next step could not be told")
        else:
            state = AttemptState.FAILED if step.next in _FAILED else AttemptState.PASSED
            if step.next is Next.ANEW:
                state = AttemptState.CANCELLED
            hold.persist(functools.partial(_end_attempt, lab, hold, step, state))
            return


def _store_decision(lab: Lab, hold: Hold, made: Decision) -> None:
    """Store what a gate said, with its time, and tell it."""
    kept = [*hold.attempt.decisions, {**made.to_json(), "at": lab.now().isoformat()}]
    word = "is skipped" if made.is_skipped else "passed" if made.passed else "failed"
    what = made.unreviewed.words or f"{made.gate.words} {word}"
    why = f": {writing.one_line(made.reasons[0], 300)}" if made.reasons else ""
    kind = NoticeKind.GATE_STEP if made.passed else NoticeKind.GATE_FAILED
    text = f"{what} (attempt {hold.attempt.number}){why}"

    def write() -> None:
        with transaction.atomic():
            hold.store(decisions=kept)
            hold.note_progress()
            announce.tell(lab, kind, text, run=hold.run)

    hold.persist(write)


def _gather_facts(lab: Lab, hold: Hold) -> AttemptFacts:
    """What is known so far; the branch and the worktree are looked at once all gates have passed."""
    attempt, run = hold.attempt, hold.run
    made = attempts.read_decisions(attempt)
    others = Attempt.objects.filter(run=run, number__lt=attempt.number).order_by("number")
    gates, reviews = attempts.count_failures(list(others.exclude(state=AttemptState.ERROR)))
    has_failed = rules.failed(made) is not None
    is_over = not has_failed and len(made) == len(rules.ORDER)
    resolution = attempt.resolution or Resolution.SUCCESS
    before = others.last()
    return AttemptFacts(
        claim=Claim.DONE if resolution == Resolution.SUCCESS else Claim(resolution),
        decisions=made,
        gate_failures=gates,
        review_failures=reviews,
        most_gate=attempt.spec.get("most_gate", 3),
        most_review=attempt.spec.get("most_review", 3),
        can_be_told=reentry.can_be_told(lab, run) if has_failed or is_over else True,
        has_progress=before is None or not has_failed or evidence.has_progress(before, attempt),
        tip=compare_tip(lab, run, attempt) if is_over else None,
        is_clean=is_worktree_clean(lab, run) if is_over else None,
        require_clean=bool(attempt.spec.get("require_clean_git", True)),
        needs_person=attempts.find_person_reason(attempt),
        goes_in_circles=round_rules.describe_circle(attempts.read_rounds(run))
        if has_failed
        else "",
    )


def compare_tip(lab: Lab, run: Run, attempt: Attempt) -> Tip:
    """Return where the branch stands now, seen from the commit of the attempt. Raises SeamError.

    Work that needed no commit has moved once there is one.
    """
    repo = run.project.repo(lab.paths)
    found = lab.repos.tip(repo, f"refs/heads/{run.branch}")
    if found is None:
        return Tip.GONE
    if attempt.commit:
        return Tip.SAME if found == attempt.commit else Tip.MOVED
    if not run.fork_point or found == run.fork_point:
        return Tip.SAME
    return Tip.MOVED if lab.repos.commits(repo, run.fork_point, found, 1) else Tip.SAME


def is_worktree_clean(lab: Lab, run: Run) -> bool:
    """Return whether the agent's worktree holds nothing that is not committed; one that is gone does not."""
    path = Path(run.worktree)
    if not run.worktree or not path.is_dir():
        return True
    return not lab.repos.is_dirty(path)


def _end_attempt(lab: Lab, hold: Hold, step: Step, state: AttemptState) -> None:
    """End the attempt with what follows from it; the next tick does that. Raises LostError."""
    attempt, run = hold.attempt, hold.run
    with transaction.atomic():
        hold.store(**_describe_end(lab, step, state))
        _wake_tick(lab, run, GateTurn.ASKING if step.next is Next.ASK else GateTurn.DECIDED)
        if state is AttemptState.PASSED:
            text = f"all gates passed (attempt {attempt.number}){attempts.describe_unreviewed(attempt)}"
            announce.tell(lab, NoticeKind.GATE_PASSED, text, run=run)
        if step.next is Next.ASK:
            text = f"it waits for a person: {attempt.reason}"
            announce.tell(lab, NoticeKind.RUN_WAITS, text, run=run)


def _describe_end(lab: Lab, step: Step, state: AttemptState) -> dict[str, Any]:
    """Return the columns of an attempt that came to this step."""
    reason = "; ".join(step.reasons)[: rules.REASON_CHARACTERS]
    stored = attempts.serialize_step(step)
    return {"state": state, "step": stored, "reason": reason, "ended_at": lab.now()}


def _wake_tick(lab: Lab, run: Run, turn: GateTurn) -> None:
    """Have the next tick, which comes at once, do what follows."""
    Run.objects.checking().filter(pk=run.pk).update(gate_turn=turn)
    slug = run.project.slug
    transaction.on_commit(lambda: lab.bell.look(slug), robust=True)


def _postpone(lab: Lab, hold: Hold, wait: PostponedError) -> None:
    """Ask again at its time, and before now and then: what is waited for may be put right by a person."""

    def write() -> None:
        with transaction.atomic():
            hold.wait_until(min(wait.at, lab.now() + ATTEMPTS.limits.longest_wait))
            if wait.is_new:
                text = f"attempt {hold.attempt.number} waits: {lab.mask(str(wait))}"
                announce.tell(lab, NoticeKind.GATE_STEP, text, run=hold.run)

    with contextlib.suppress(LostError, *NO_DATABASE):
        hold.persist(write)


def _try_again(lab: Lab, hold: Hold, why: str, wait: timedelta | None = None) -> None:
    """Ask again after a wait, by default a growing one, what could not be told; that ends nothing."""

    def write() -> None:
        with transaction.atomic():
            seconds = int(hold.put_off(wait).total_seconds())
            text = f"attempt {hold.attempt.number} is tried again in {seconds} s: {lab.mask(why)}"
            is_told = hold.job.troubles == TOLD_AT
            kind = NoticeKind.RUN_WARNED if is_told else NoticeKind.GATE_STEP
            announce.tell(lab, kind, text, run=hold.run)

    with contextlib.suppress(LostError, *NO_DATABASE):
        hold.persist(write)


def _read_attempts(numbers: Sequence[int]) -> Mapping[int, Attempt]:
    return Attempt.objects.select_related("run__project", "project").in_bulk(numbers)


def _close_if_over(lab: Lab, attempt: Attempt, is_worked_on: bool) -> bool:
    """Tidy up what an attempt left once it or its run is over, and finish its job."""
    if is_worked_on or (attempt.is_running and not attempt.run.outcome):
        return False
    rows = Attempt.objects.filter(pk=attempt.pk)
    why = "its run was ended meanwhile"
    rows.running().update(state=AttemptState.CANCELLED, reason=why, ended_at=lab.now())
    stuck: list[str] = []
    try:
        lab.checks.end(attempt.mark)
        for act in (review.end_reviews, clean_room.remove_worktree):
            try:
                act(lab, attempt)
            except UnremovableError as error:
                stuck.append(lab.mask(str(error)))
        guard.check_shared(lab, attempt.project, has_workers=True)
    except SeamError as error:
        text = f"What an attempt left could not be tidied up yet: {lab.mask(str(error))}."
        rows.update(warning=text)
        return True
    with transaction.atomic():
        jobs.finish(lab, JobKind.ATTEMPT, attempt.pk)  # first, as whoever holds it locks them
        rows.filter(settled_at=None).update(settled_at=lab.now(), warning=" ".join(stuck))
    return True


def _tell_loss(lab: Lab, attempt: Attempt) -> None:
    gate = Gate(attempt.gate).words.lower()
    text = f"the worker was gone: {gate} of attempt {attempt.number} begins anew"
    announce.tell(lab, NoticeKind.GATE_STEP, text, run=attempt.run)


def _give_up(lab: Lab, attempt: Attempt, job: Job) -> None:
    gate = Gate(attempt.gate).words.lower()
    why = f"the worker was gone {job.losses} times in the middle of {gate}"
    columns = _describe_end(lab, Step(Next.FAIL, (why,)), AttemptState.ERROR)
    if Attempt.objects.running().filter(pk=attempt.pk).update(**columns):
        _wake_tick(lab, attempt.run, GateTurn.DECIDED)


HANDLER = Handler(ATTEMPTS, _read_attempts, _close_if_over, _tell_loss, _give_up)


def request_missing_jobs(lab: Lab) -> None:
    """Request jobs for attempts that a worker of the version before began, as it left them."""
    has_job = Job.objects.unfinished().of(JobKind.ATTEMPT, OuterRef("pk"))
    rows = Attempt.objects.filter(~Exists(has_job), host=lab.host, settled_at=None)
    for one in rows:
        with transaction.atomic():
            job = jobs.request(lab, ATTEMPTS, one.pk, host=one.host, project=one.project_id)
            is_taken = bool(one.runner and one.beat_at)
            Job.objects.filter(pk=job.pk, token=0).update(
                owner=one.runner if is_taken else "",
                beat_at=one.beat_at if is_taken else None,
                not_before=one.not_before,
                losses=one.losses,
                troubles=one.troubles,
            )
