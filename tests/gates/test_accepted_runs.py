"""Between the acceptance of a run and the close of its issue: nothing of it is done twice or lost."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs.core.states import CompletionPolicy, Gate, Outcome, ValidationState
from runs.gates import closing, levels
from runs.gates.level_rules import Standing
from runs.kept import removal, teardown_rules
from runs.models import Attempt, CheckRun, CheckTerms, Job, Project, Run, Validation, WatchSession
from runs.web import words
from tests import make
from tests.fakes import World
from tests.gates import test_chain as chain
from tests.world.stories import look, press_start
from trackers.base import NotFound, Refused, Unreachable

pytestmark = pytest.mark.django_db(transaction=True)

project, run = chain.project, chain.run
nothing_is_validated = chain.nothing_is_validated


def accepted(world: World, run: Run) -> None:
    """Its gates passed; its run level is still to come."""
    chain.is_done(world, run)
    CheckTerms.objects.update(disabled=[])
    chain.checked(world, run)
    world.clock.forward(minutes=2)
    look(world)
    run.refresh_from_db()
    assert (run.outcome, run.closed_at) == (Outcome.SUCCEEDED, None)


def failed(world: World, run: Run) -> None:
    chain.is_done(world, run)
    no = chain.fails(Gate.EVIDENCE, "no", retryable=False)
    chain.checked(world, run, {Gate.EVIDENCE: no})
    assert run.note_asked_at and run.noted_at is None


@pytest.mark.row("MALA-V-37", level="contract")
def test_an_accepted_run_holds_its_issue_without_its_branch(world, run, project):
    accepted(world, run)
    world.repos._branches(project.repo(world.lab.paths)).pop(run.branch)
    asked = press_start(world, project, wanted="7")
    assert asked.run is None
    Run.objects.filter(pk=run.pk).update(close_asked_at=world.clock.now)
    assert press_start(world, project, wanted="7").run is None
    Run.objects.filter(pk=run.pk).update(closed_at=world.clock.now)
    assert press_start(world, project, wanted="7").run is not None


@pytest.mark.row("MALA-V-19", level="contract")
def test_a_clock_that_is_set_moves_what_the_gates_count(world, run):
    chain.is_done(world, run)
    look(world)
    now, soon = world.clock.now, world.clock.now + timedelta(seconds=30)
    Run.objects.update(gate_told_at=now, tracker_retry_at=soon)
    CheckRun.objects.create(run=run, host=world.lab.host, mark="m", asked_at=now)
    Job.objects.update(owner="boot:2:2", beat_at=now, not_before=soon, deadline=soon)
    run.refresh_from_db()
    used = run.age(now)
    moved = timedelta(hours=8)
    world.clock.jump(hours=8)
    look(world)
    run.refresh_from_db()
    assert run.age(now + moved) == used
    assert (run.gate_told_at, run.tracker_retry_at) == (now + moved, soon + moved)
    assert CheckRun.objects.get().asked_at == now + moved
    job = Job.objects.get()
    assert (job.beat_at, job.not_before, job.deadline) == (
        now + moved,
        soon + moved,
        soon + moved,
    )


@pytest.mark.row("C-37", level="contract")
def test_an_issue_that_is_gone_counts_as_noted(world, run, monkeypatch):
    failed(world, run)
    asked = []

    def gone(*args: object) -> None:
        asked.append(args)
        raise NotFound("no such issue")

    world.tracker.add_label = world.tracker.comment = gone
    for _ in range(3):
        closing.update_trackers(world.lab)
        world.clock.forward(minutes=2)
    run.refresh_from_db()
    assert len(asked) == 1 and run.noted_at


@pytest.mark.row("C-37", level="contract")
@pytest.mark.parametrize(("error", "tries"), [(Refused("no"), 2), (Unreachable("?"), 1)])
def test_a_comment_is_written_again_only_where_it_surely_was_not(world, run, error, tries):
    failed(world, run)
    write, asked = world.tracker.comment, []

    def first_fails(*args: str) -> None:
        asked.append(args)
        if len(asked) == 1:
            raise error
        write(*args)

    world.tracker.comment = first_fails
    for _ in range(3):
        closing.update_trackers(world.lab)
        world.clock.forward(minutes=2)
    run.refresh_from_db()
    assert len(asked) == tries and run.noted_at


@pytest.mark.row("C-37", level="contract")
def test_what_goes_wrong_with_one_issue_keeps_no_other_from_its_tracker(world, run, project):
    failed(world, run)
    second = make.a_run(project, "8", outcome=Outcome.FAILED, note_asked_at=world.clock.now)
    world.tracker.add_issue("demo", "Eight", key="8")
    label = world.tracker.add_label

    def breaks(root: str, key: str, name: str) -> None:
        if key == "7":
            raise KeyError("a mistake of ours")
        label(root, key, name)

    world.tracker.add_label = breaks
    closing.update_trackers(world.lab)
    second.refresh_from_db()
    run.refresh_from_db()
    assert second.noted_at and run.noted_at is None and run.tracker_retry_at


@pytest.mark.row("C-54", level="contract")
def test_a_policy_that_was_switched_away_closes_no_issue_unproven(world, run, project):
    chain.is_done(world, run)
    CheckTerms.objects.update(disabled=[])
    look(world)
    attempt = Attempt.objects.get(run=run)
    chain.carry_out(world, attempt, {})
    Project.objects.update(policy=CompletionPolicy.PULL_REQUEST)
    look(world)
    run.refresh_from_db()
    assert run.outcome == Outcome.SUCCEEDED
    level = Validation.objects.get(run=run)
    assert (level.state, level.spec) == (ValidationState.NOTHING, None)
    assert run.close_asked_at is None


def test_a_project_waits_for_its_gates_before_it_is_removed(world, run, project):
    accepted(world, run)
    Validation.objects.update(
        state=ValidationState.PASSED, ended_at=world.clock.now, settled_at=world.clock.now
    )
    Run.objects.update(settled_at=world.clock.now)
    assert removal.to_stop(world.lab, project) == []
    Run.objects.update(close_asked_at=world.clock.now)
    Attempt.objects.update(settled_at=None)
    CheckRun.objects.create(run=run, host=world.lab.host, mark="m", asked_at=world.clock.now)
    check = CheckRun.objects.get()
    assert removal.to_stop(world.lab, project) == [
        f"wait until the gates of run {run.pk} are over",
        f"wait until check {check.pk} is over",
        "wait until issue 7 is closed",
    ]


@pytest.mark.row("MALA-V-37", level="contract")
@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.NO_CHANGE, Outcome.OBSOLETE])
def test_what_ended_well_and_clean_is_tidied(outcome):
    assert teardown_rules.teardown(outcome, unsaved=False).remove
    assert not teardown_rules.teardown(outcome, unsaved=True).remove
    assert words.outcome_tone(outcome) == "good"


@pytest.mark.parametrize(
    ("own", "of_session", "standing"),
    [
        pytest.param("running", "failed", Standing.COMES, id="its own runs, a younger one failed"),
        pytest.param("failed", "running", Standing.COMES, id="its own failed, a younger one runs"),
        pytest.param("passed", "failed", Standing.FAILED, id="the younger one counts"),
    ],
)
def test_a_run_level_that_runs_decides_before_a_younger_one_that_ended(
    world, run, project, own, of_session, standing
):
    accepted(world, run)
    Validation.objects.all().delete()
    session = WatchSession.objects.create(
        project=project,
        opened_at=run.ended_at,
        ended_at=run.ended_at,
        reason="x",
        code=1,
        phase="ended",
    )
    Run.objects.filter(pk=run.pk).update(watch=session)
    for number, (state, about) in enumerate(
        ((own, {"run": run}), (of_session, {"session": session}))
    ):
        ended = {} if state == "running" else {"ended_at": world.clock.now}
        Validation.objects.create(
            project=project, number=number + 1, host="local", minutes=1, most_fixers=0, mark="m",
            count=1, began_at=world.clock.now, state=state, **ended, **about,
        )  # fmt: skip
    run = Run.objects.select_related("project").get(pk=run.pk)
    assert levels.read_levels([run])[run.pk].standing is standing
