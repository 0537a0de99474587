"""Runs whose project has gates: from the agent's word to the outcome, with scripted gates."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from runs.agents import orders
from runs.core import lease
from runs.core.ports import MaybeGiven, SeamError, UnremovableError
from runs.core.states import (
    AgentMode,
    AttemptState,
    Claim,
    CompletionPolicy,
    Gate,
    GateTurn,
    NoticeKind,
    Outcome,
    OutputKind,
    RunState,
)
from runs.forges.mirror_rules import FOLLOW_UP
from runs.gates import clean_room, closing, review, rules, runner
from runs.gates.hold import Hold
from runs.gates.rules import Decision, Resolution
from runs.jobs.recovery import recover_jobs
from runs.jobs.runner import LostError
from runs.lifecycle import checking, launch, outcomes, stop
from runs.lifecycle.verdict import REFUSED_TWICE
from runs.models import (
    AgentProfile,
    Attempt,
    CheckTerms,
    Job,
    Notice,
    Project,
    Review,
    Run,
    Settings,
    Validation,
)
from runs.reviewers import rules as review_rules
from runs.validation.specs import Switch
from tests import make
from tests.fakes import World
from tests.patience import least_cost
from tests.transcript import agent_lines
from tests.world.stories import look, start, work

pytestmark = pytest.mark.django_db(transaction=True)

Judge = Callable[[object, Hold], Decision]


@pytest.fixture
def project(world: World) -> Project:
    world.tracker.add_root("demo")
    agent = make.an_agent("Claude", argv=["claude", "{prompt}"])
    return make.a_project(agent=agent, policy=CompletionPolicy.GATES)


@pytest.fixture
def run(world: World, project: Project) -> Run:
    made = start(world, project, "7")
    hears(world, made, {"event": "UserPromptSubmit", "session": "s-1"})
    look(world)
    made.refresh_from_db()
    return made


def hears(world: World, run: Run, event: dict[str, object]) -> None:
    """A hook of its program writes a line."""
    folder = world.lab.paths.run_folder(run.pk)
    line = json.dumps({"at": world.clock.now.timestamp(), **event}).encode() + b"\n"
    world.sessions.events[folder] = world.sessions.events.get(folder, b"") + line


def passes(gate: Gate) -> Judge:
    def judge(lab: object, hold: Hold) -> Decision:
        if gate is Gate.EVIDENCE:
            tip = hold_tip(lab, hold)
            hold.store(commit=tip, resolution=Resolution.SUCCESS)
        return Decision(gate, True)

    return judge


def hold_tip(lab: object, hold: Hold) -> str:
    return lab.repos.tip(hold.run.project.repo(lab.paths), f"refs/heads/{hold.run.branch}")  # type: ignore[attr-defined]


def fails(gate: Gate, *reasons: str, retryable: bool = True) -> Judge:
    return lambda lab, hold: Decision(gate, False, reasons, is_retryable=retryable)


def tries_again(number: int) -> Judge:
    """Something new was tried, and there is no commit still."""

    def judge(lab: object, hold: Hold) -> Decision:
        hold.store(evidence=[{"command": "tests", "at": str(number)}])
        return Decision(Gate.EVIDENCE, False, ("no commit",))

    return judge


def idles(lab: object, hold: Hold) -> Decision:
    hold.store(evidence_from={"files": "the same"})
    return Decision(Gate.EVIDENCE, False, ("no commit",))


PASSING = {gate: passes(gate) for gate in (Gate.EVIDENCE, Gate.CLEAN_ROOM, Gate.REVIEW)}


def checked(world: World, run: Run, judges: dict[Gate, Judge] | None = None) -> Attempt:
    """The tick begins an attempt, the worker takes it through the gates, the tick acts on it."""
    look(world)
    attempt = Attempt.objects.get(run=run, state=AttemptState.RUNNING)
    carry_out(world, attempt, judges or {})
    look(world)
    run.refresh_from_db()
    attempt.refresh_from_db()
    return attempt


def carry_out(world: World, attempt: Attempt, judges: dict[Gate, Judge]) -> None:
    """The worker takes an attempt through its gates."""
    runner.carry_out(world.lab, attempt.pk, judges={**PASSING, **judges})


def recover(world: World) -> Job:
    """The job of the one attempt, after a look at what nobody works on."""
    recover_jobs(world.lab, [runner.HANDLER])
    return Job.objects.get()


def is_done(world: World, run: Run) -> None:
    world.clock.forward(seconds=30)
    Run.objects.filter(pk=run.pk).update(look_asked_at=world.clock.now)
    hears(world, run, {"event": "Stop"})


def told(kind: NoticeKind) -> list[str]:
    return list(Notice.objects.filter(kind=kind).order_by("pk").values_list("text", flat=True))


@pytest.fixture(autouse=True)
def nothing_is_validated(project: Project) -> None:
    """The run level has tests of its own."""
    CheckTerms.objects.create(
        project=project,
        disabled=[Switch.RUN_LEVEL.value],
        require_pytest_for_code_changes=False,
        skip_without_reviewers=True,
    )


@pytest.mark.row("MALA-V-20", "C-08", level="contract")
def test_done_moves_the_run_to_checking_and_its_session_stays(world, run):
    is_done(world, run)
    look(world)
    run.refresh_from_db()
    assert run.state == RunState.CHECKING
    assert run.slot and run.session in world.sessions.all
    assert world.queue.attempts == [Attempt.objects.get(run=run).pk]
    assert told(NoticeKind.RUN_CHECKING) == [
        "its agent says that it is done; the gates of the project check it"
    ]


@pytest.mark.row("MALA-V-37", "MALA-V-19", level="contract")
def test_work_that_passes_all_gates_is_a_success(world, run):
    is_done(world, run)
    attempt = checked(world, run)
    assert (run.outcome, attempt.state) == (Outcome.SUCCEEDED, AttemptState.PASSED)
    assert [one["gate"] for one in attempt.decisions] == ["evidence", "clean_room", "review"]
    assert run.accepted_commit == attempt.commit
    assert run.reason == f"the gates passed on commit {attempt.commit[:7]} (attempt 1)"


@pytest.mark.row("MALA-V-45", "MALA-V-86", level="contract")
def test_what_fails_is_told_in_the_same_session_and_checked_again(world, run):
    is_done(world, run)
    session = run.session
    checked(world, run, {Gate.CLEAN_ROOM: fails(Gate.CLEAN_ROOM, "ruff failed")})
    assert (run.state, run.outcome, run.session) == (RunState.WORKING, "", session)
    said = world.sessions.typed[-1][1]
    assert "(attempt 1)" in said and "- ruff failed" in said
    assert "You have 2 more attempts at evidence and clean room." in said
    is_done(world, run)
    second = checked(world, run)
    assert (second.number, run.outcome, run.attempts) == (2, Outcome.SUCCEEDED, 2)


@pytest.mark.row("MALA-V-87", "MALA-V-89", "C-37", level="contract")
def test_three_failed_attempts_fail_the_run(world, run):
    for number in (1, 2, 3):
        is_done(world, run)
        attempt = checked(world, run, {Gate.EVIDENCE: tries_again(number)})
        assert attempt.number == number
    assert run.outcome == Outcome.FAILED
    last = "it was the last of 3 attempts at evidence and clean room"
    assert run.reason == f"gate evidence: no commit; {last}"
    assert run.note_asked_at is not None
    assert told(NoticeKind.GATE_FAILED)
    assert start(world, run.project, "8").outcome == ""  # the others go on


@pytest.mark.row("MALA-V-88", "MALA-V-89", "C-37", level="contract")
@pytest.mark.parametrize("ends_well", [True, False])
def test_three_attempts_at_the_review_are_counted_apart_from_those_at_the_gates(
    world, run, ends_well
):
    room, said = (fails(gate, "no") for gate in (Gate.CLEAN_ROOM, Gate.REVIEW))
    bad: list[dict[Gate, Judge]] = [{Gate.CLEAN_ROOM: room}, {Gate.REVIEW: said}] * 2
    for judges in [*bad, {} if ends_well else {Gate.REVIEW: said}]:
        assert run.outcome == ""
        is_done(world, run)
        checked(world, run, judges)
    assert run.attempts == 5
    if ends_well:
        assert run.outcome == Outcome.SUCCEEDED
        return
    last = "it was the last of 3 attempts at the review"
    assert (run.outcome, run.reason) == (Outcome.FAILED, f"gate review: no; {last}")


@pytest.mark.row("MALA-V-91", level="contract")
def test_without_progress_the_second_attempt_is_the_last(world, run):
    for _ in (1, 2):
        is_done(world, run)
        checked(world, run, {Gate.EVIDENCE: idles})
    assert (run.outcome, run.attempts) == (Outcome.FAILED, 2)
    assert rules.NO_PROGRESS in run.reason


@pytest.mark.row("MALA-V-94", level="contract")
def test_what_no_agent_can_mend_fails_at_once(world, run):
    is_done(world, run)
    judges = {Gate.CLEAN_ROOM: fails(Gate.CLEAN_ROOM, "no worktree", retryable=False)}
    checked(world, run, judges)
    assert (run.outcome, run.attempts) == (Outcome.FAILED, 1)


@pytest.mark.row("C-08", level="contract")
def test_a_session_that_died_cannot_be_told_and_the_run_fails(world, run):
    is_done(world, run)
    look(world)
    del world.sessions.all[run.session]
    checked(world, run, {Gate.REVIEW: fails(Gate.REVIEW, "P1")})
    assert run.outcome == Outcome.FAILED
    assert "no session any more" in run.reason


def test_a_branch_that_goes_before_acceptance_is_not_accepted(world, run, project):
    is_done(world, run)
    look(world)
    attempt = Attempt.objects.get(run=run)
    carry_out(world, attempt, {})
    attempt.refresh_from_db()
    assert attempt.state == AttemptState.PASSED
    world.repos._branches(project.repo(world.lab.paths)).pop(run.branch)
    look(world)
    run.refresh_from_db()
    assert (run.outcome, run.state, run.accepted_commit) == ("", RunState.CHECKING, "")
    assert Attempt.objects.filter(run=run, state=AttemptState.RUNNING).exists()


def test_a_session_that_died_after_good_work_is_a_success(world, run):
    is_done(world, run)
    look(world)
    del world.sessions.all[run.session]
    checked(world, run)
    assert run.outcome == Outcome.SUCCEEDED


@pytest.mark.row("C-49", level="contract")
def test_the_budget_rests_while_the_gates_are_at_work(world, run):
    is_done(world, run)
    look(world)
    run.refresh_from_db()
    used = run.age(world.clock.now)
    world.clock.forward(hours=9)
    look(world)
    run.refresh_from_db()
    assert (run.outcome, run.age(world.clock.now)) == ("", used)
    checked(world, run, {Gate.EVIDENCE: fails(Gate.EVIDENCE, "no commit")})
    assert run.age(world.clock.now) - used < timedelta(seconds=2)


def test_stop_works_at_once_while_checking(world, run):
    is_done(world, run)
    look(world)
    attempt = Attempt.objects.get(run=run)

    def stopped(lab: object, hold: Hold) -> Decision:
        stop.stop(world.lab, Run.objects.get(pk=run.pk), "anna")
        assert not hold.is_held()
        raise LostError

    carry_out(world, attempt, {Gate.CLEAN_ROOM: stopped})
    run.refresh_from_db()
    attempt.refresh_from_db()
    assert (run.outcome, attempt.state) == (Outcome.STOPPED, AttemptState.CANCELLED)
    assert attempt.settled_at is not None


def test_a_run_that_is_stopped_before_its_attempt_begins_is_asked_nothing(world, run):
    is_done(world, run)
    look(world)
    stop.stop(world.lab, Run.objects.get(pk=run.pk), "anna")
    runner.carry_out(world.lab, Attempt.objects.get().pk, judges={})
    attempt = Attempt.objects.get()
    assert (attempt.state, attempt.decisions) == (AttemptState.CANCELLED, [])
    assert attempt.settled_at is not None and Job.objects.get().finished_at is not None


@pytest.mark.row("MALA-V-34", "MALA-V-92", "MALA-W-26", level="contract")
@pytest.mark.parametrize("claim", [Claim.NO_CHANGE, Claim.OBSOLETE])
def test_an_issue_that_needs_nothing_ends_so(world, run, claim):
    Run.objects.filter(pk=run.pk).update(claim=claim, claim_reason="fixed by #3")
    is_done(world, run)

    def evidence(lab: object, hold: Hold) -> Decision:
        hold.store(resolution=claim.value, rationale="fixed by #3")
        return Decision(Gate.EVIDENCE, True)

    never = fails(Gate.REVIEW, "was asked")
    attempt = checked(
        world, run, {Gate.EVIDENCE: evidence, Gate.CLEAN_ROOM: never, Gate.REVIEW: never}
    )
    assert run.outcome == claim.value
    assert [one["is_skipped"] for one in attempt.decisions] == [False, True, True]


class Killed(BaseException):
    """A worker that is killed catches nothing."""


@pytest.mark.row("MALA-V-99", level="contract")
@pytest.mark.parametrize("gate", rules.ORDER)
def test_a_worker_that_dies_goes_on_at_the_same_attempt_and_says_so(world, run, gate):
    is_done(world, run)
    look(world)
    attempt, asked = Attempt.objects.get(run=run), []

    def judged(one: Gate, *, dies: bool = False) -> Judge:
        def judge(lab: object, hold: Hold) -> Decision:
            asked.append(one)
            if dies:
                raise Killed
            return PASSING[one](lab, hold)

        return judge

    judges = {one: judged(one) for one in rules.ORDER}
    with pytest.raises(Killed):
        carry_out(world, attempt, {**judges, gate: judged(gate, dies=True)})
    assert Job.objects.get().owner == world.lab.process
    world.dead_processes.add(world.lab.process)
    assert recover(world).owner == ""
    said = f"the worker was gone: {gate.words.lower()} of attempt 1 begins anew"
    assert said in told(NoticeKind.GATE_STEP)
    assert world.queue.attempts == [attempt.pk] * 2
    carry_out(world, attempt, judges)
    look(world)
    run.refresh_from_db()
    assert (run.outcome, run.attempts) == (Outcome.SUCCEEDED, 1)
    assert sorted(asked, key=rules.ORDER.index) == sorted(
        [*rules.ORDER, gate], key=rules.ORDER.index
    )


def test_a_worker_that_dies_after_its_last_gate_leaves_nothing_to_be_asked_again(
    world, run, monkeypatch
):
    def dies(*_: object) -> None:
        raise Killed

    is_done(world, run)
    look(world)
    attempt = Attempt.objects.get(run=run)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(runner.clean_room, "remove_worktree", dies)
        carry_out(world, attempt, {})
    attempt.refresh_from_db()
    assert (attempt.state, attempt.settled_at) == (AttemptState.PASSED, None)
    Job.objects.update(owner=world.lab.process, beat_at=world.clock.now)  # a moment earlier
    world.dead_processes.add(world.lab.process)
    assert recover(world).finished_at is not None
    attempt.refresh_from_db()
    assert attempt.settled_at is not None and world.queue.attempts == [attempt.pk]
    look(world)
    run.refresh_from_db()
    assert (run.outcome, run.attempts) == (Outcome.SUCCEEDED, 1)


@pytest.mark.row("MALA-V-99", level="contract")
def test_whoever_was_silent_and_lives_stores_nothing_once_another_goes_on(world, run):
    """It has time to leave first: it removes the clean worktree when it sees that it lost the attempt."""
    is_done(world, run)
    look(world)
    attempt = Attempt.objects.get(run=run)
    other = replace(world.lab, process="boot:2:2")

    def silent(lab: object, hold: Hold) -> Decision:
        runner.carry_out(other, attempt.pk, judges={})  # it is ours still
        world.clock.forward(minutes=11)
        assert recover(world).losses == 1
        runner.carry_out(other, attempt.pk, judges={})
        world.clock.forward(seconds=31)
        runner.carry_out(other, attempt.pk, judges=PASSING)
        assert not hold.is_held()
        return Decision(Gate.CLEAN_ROOM, False, ("it is too late",))

    carry_out(world, attempt, {Gate.CLEAN_ROOM: silent})
    attempt.refresh_from_db()
    assert attempt.state == AttemptState.PASSED
    assert [one["passed"] for one in attempt.decisions] == [True, True, True]
    assert not told(NoticeKind.GATE_FAILED)


def test_a_gate_in_which_three_workers_die_is_a_mistake_of_ours(world, run):
    is_done(world, run)
    look(world)
    Job.objects.update(owner="boot:1:1", beat_at=world.clock.now, losses=2)
    world.dead_processes.add("boot:1:1")
    recover(world)
    assert recover(world).finished_at is not None
    look(world)
    run.refresh_from_db()
    assert (run.outcome, run.note_asked_at) == (Outcome.FAILED, None)
    assert run.reason == "gates: the worker was gone 3 times in the middle of evidence"
    assert Attempt.objects.get().settled_at is not None


class Away:
    """A database that answers nothing for a while; what waits for it moves the clock of the world."""

    def __init__(self, world: World) -> None:
        self.world, self.until = world, world.clock.now
        self.lab = replace(world.lab, pause=lambda seconds: world.clock.forward(seconds=seconds))

    def goes(self, seconds: float) -> None:
        self.until = self.world.clock.now + timedelta(seconds=seconds)

    def __call__(self, execute: Any, *args: Any) -> Any:
        if self.world.clock.now < self.until:
            raise OperationalError("server closed the connection unexpectedly")
        return execute(*args)


@pytest.mark.row("X-09", "MALA-V-99", level="contract")
@pytest.mark.parametrize("gate", [Gate.EVIDENCE, Gate.CLEAN_ROOM, Gate.REVIEW])
@pytest.mark.parametrize(
    ("seconds", "again"), [(60, False), (400, True)], ids=["a minute", "longer than its patience"]
)
def test_a_database_that_is_away_at_the_end_of_a_step_loses_nothing(
    world, run, gate, seconds, again
):
    """What was proven is written down once it answers; after minutes the gate is asked once more."""
    is_done(world, run)
    look(world)
    attempt, away, asked = Attempt.objects.get(run=run), Away(world), []

    def loses(lab: object, hold: Hold) -> Decision:
        asked.append(gate)
        made = PASSING[gate](lab, hold)
        if len(asked) == 1:
            away.goes(seconds)
        return made

    with connection.execute_wrapper(away):
        runner.carry_out(away.lab, attempt.pk, judges={**PASSING, gate: loses})
    job = Job.objects.get()
    assert (job.owner, job.losses) == ("", 0)  # given back
    if again:
        text = (
            f"the database did not answer in the middle of {gate.words.lower()}, which begins anew"
        )
        assert told(NoticeKind.GATE_STEP)[-1] == f"attempt 1 is tried again in 0 s: {text}"
        recover(world)
        assert world.queue.attempts[-1] == attempt.pk
        carry_out(world, attempt, {gate: loses})
    look(world)
    run.refresh_from_db()
    attempt.refresh_from_db()
    assert (run.outcome, run.attempts, len(asked)) == (Outcome.SUCCEEDED, 1, 1 + again)
    assert [one["gate"] for one in attempt.decisions] == ["evidence", "clean_room", "review"]
    assert attempt.settled_at is not None


def test_a_database_that_is_away_when_an_attempt_is_taken_leaves_it_free(world, run):
    is_done(world, run)
    look(world)
    attempt = Attempt.objects.get(run=run)

    class Taken(Away):
        def __call__(self, execute: Any, sql: str, *args: Any) -> Any:
            if sql.startswith("SELECT"):
                raise OperationalError("server closed the connection unexpectedly")
            return execute(sql, *args)

    with connection.execute_wrapper(Taken(world)), pytest.raises(OperationalError):
        carry_out(world, attempt, {})
    assert Job.objects.get().owner == ""
    assert checked(world, run).state == AttemptState.PASSED


def test_an_attempt_is_begun_once_however_often_a_tick_looks(world, run):
    is_done(world, run)
    look(world)
    look(world)
    Run.objects.filter(pk=run.pk).update(gate_turn=GateTurn.NONE)
    look(world)
    assert Attempt.objects.filter(run=run).count() == 1


@pytest.mark.row("MALA-V-82", level="contract")
def test_files_that_are_not_committed_are_not_accepted(world, run):
    is_done(world, run)
    world.repos.trees[Path(run.worktree)].is_dirty = True
    checked(world, run)
    assert (run.outcome, run.state) == ("", RunState.WORKING)
    assert "not committed" in world.sessions.typed[-1][1]


def test_what_the_machine_could_not_tell_is_asked_again_and_costs_no_attempt(world, run):
    is_done(world, run)
    look(world)
    attempt = Attempt.objects.get(run=run)

    def silent(lab: object, hold: Hold) -> Decision:
        raise SeamError("git hung")

    carry_out(world, attempt, {Gate.CLEAN_ROOM: silent})
    job = Job.objects.get()
    assert (job.finished_at, job.owner, job.troubles) == (None, "", 1)
    assert told(NoticeKind.GATE_STEP)[-1] == "attempt 1 is tried again in 30 s: git hung"
    carry_out(world, attempt, {})
    assert Attempt.objects.get().state == AttemptState.RUNNING  # not before its time
    world.clock.forward(seconds=31)
    carry_out(world, attempt, {})
    look(world)
    run.refresh_from_db()
    assert (run.outcome, run.attempts) == (Outcome.SUCCEEDED, 1)


DIALOG = " Do you want to proceed?\n ❯ 1. Yes\n   2. No\n"


def test_nothing_is_typed_into_a_dialog_and_a_person_is_asked_to_answer_it(world, run):
    world.sessions.text[run.session] = DIALOG
    is_done(world, run)
    checked(world, run, {Gate.CLEAN_ROOM: fails(Gate.CLEAN_ROOM, "ruff failed")})
    assert (run.state, run.gate_turn, world.sessions.typed) == (
        RunState.WORKING,
        GateTurn.TELLING,
        [],
    )
    Run.objects.filter(pk=run.pk).update(turn_ended_at=world.clock.now)
    look(world)
    assert Attempt.objects.count() == 1  # it was not told yet, so it says nothing
    world.sessions.text[run.session] = "> "
    look(world)
    run.refresh_from_db()
    assert (run.gate_turn, len(world.sessions.typed)) == ("", 1)


@pytest.mark.parametrize(
    ("shown", "typed"),
    [
        # It may be a draft that nobody has sent: Enter is pressed, which says nothing otherwise.
        ("> labsite checked your work (attempt 1) and it did", ["key Enter"]),
        ("> ", ["labsite checked your work (attempt 1) and it did not pass: clean room."]),
    ],
)
def test_a_worker_that_died_while_it_told_tells_again_only_what_is_not_on_the_screen(
    world, run, shown, typed
):
    is_done(world, run)
    checked(world, run, {Gate.CLEAN_ROOM: fails(Gate.CLEAN_ROOM, "ruff failed")})
    world.sessions.typed.clear()
    Run.objects.filter(pk=run.pk).update(gate_turn=GateTurn.TELLING)
    world.sessions.text[run.session] = shown
    world.clock.forward(seconds=15)
    before = len(told(NoticeKind.RUN_REENTERED))
    look(world)
    run.refresh_from_db()
    assert run.gate_turn == GateTurn.NONE
    assert [text.splitlines()[0] for _, text in world.sessions.typed] == typed
    assert len(told(NoticeKind.RUN_REENTERED)) == before + 1


def test_what_stands_there_as_a_draft_is_sent_as_soon_as_tmux_answers(world, run):
    is_done(world, run)
    world.sessions.giving = MaybeGiven("it was not shown")
    checked(world, run, BAD)
    world.sessions.text[run.session] = f"> {run.gate_message}"
    world.sessions.giving = SeamError("tmux is away")
    look(world)
    run.refresh_from_db()
    assert (run.gate_turn, world.sessions.typed) == (GateTurn.TELLING, [])
    world.sessions.giving = None
    look(world)
    run.refresh_from_db()
    assert (run.gate_turn, world.sessions.typed) == (GateTurn.NONE, [(run.session, "key Enter")])


def test_an_agent_that_says_done_again_has_heard_it_whatever_its_screen_shows(world, run):
    is_done(world, run)
    world.sessions.giving = MaybeGiven("it was not shown")
    checked(world, run, BAD)
    world.sessions.giving = None
    world.clock.forward(seconds=1)
    Run.objects.filter(pk=run.pk).update(look_asked_at=world.clock.now)
    look(world)
    run.refresh_from_db()
    assert (run.gate_turn, world.sessions.typed) == (GateTurn.NONE, [])
    assert run.project.slug in world.bell.looks  # to be judged at once, not at the next tick
    look(world)
    assert Attempt.objects.filter(run=run).count() == 2


def test_the_end_of_the_turn_that_said_done_is_no_new_word(world, run):
    """`labctl done` is said in the middle of a turn, whose end comes when the gates have failed."""
    world.clock.forward(seconds=30)
    Run.objects.filter(pk=run.pk).update(look_asked_at=world.clock.now)
    checked(world, run, {Gate.EVIDENCE: fails(Gate.EVIDENCE, "no commit")})
    assert (run.gate_turn, world.sessions.typed) == (GateTurn.TELLING, [])
    world.clock.forward(seconds=5)
    hears(world, run, {"event": "Stop"})
    look(world)
    run.refresh_from_db()
    assert (run.state, run.gate_turn, len(world.sessions.typed)) == (RunState.WORKING, "", 1)
    world.clock.forward(seconds=5)
    look(world)
    assert Attempt.objects.count() == 1
    hears(world, run, {"event": "UserPromptSubmit", "session": "s-1"})
    world.clock.forward(seconds=5)
    hears(world, run, {"event": "Stop"})
    look(world)
    assert Attempt.objects.count() == 2


def finds(title: str) -> Judge:
    """A reviewer finds this one thing."""

    def judge(lab: object, hold: Hold) -> Decision:
        finding = review_rules.Finding(1, "sum.py", 2, title, "")
        Review.objects.create(
            attempt=hold.attempt,
            reviewer="eyes",
            state="failed",
            findings=[finding.to_json()],
            began_at=lab.now(),  # type: ignore[attr-defined]
        )
        vote = review_rules.Vote("eyes", review_rules.ReviewState.FAILED, (finding,))
        return review_rules.decide([vote], skips_without_reviewers=False)

    return judge


def test_the_same_finding_twice_goes_to_a_person_before_the_attempts_are_used_up(world, run):
    is_done(world, run)
    checked(world, run, {Gate.REVIEW: finds("Leaves one out")})
    assert (run.state, run.outcome) == (RunState.WORKING, "")
    world.repos.refs[f"refs/heads/{run.branch}"] = "d" * 40
    look(world)
    is_done(world, run)
    checked(world, run, {Gate.REVIEW: finds("Leaves one out")})
    assert (run.outcome, run.attempts) == (Outcome.FAILED, 2)
    assert run.reason.endswith(
        "“Leaves one out” in sum.py was found again after its agent was told: a person has to decide"
    )


@pytest.mark.row("MALA-V-49", "C-43", level="contract")
@pytest.mark.parametrize("is_skipped", [True, False])
def test_work_that_nobody_reviewed_is_called_so_however_it_ends(world, run, is_skipped):
    is_done(world, run)
    decision = review_rules.decide([], skips_without_reviewers=is_skipped)
    checked(world, run, {Gate.REVIEW: lambda lab, hold: decision})
    said = told(NoticeKind.GATE_STEP if is_skipped else NoticeKind.GATE_FAILED)[-1]
    assert said == "not reviewed (attempt 1): no reviewer available: none is set up"
    if is_skipped:
        assert told(NoticeKind.GATE_PASSED) == ["all gates passed (attempt 1), not reviewed"]
        assert run.outcome == Outcome.SUCCEEDED
        assert run.reason.endswith("(attempt 1), not reviewed")
    else:
        assert run.outcome == Outcome.FAILED
        assert run.reason == "not reviewed: no reviewer available: none is set up"


def test_what_changes_before_a_late_tick_accepts_is_checked_anew(world, run):
    is_done(world, run)
    look(world)
    attempt = Attempt.objects.get(run=run)
    carry_out(world, attempt, {})
    world.repos.trees[Path(run.worktree)].is_dirty = True
    look(world)
    run.refresh_from_db()
    assert (run.outcome, run.state, Attempt.objects.count()) == ("", RunState.CHECKING, 2)


def test_a_stopped_budget_does_not_count_once_the_gates_begin(world, run):
    is_done(world, run)
    since = world.clock.now - timedelta(hours=1)
    Run.objects.filter(pk=run.pk).update(
        budget_stopped_at=since, started_at=since, waits="idle", waits_at=since
    )
    run.refresh_from_db()
    run.project.waits_stop_budget = True
    run.project.save()
    look(world)
    run.refresh_from_db()
    assert run.state == RunState.CHECKING
    assert run.age(world.clock.now) < timedelta(minutes=2)


def test_a_mistake_of_ours_is_not_told_the_tracker(world, run):
    is_done(world, run)
    look(world)

    def breaks(lab: object, hold: Hold) -> Decision:
        raise RuntimeError("ours")

    carry_out(world, Attempt.objects.get(run=run), {Gate.CLEAN_ROOM: breaks})
    look(world)
    run.refresh_from_db()
    assert (run.outcome, run.note_asked_at) == (Outcome.FAILED, None)
    assert "labsite made a mistake (RuntimeError)" in run.reason


def test_a_word_that_came_after_the_tick_read_the_run_counts(world, run):
    is_done(world, run)
    old = Run.objects.select_related("project").get(pk=run.pk)
    Run.objects.filter(pk=run.pk).update(claim=Claim.OBSOLETE)
    host = lease.take(world.lab)
    assert host is not None
    assert checking.begin(world.lab, old, {}, host.lease_number)
    assert Run.objects.get(pk=run.pk).claim == Claim.OBSOLETE


def test_runs_that_are_checked_add_no_query_to_a_tick(world, run, project):
    def queries() -> int:
        world.clock.forward(seconds=60)
        with CaptureQueriesContext(connection) as seen:
            look(world)
        return len(seen)

    is_done(world, run)
    look(world)
    queries()
    before = queries()
    for number in range(20, 40):
        since = {"checking_at": world.clock.now, "started_at": world.clock.now}
        other = make.a_run(project, str(number), slot=number, state=RunState.CHECKING, **since)
        world.live(other)
    assert queries() == before


def test_a_thousand_attempts_are_decided_in_no_time(run):
    """10 ms for all of them on a quiet machine; ten times that here, where others work too."""
    decisions = (Decision(Gate.EVIDENCE, True), Decision(Gate.CLEAN_ROOM, False, ("ruff failed",)))
    facts = rules.AttemptFacts(Claim.DONE, decisions, gate_failures=1)

    def decide() -> None:
        assert {rules.next_step(facts).next for _ in range(1000)} == {rules.Next.TELL}

    assert least_cost(decide) < 0.1


@pytest.mark.row("MALA-V-50", "MALA-V-51", level="contract")
def test_after_a_review_that_failed_all_gates_are_asked_again_on_the_new_commit(world, run):
    is_done(world, run)
    first = checked(world, run, {Gate.REVIEW: fails(Gate.REVIEW, "P1 total.py:2 wrong")})
    world.repos.refs[f"refs/heads/{run.branch}"] = "e" * 40
    is_done(world, run)
    second = checked(world, run)
    assert [one["gate"] for one in second.decisions] == ["evidence", "clean_room", "review"]
    assert first.commit != second.commit == run.accepted_commit


@pytest.mark.parametrize("how", ["a commit more", "amended", "force-pushed"])
@pytest.mark.parametrize("when", ["during the review", "before it is accepted"])
def test_an_approval_is_of_its_commit_alone(world, run, project, how, when):
    """What is there now has passed no gate, however alike it is."""
    repos, ref = world.repos, f"refs/heads/{run.branch}"
    base = repos.commit({"a.py": "1\n"}, subject="chore: begin")
    old = repos.commit({"a.py": "2\n"}, base, subject="feat: two")
    new = {
        "a commit more": lambda: repos.commit({"a.py": "3\n"}, old, subject="feat: three"),
        "amended": lambda: repos.commit({"a.py": "2\n"}, base, subject="feat: two, amended"),
        "force-pushed": lambda: repos.commit({"b.py": "1\n"}, subject="feat: another"),
    }[how]()
    repos.refs[ref] = old
    reviewed = []

    def approves(lab: object, hold: Hold) -> Decision:
        reviewed.append(hold.attempt.commit)
        if when == "during the review":
            repos.refs[ref] = new
        return Decision(Gate.REVIEW, True)

    is_done(world, run)
    look(world)
    first = Attempt.objects.get(run=run)
    carry_out(world, first, {Gate.REVIEW: approves})
    repos.refs[ref] = new
    look(world)
    run.refresh_from_db()
    assert (run.outcome, run.state, run.accepted_commit) == ("", RunState.CHECKING, "")
    second = Attempt.objects.get(run=run, state=AttemptState.RUNNING)
    carry_out(world, second, {Gate.REVIEW: fails(Gate.REVIEW, "P1", retryable=False)})
    look(world)
    run.refresh_from_db()
    second.refresh_from_db()
    assert reviewed == [old]
    assert (second.commit, run.outcome, run.accepted_commit) == (new, Outcome.FAILED, "")


@pytest.mark.row("MALA-V-62", level="contract")
@pytest.mark.parametrize("is_off", [True, False])
def test_without_the_run_level_the_issue_is_closed_as_soon_as_its_work_is_accepted(
    world, run, is_off
):
    CheckTerms.objects.update(disabled=[Switch.RUN_LEVEL.value] if is_off else [])
    is_done(world, run)
    checked(world, run)
    assert run.outcome == Outcome.SUCCEEDED
    assert Validation.objects.filter(run=run).exists() is not is_off
    assert (run.close_asked_at is not None) is is_off
    assert closing.find_due_updates(world.lab.host, world.clock.now).exists() is is_off


@pytest.mark.row("MALA-V-21", level="contract")
@pytest.mark.parametrize("bad", [Gate.EVIDENCE, Gate.CLEAN_ROOM])
def test_no_gate_behind_one_that_failed_is_asked(world, run, bad):
    asked: list[Gate] = []

    def judged(gate: Gate) -> Judge:
        def judge(lab: object, hold: Hold) -> Decision:
            asked.append(gate)
            return Decision(gate, False, ("no",)) if gate is bad else PASSING[gate](lab, hold)

        return judge

    is_done(world, run)
    checked(world, run, {gate: judged(gate) for gate in rules.ORDER})
    assert asked == list(rules.ORDER[: rules.ORDER.index(bad) + 1])


@pytest.mark.row("MALA-V-90", level="contract")
def test_an_issue_whose_gates_failed_is_marked_for_follow_up_and_stays_open(world, run):
    is_done(world, run)
    judges = {Gate.CLEAN_ROOM: fails(Gate.CLEAN_ROOM, "ruff failed", retryable=False)}
    checked(world, run, judges)
    closing.update_trackers(world.lab)
    closing.update_trackers(world.lab)
    issue = world.tracker.issue("demo", "7")
    assert FOLLOW_UP in issue.labels and issue.is_open
    (said,) = issue.comments
    assert "gate clean room: ruff failed" in said.body
    assert f"*Checks* of run {run.pk}" in said.body


BAD = {Gate.CLEAN_ROOM: fails(Gate.CLEAN_ROOM, "ruff failed")}


def is_told(world: World, run: Run) -> list[str]:
    """What it has been told after one more look."""
    look(world)
    run.refresh_from_db()
    return [text.splitlines()[0] for _, text in world.sessions.typed]


def test_a_word_from_before_it_is_told_is_used_up(world, run):
    """`labctl done` once more, in the turn in which it was said first."""
    world.clock.forward(seconds=30)
    Run.objects.filter(pk=run.pk).update(look_asked_at=world.clock.now)
    checked(world, run, BAD)
    Run.objects.filter(pk=run.pk).update(look_asked_at=world.clock.now)
    hears(world, run, {"event": "Stop"})
    assert len(is_told(world, run)) == len(is_told(world, run)) == 1
    assert (run.state, Attempt.objects.filter(run=run).count()) == (RunState.WORKING, 1)


def test_what_may_not_have_arrived_is_typed_once_more(world, run):
    is_done(world, run)
    world.sessions.giving = MaybeGiven("it was not shown")
    checked(world, run, BAD)
    assert run.gate_turn == GateTurn.TELLING
    world.sessions.giving = None
    assert is_told(world, run) == []  # it may be drawn in a moment
    world.clock.forward(seconds=15)
    assert len(is_told(world, run)) == 1
    assert run.gate_turn == GateTurn.NONE


def test_what_did_arrive_is_not_typed_again_and_the_answer_to_it_counts(world, run):
    is_done(world, run)
    world.sessions.giving = MaybeGiven("Enter was perhaps not pressed")
    checked(world, run, BAD)
    world.sessions.giving = None
    world.clock.forward(seconds=1)
    hears(world, run, {"event": "UserPromptSubmit", "session": "s-1"})
    world.clock.forward(seconds=5)
    hears(world, run, {"event": "Stop"})
    assert is_told(world, run) == is_told(world, run) == []
    assert (run.state, Attempt.objects.filter(run=run).count()) == (RunState.CHECKING, 2)


@pytest.fixture
def one_shot(world: World, project: Project) -> Run:
    """A run of a program that ends by itself, with a session of its own."""
    AgentProfile.objects.filter(pk=project.agent_id).update(
        argv=["claude", "-p", "{prompt}"], mode=AgentMode.ONE_SHOT, output=OutputKind.CLAUDE
    )
    made = start(world, project, "7")
    Run.objects.filter(pk=made.pk).update(agent_session="s-1")
    made.refresh_from_db()
    return made


def test_a_one_shot_program_says_its_last_words_before_it_is_started_again(world, one_shot):
    Run.objects.filter(pk=one_shot.pk).update(look_asked_at=world.clock.now)
    checked(world, one_shot, BAD)
    assert (one_shot.state, world.queue.launches) == (RunState.CHECKING, [])
    world.sessions.end(one_shot.session)
    look(world)
    one_shot.refresh_from_db()
    assert (one_shot.state, world.queue.launches) == (RunState.STARTING, [one_shot.pk])
    launch.carry_out(world.lab, world.queue.launches.pop())
    order = world.sessions.orders[one_shot.session]
    assert order.argv[:3] == ["claude", "--resume", "s-1"]
    assert "- ruff failed" in order.files["prompt.md"]


def is_told_fresh(world: World, run: Run) -> None:
    """The last session began anew, with the task, what failed, and that earlier work is there."""
    order = world.sessions.orders[run.session]
    words = order.files["prompt.md"]
    assert "--resume" not in order.argv
    assert order.cwd == Path(run.worktree)
    assert "Work on this issue was begun earlier" in words
    assert "issue 7" in words
    assert "- ruff failed" in words


def test_a_one_shot_program_that_has_lost_its_session_goes_on_once_in_a_fresh_one(world, one_shot):
    Run.objects.filter(pk=one_shot.pk).update(look_asked_at=world.clock.now)
    checked(world, one_shot, BAD)
    world.sessions.end(one_shot.session)
    look(world)
    world.sessions.vanish_at_once = True
    work(world)
    one_shot.refresh_from_db()
    assert (one_shot.state, one_shot.agent_session) == (RunState.HELD, "")
    look(world)
    work(world)
    is_told_fresh(world, one_shot)
    one_shot.refresh_from_db()
    assert one_shot.outcome == Outcome.FAILED
    assert one_shot.reason.startswith("could not be started again: ")


def refuses(world: World, run: Run, status: int = 400) -> None:
    """Its program tells that its service refused to go on, and ends."""
    session = {**agent_lines.claude_init(), "session_id": run.agent_session or "s-2"}
    refusal = agent_lines.claude_refused(status, "messages.1.content: it is too old")
    folder = world.lab.paths.run_folder(run.pk)
    world.sessions.outputs[folder] = agent_lines.written(session, refusal)
    world.sessions.end(run.session, 1)
    look(world)
    world.clock.forward(minutes=5)
    look(world)
    work(world)
    run.refresh_from_db()


def test_what_the_service_refuses_twice_goes_on_once_in_a_fresh_session_and_then_fails(
    world, one_shot
):
    """An error 400 is no trouble of the account: what the session holds is not taken any more.

    What failed before its session came up is not counted with it.
    """
    told = {"look_asked_at": world.clock.now, "resume_failures": 2}
    Run.objects.filter(pk=one_shot.pk).update(**told)
    checked(world, one_shot, BAD)
    world.sessions.end(one_shot.session)
    look(world)
    work(world)
    one_shot.refresh_from_db()
    refuses(world, one_shot)
    order = world.sessions.orders[one_shot.session]
    assert order.argv[:3] == ["claude", "--resume", "s-1"]
    assert "Work on this issue was begun earlier" not in order.files["prompt.md"]
    assert (one_shot.state, one_shot.resume_failures) == (RunState.WORKING, 1)
    refuses(world, one_shot)
    is_told_fresh(world, one_shot)
    assert (one_shot.state, one_shot.resume_failures) == (RunState.WORKING, 2)
    refuses(world, one_shot)
    assert (one_shot.outcome, one_shot.reason) == (Outcome.FAILED, REFUSED_TWICE)
    assert not world.queue.launches


def test_a_fresh_session_is_told_what_a_person_asked_for_too(world, one_shot, project):
    earlier = make.a_run(project, "7", slot=2, outcome="failed", ended_at=world.clock.now)
    told = {"gate_message": "- ruff failed", "gate_told_at": world.clock.now, "agent_session": ""}
    asked = {"continues": earlier, "follow_up": "Keep the old names."}
    Run.objects.filter(pk=one_shot.pk).update(**told, **asked)
    one_shot.refresh_from_db()
    order = orders.make(world.lab, one_shot, one_shot.profile, Settings.current())
    for words in ("Keep the old names.", "- ruff failed", "Work on this issue was begun earlier"):
        assert words in order.files["prompt.md"]


def test_an_interactive_session_that_dies_after_it_was_told_is_not_begun_anew(world, run):
    """Also of a program that never tells when it begins a turn."""
    told = {"gate_message": "- ruff failed", "gate_told_at": world.clock.now}
    silent = {"agent_session": "s-1", "began_at": None, "turn_ended_at": None}
    Run.objects.filter(pk=run.pk).update(**told, **silent)
    world.sessions.end(run.session, 1)
    look(world)
    run.refresh_from_db()
    assert run.outcome == Outcome.DIED


@pytest.mark.parametrize("status", [None, 404])
def test_another_error_of_the_service_ends_the_run_as_ever(world, one_shot, status):
    Run.objects.filter(pk=one_shot.pk).update(look_asked_at=world.clock.now)
    checked(world, one_shot, BAD)
    world.sessions.end(one_shot.session)
    look(world)
    work(world)
    one_shot.refresh_from_db()
    refuses(world, one_shot, status)
    assert one_shot.outcome == Outcome.DIED


def test_a_commit_that_comes_before_a_late_tick_accepts_is_checked_too(world, run):
    is_done(world, run)
    look(world)
    carry_out(world, Attempt.objects.get(run=run), {})
    world.repos.refs[f"refs/heads/{run.branch}"] = "e" * 40
    look(world)
    run.refresh_from_db()
    assert (run.outcome, run.state, Attempt.objects.count()) == ("", RunState.CHECKING, 2)


@pytest.mark.row("MALA-V-90", level="contract")
def test_an_agent_that_dies_while_it_mends_leaves_a_note_on_its_issue(world, one_shot):
    Run.objects.filter(pk=one_shot.pk).update(look_asked_at=world.clock.now)
    checked(world, one_shot, BAD)
    world.sessions.end(one_shot.session)
    look(world)
    world.sessions.vanish_at_once = True
    work(world)
    look(world)
    work(world)
    closing.update_trackers(world.lab)
    closing.update_trackers(world.lab)
    (said,) = world.tracker.issue("demo", "7").comments
    assert "could not be started again" in said.body


@pytest.mark.parametrize(
    ("outcome", "state", "is_noted"),
    [
        (Outcome.DIED, AttemptState.FAILED, True),
        (Outcome.TIMED_OUT, AttemptState.FAILED, True),
        (Outcome.FAILED, AttemptState.FAILED, True),
        (Outcome.FAILED, AttemptState.ERROR, False),
        (Outcome.STOPPED, AttemptState.FAILED, False),
        (Outcome.OVER_LIMIT, AttemptState.FAILED, False),
        (Outcome.DIED, None, False),
    ],
)
def test_who_ended_without_another_attempt_is_noted(world, run, outcome, state, is_noted):
    is_done(world, run)
    checked(world, run, BAD)
    if state is None:
        Attempt.objects.all().delete()
        Run.objects.update(attempts=0)
    else:
        Attempt.objects.update(state=state)
    outcomes.record(world.lab, run, outcome, "it ended")
    run.refresh_from_db()
    assert (run.note_asked_at is not None) is is_noted


def test_a_copy_of_a_reviewer_that_cannot_be_removed_keeps_no_clean_room(world, run, monkeypatch):
    is_done(world, run)
    look(world)
    attempt = Attempt.objects.get(run=run)
    room = clean_room.build_path(world.lab.paths.clean_rooms, run.pk, run.issue_key, 1)
    room.mkdir(parents=True)

    def refuse(lab: object, attempt: Attempt) -> None:
        raise UnremovableError("reviews/1-a belongs to root")

    monkeypatch.setattr(review, "end_reviews", refuse)
    carry_out(world, attempt, {})
    recover_jobs(world.lab, [runner.HANDLER])
    attempt.refresh_from_db()
    assert attempt.settled_at is not None
    assert attempt.warning == "reviews/1-a belongs to root"
    assert not room.exists()
