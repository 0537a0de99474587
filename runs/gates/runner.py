"""Takes one attempt through the gates: each decision is stored before the next gate is asked.

A worker that dies in between goes on at the gate that had no decision yet, and says so.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from django.db import transaction
from django.db.models import Q

from runs.core import budgets, writing
from runs.core.ports import Lab, SeamError
from runs.core.states import AttemptState, Claim, Gate, GateTurn, NoticeKind
from runs.gates import attempts, clean_room, evidence, reentry, review, rules
from runs.gates.hold import NO_DATABASE, Hold, Lost, PostponedError
from runs.gates.rules import AttemptFacts, Decision, Next, Resolution, Step, Tip
from runs.models import Attempt, Run
from runs.reviewers import round_rules
from runs.telemetry import log_context
from runs.timeline import announce

logger = logging.getLogger(__name__)

AGAIN_AFTER = timedelta(seconds=30)
STALE = timedelta(minutes=10)
LONGEST_WAIT = timedelta(minutes=10)
TOLD_AT = 5  # then people with a notice for warnings are told
MOST_LOSSES = 3

Judge = Callable[[Lab, Hold], Decision]


@dataclass(frozen=True, slots=True)
class Judges:
    """Who asks each gate, and what removes what an ended attempt left on the machine."""

    of: Mapping[Gate, Judge]
    settle: Sequence[Callable[[Lab, Attempt], None]] = ()


JUDGES = Judges(
    {
        Gate.EVIDENCE: evidence.judge,
        Gate.CLEAN_ROOM: clean_room.judge,
        Gate.REVIEW: review.judge,
    },
    (clean_room.settle, review.settle),
)
_FAILED = {Next.FAIL, Next.TELL}


def _never() -> bool:
    return False


def carry_out(
    lab: Lab,
    attempt_id: int,
    is_stopping: Callable[[], bool] = _never,
    judges: Judges = JUDGES,
) -> None:
    """Take an attempt that waits for it through its gates. Safe to call twice.

    Never raises for what the outside does.
    """
    attempt = _take(lab, attempt_id)
    if attempt is None:
        return
    with log_context.about(**log_context.of(attempt.run)):
        _go_through(lab, Hold(lab, attempt, is_stopping), judges)


def _go_through(lab: Lab, hold: Hold, judges: Judges) -> None:
    try:
        _chain(lab, hold, judges)
    except Lost:
        logger.info("attempt was taken away", extra={"attempt": hold.attempt.pk})
    except PostponedError as error:
        _look_later(lab, hold, error)
    except SeamError as error:
        _trouble(lab, hold, str(error))
    except NO_DATABASE as error:
        logger.warning("attempt was not stored", extra={"error": str(error)})
        _without_database(lab, hold)
    except Exception as error:
        logger.exception("attempt failed by a mistake of ours")
        mistake = f"labsite made a mistake ({type(error).__name__}); it is in the log"
        with contextlib.suppress(Lost, *NO_DATABASE):
            _end(lab, hold, Step(Next.FAIL, (mistake,)), AttemptState.ERROR)
    with contextlib.suppress(*NO_DATABASE):
        hold.patiently(lambda: _give_back(lab, hold, judges))


@transaction.atomic
def _take(lab: Lab, attempt_id: int) -> Attempt | None:
    """An attempt that nobody works on, from now on ours; None if somebody else has it, or it waits."""
    free = Q(not_before=None) | Q(not_before__lte=lab.now())
    rows = Attempt.objects.running().filter(free, pk=attempt_id, runner="", host=lab.host)
    if not rows.update(runner=lab.process, beat_at=lab.now()):
        return None
    found = Attempt.objects.select_related("run__project__agent", "run__project__forge")
    return found.select_related("project", "run__profile").get(pk=attempt_id)


def _give_back(lab: Lab, hold: Hold, judges: Judges) -> None:
    mine = Attempt.objects.filter(pk=hold.attempt.pk, runner=lab.process)
    mine.filter(losses=hold.attempt.losses).update(runner="")
    _close_if_over(lab, hold.attempt, judges)


def _chain(lab: Lab, hold: Hold, judges: Judges) -> None:
    """Gate after gate until the rule says what the attempt came to. Raises Lost, SeamError."""
    attempt = hold.attempt
    while True:
        step = rules.next_step(_facts(lab, hold))
        if step.next.value in set(Gate):
            gate = Gate(step.next.value)
            if attempt.gate != gate:
                hold.store(gate=gate)
            made = rules.skipped(attempt.resolution, attempts.off(attempt), gate)
            _keep(lab, hold, made or judges.of[gate](lab, hold))
        elif step.next in (Next.WAIT, Next.LOOK):
            raise SeamError("what has to be known before the next step could not be told")
        else:
            state = AttemptState.FAILED if step.next in _FAILED else AttemptState.PASSED
            if step.next is Next.ANEW:
                state = AttemptState.CANCELLED
            hold.patiently(functools.partial(_end, lab, hold, step, state))
            return


def _keep(lab: Lab, hold: Hold, made: Decision) -> None:
    """Store what a gate said, with its time, and tell it."""
    kept = [*hold.attempt.decisions, {**made.to_json(), "at": lab.now().isoformat()}]
    word = "is skipped" if made.is_skipped else "passed" if made.passed else "failed"
    what = made.unreviewed.words or f"{made.gate.words} {word}"
    why = f": {writing.one_line(made.reasons[0], 300)}" if made.reasons else ""
    kind = NoticeKind.GATE_STEP if made.passed else NoticeKind.GATE_FAILED
    text = f"{what} (attempt {hold.attempt.number}){why}"

    def write() -> None:
        with transaction.atomic():
            hold.store(decisions=kept, troubles=0)
            announce.tell(lab, kind, text, run=hold.run)

    hold.patiently(write)


def _facts(lab: Lab, hold: Hold) -> AttemptFacts:
    """What is known so far; the branch and the worktree are looked at once all gates have passed."""
    attempt, run = hold.attempt, hold.run
    made = attempts.decisions(attempt)
    others = Attempt.objects.filter(run=run, number__lt=attempt.number).order_by("number")
    gates, reviews = attempts.failures(list(others.exclude(state=AttemptState.ERROR)))
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
        tip=tip_of(lab, run, attempt) if is_over else None,
        is_clean=is_clean(lab, run) if is_over else None,
        require_clean=bool(attempt.spec.get("require_clean_git", True)),
        needs_person=attempts.find_person_reason(attempt),
        goes_in_circles=round_rules.describe_circle(attempts.rounds(run)) if has_failed else "",
    )


def tip_of(lab: Lab, run: Run, attempt: Attempt) -> Tip:
    """Where the branch stands now, seen from the commit of the attempt. Raises SeamError.

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


def is_clean(lab: Lab, run: Run) -> bool:
    """Whether the agent's worktree holds nothing that is not committed; one that is gone does not."""
    path = Path(run.worktree)
    if not run.worktree or not path.is_dir():
        return True
    return not lab.repos.is_dirty(path)


def _end(lab: Lab, hold: Hold, step: Step, state: AttemptState) -> None:
    """End the attempt with what follows from it; the next tick does that. Raises Lost."""
    attempt, run = hold.attempt, hold.run
    reason = "; ".join(step.reasons)[: rules.REASON_CHARACTERS]
    with transaction.atomic():
        hold.store(state=state, step=attempts.to_json(step), reason=reason, ended_at=lab.now())
        turn = GateTurn.ASKING if step.next is Next.ASK else GateTurn.DECIDED
        Run.objects.checking().filter(pk=run.pk).update(gate_turn=turn)
        if state is AttemptState.PASSED:
            text = f"all gates passed (attempt {attempt.number}){attempts.describe_unreviewed(attempt)}"
            announce.tell(lab, NoticeKind.GATE_PASSED, text, run=run)
        if step.next is Next.ASK:
            announce.tell(lab, NoticeKind.RUN_WAITS, f"it waits for a person: {reason}", run=run)
        slug = run.project.slug
        transaction.on_commit(lambda: lab.bell.look(slug), robust=True)


def _without_database(lab: Lab, hold: Hold) -> None:
    """Its gate begins anew: at once for the first time, since the database has been waited for."""
    gate = Gate(hold.attempt.gate).words.lower()
    why = f"the database did not answer in the middle of {gate}, which begins anew"
    wait = None if hold.attempt.troubles else timedelta(0)
    with contextlib.suppress(Lost, *NO_DATABASE):
        hold.patiently(lambda: _try_again(lab, hold, why, wait))


def _trouble(lab: Lab, hold: Hold, why: str) -> None:
    """What the machine could not tell is asked again, after a growing wait; it ends nothing."""
    with contextlib.suppress(Lost, *NO_DATABASE):
        hold.patiently(lambda: _try_again(lab, hold, why))


def _look_later(lab: Lab, hold: Hold, wait: PostponedError) -> None:
    """Ask again at its time, and before now and then: what is waited for may be put right by a person."""

    def write() -> None:
        with transaction.atomic():
            hold.store(not_before=min(wait.at, lab.now() + LONGEST_WAIT))
            if wait.is_new:
                text = f"attempt {hold.attempt.number} waits: {lab.mask(str(wait))}"
                announce.tell(lab, NoticeKind.GATE_STEP, text, run=hold.run)

    with contextlib.suppress(Lost, *NO_DATABASE):
        hold.patiently(write)


def _try_again(lab: Lab, hold: Hold, why: str, wait: timedelta | None = None) -> None:
    troubles = hold.attempt.troubles + 1
    if wait is None:
        wait = min(AGAIN_AFTER * (1 << min(troubles - 1, 10)), LONGEST_WAIT)
    with transaction.atomic():
        hold.store(troubles=troubles, not_before=lab.now() + wait)
        seconds = int(wait.total_seconds())
        text = f"attempt {hold.attempt.number} is tried again in {seconds} s: {lab.mask(why)}"
        kind = NoticeKind.RUN_WARNED if troubles == TOLD_AT else NoticeKind.GATE_STEP
        announce.tell(lab, kind, text, run=hold.run)


def tend(lab: Lab, judges: Judges = JUDGES) -> None:
    """Go on with attempts that nobody works on, and tidy up those whose run was ended."""
    rows = Attempt.objects.filter(host=lab.host, settled_at=None).select_related(
        "run__project", "project"
    )
    for attempt in rows:
        if _is_worked_on(lab, attempt):
            continue
        if attempt.is_running and attempt.runner:
            _lost(lab, attempt)
        elif attempt.is_running and not attempt.run.outcome:
            if attempt.not_before is None or attempt.not_before <= lab.now():
                lab.queue.on(attempt.host).check(attempt.pk)
        else:
            _close_if_over(lab, attempt, judges)


def _is_worked_on(lab: Lab, attempt: Attempt) -> bool:
    if not attempt.runner:
        return False
    is_alive = lab.is_process_alive(attempt.runner) is not False
    return is_alive and budgets.age(lab.now(), attempt.beat_at) < STALE


def _lost(lab: Lab, attempt: Attempt) -> None:
    """The process that worked on it is gone: its gate is asked anew, some times at most."""
    losses = attempt.losses + 1
    rows = Attempt.objects.running().filter(pk=attempt.pk, runner=attempt.runner)
    gate = Gate(attempt.gate).words.lower()
    if losses >= MOST_LOSSES:
        why = f"the worker was gone {losses} times in the middle of {gate}"
        _give_up(lab, attempt, Step(Next.FAIL, (why,)))
        return
    # One that was only silent has to leave first: it removes what its successor would work in.
    is_dead = lab.is_process_alive(attempt.runner) is False
    not_before = attempt.not_before if is_dead else lab.now() + AGAIN_AFTER
    with transaction.atomic():
        if rows.update(runner="", losses=losses, not_before=not_before):
            text = f"the worker was gone: {gate} of attempt {attempt.number} begins anew"
            announce.tell(lab, NoticeKind.GATE_STEP, text, run=attempt.run)
            if is_dead:
                again = lambda: lab.queue.on(attempt.host).check(attempt.pk)  # noqa: E731
                transaction.on_commit(again, robust=True)


def _give_up(lab: Lab, attempt: Attempt, step: Step) -> None:
    with transaction.atomic():
        rows = Attempt.objects.running().filter(pk=attempt.pk, runner=attempt.runner)
        won = rows.update(
            state=AttemptState.ERROR,
            step=attempts.to_json(step),
            reason="; ".join(step.reasons),
            ended_at=lab.now(),
            runner="",
        )
        if won:
            Run.objects.checking().filter(pk=attempt.run_id).update(gate_turn=GateTurn.DECIDED)
            slug = attempt.run.project.slug
            transaction.on_commit(lambda: lab.bell.look(slug), robust=True)


def _close_if_over(lab: Lab, attempt: Attempt, judges: Judges) -> None:
    """End what an attempt left once it or its run is over; tried again by `tend` where it fails."""
    attempt.refresh_from_db()
    run = Run.objects.only("outcome").get(pk=attempt.run_id)
    if attempt.is_running and not run.outcome:
        return
    why = "its run was ended meanwhile"
    Attempt.objects.running().filter(pk=attempt.pk).update(
        state=AttemptState.CANCELLED, reason=why, ended_at=lab.now()
    )
    try:
        lab.checks.end(attempt.mark)
        for settle in judges.settle:
            settle(lab, attempt)
    except SeamError as error:
        text = f"What an attempt left could not be tidied up yet: {lab.mask(str(error))}."
        Attempt.objects.filter(pk=attempt.pk).update(warning=text)
        return
    rows = Attempt.objects.filter(pk=attempt.pk, settled_at=None)
    rows.update(settled_at=lab.now(), warning="", runner="")
