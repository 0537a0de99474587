"""Trying an agent: the steps by what was seen, and a trial from the press to its end."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from labctl.client import Client, Failed
from labsite.preflight import write_labctl
from runs.agents import trial, trial_rules
from runs.agents.trial_rules import Step, StepState, TrialFacts, TrialState
from runs.agents.trial_server import TrialDesks
from runs.core.ports import Desk
from runs.models import AgentProfile, AgentTrial, Project, Run
from tests import make
from tests.fakes import FakeDesks, World
from tests.real import RealWorld

P, F, U, W, N, S = (
    StepState.PASSED,
    StepState.FAILED,
    StepState.UNKNOWN,
    StepState.WAITING,
    StepState.NOT_MEANT,
    StepState.SKIPPED,
)
ROOT = Path(__file__).resolve().parents[2]


def facts(**changes: Any) -> TrialFacts:
    return TrialFacts(**{"is_one_shot": False, "has_hooks": True, "alive": True} | changes)


DONE: dict[str, Any] = {
    **{"asked": ("GET /agent/issues/1",), "is_pushed": True, "has_pull": True},
    **{"heard": True, "began": True, "turn_over": True},
}
ONE_SHOT: dict[str, Any] = DONE | {
    **{"is_one_shot": True, "has_hooks": False, "heard": False, "began": False, "turn_over": False},
}


@pytest.mark.parametrize(
    ("facts", "states"),
    [
        pytest.param(facts(), [W] * 7, id="just started"),
        pytest.param(facts(heard=True, began=True), [P, P, W, W, W, P, W], id="was given its task"),
        pytest.param(facts(asked=("GET /x",)), [P, P, P, W, W, W, W], id="asked"),
        pytest.param(facts(**DONE), [P] * 7, id="did everything"),
        pytest.param(facts(**DONE | {"turn_over": False}), [P] * 6 + [W], id="still answers"),
        pytest.param(
            facts(**DONE | {"turn_over": False}, since_pull=timedelta(minutes=1)),
            [P] * 6 + [U],
            id="never says that it is done",
        ),
        pytest.param(
            facts(**DONE | {"has_hooks": False, "heard": False, "turn_over": False}),
            [P] * 5 + [N, P],
            id="without hooks the pull request is the end",
        ),
        pytest.param(
            facts(alive=False, exit_status=127), [F, S, S, S, S, F, F], id="could not be started"
        ),
        pytest.param(facts(is_late=True), [F, S, S, S, S, F, F], id="waits for an answer"),
        pytest.param(
            facts(heard=True, began=True, turn_over=True, refused="402"),
            [P, P, F, F, F, P, F],
            id="its provider says no",
        ),
        pytest.param(facts(**ONE_SHOT), [P] * 5 + [N, W], id="a one-shot agent may close"),
        pytest.param(
            facts(**ONE_SHOT | {"alive": False}, exit_status=0), [P] * 5 + [N, P], id="and did"
        ),
        pytest.param(
            facts(**ONE_SHOT | {"alive": False}, exit_status=3), [P] * 5 + [N, F], id="with an error"
        ),
        pytest.param(
            facts(**ONE_SHOT | {"alive": False}), [P] * 5 + [N, U], id="nobody knows how"
        ),
        pytest.param(
            facts(**ONE_SHOT, since_pull=timedelta(minutes=1)), [P] * 5 + [N, F], id="or hangs"
        ),
        pytest.param(facts(alive=None), [W] * 7, id="tmux does not answer"),
    ],
)  # fmt: skip
def test_each_step_follows_from_what_was_seen(facts: TrialFacts, states: list[StepState]) -> None:
    assert [one.state for one in trial_rules.steps_of(facts)] == states


@pytest.mark.parametrize(
    ("states", "verdict"),
    [
        ([P, P], TrialState.PASSED),
        ([P, U, N], TrialState.PASSED),
        ([P, F], TrialState.FAILED),
        ([P, W], TrialState.FAILED),
    ],
)
def test_a_trial_passes_when_nothing_failed_and_nothing_is_left(
    states: list[StepState], verdict: TrialState
) -> None:
    steps = [trial_rules.Tried(step, state) for step, state in zip(Step, states, strict=False)]
    assert trial_rules.verdict(steps) is verdict


def test_what_a_program_said_when_it_ended_at_once_is_told() -> None:
    (started, *_) = trial_rules.steps_of(
        facts(alive=False, exit_status=1, last_line="no root here")
    )
    assert started.note == "It ended with status 1 before it did anything: no root here"


@pytest.fixture(params=["fake", "real"])
def desk(request: pytest.FixtureRequest) -> Any:
    """A desk whose branch is pushed when the second one says so, and what asks it as labctl does."""
    pushed = threading.Event()
    if request.param == "fake":
        fake = FakeDesks().open("token", "afk/1", pushed.is_set)
        yield fake, pushed, fake.ask
        return
    real = TrialDesks().open("token", "afk/1", pushed.is_set)
    yield real, pushed, asker(real, "token")
    real.close()


def asker(desk: Desk, token: str) -> Callable[[str, str], Any]:
    """Asks a real desk with the real client."""

    def ask(method: str, path: str) -> Any:
        address = Path(os.environ["TMPDIR_OF_TEST"]) / "address"
        address.write_text(desk.address)
        try:
            return Client(address, token).call(method, path, {} if method == "POST" else None)
        except Failed as error:
            return str(error)

    return ask


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR_OF_TEST", str(tmp_path))


def test_a_desk_hears_what_is_asked_and_opens_pull_requests_of_what_is_pushed(desk: Any) -> None:
    opened, pushed, ask = desk
    ask("GET", "/agent/issues/1")
    ask("POST", "/agent/pull")
    assert (opened.asked()[0], opened.has_pull()) == ("GET /agent/issues/1", False)
    pushed.set()
    ask("POST", "/agent/pull")
    assert opened.has_pull()


def test_a_desk_shows_its_issue_and_hears_nobody_with_another_token() -> None:
    real = TrialDesks().open("token", "afk/1", lambda: True)
    try:
        assert asker(real, "token")("GET", "/agent/issues/1")["title"] == "Add a file with one line"
        assert "not valid" in asker(real, "other")("GET", "/agent/issues/1")
        assert "There is no" in asker(real, "token")("GET", "/agent/groups")
        assert list(real.asked()) == ["GET /agent/issues/1", "GET /agent/groups"]
    finally:
        real.close()


@pytest.fixture
def profile(db: None) -> AgentProfile:
    return make.an_agent()


@pytest.mark.postgres
def test_a_second_press_gets_the_trial_that_is_open(world: World, profile: AgentProfile) -> None:
    first = trial.ask(world.lab, profile, "anna")
    assert trial.ask(world.lab, profile, "bob") == first
    assert world.queue.trials == [first.pk]
    other = make.an_agent("Other")
    assert trial.ask(world.lab, other, "bob") != first


@pytest.mark.postgres
@pytest.mark.every_case
@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({}, id="a second open one"),
        pytest.param({"state": TrialState.PASSED}, id="over without an end"),
    ],
)
def test_the_database_refuses_nonsense(
    world: World, profile: AgentProfile, wrong: dict[str, Any]
) -> None:
    row = trial.ask(world.lab, profile, "anna")
    row.pk = None
    with pytest.raises(IntegrityError), transaction.atomic():
        for name, value in wrong.items():
            setattr(row, name, value)
        row.save()


def test_a_missing_program_ends_the_trial_before_anything_is_made(
    world: World, profile: AgentProfile
) -> None:
    world.programs.gone = {"agent"}
    ended = carried_out(world, profile)
    assert ended.state == TrialState.FAILED
    assert states(ended)[Step.FOUND] is F
    assert states(ended)[Step.STARTED] is S
    assert world.sessions.orders == {}


def test_a_logged_out_program_is_not_started(world: World, profile: AgentProfile) -> None:
    profile.login_command = ["check"]
    profile.save()
    world.login.answer = False
    ended = carried_out(world, profile)
    assert (ended.state, states(ended)[Step.LOGIN]) == (TrialState.FAILED, F)
    assert world.sessions.orders == {}


def carried_out(world: World, profile: AgentProfile) -> AgentTrial:
    made = trial.ask(world.lab, profile, "anna")
    trial.carry_out(world.lab, made.pk)
    return AgentTrial.objects.get(pk=made.pk)


def states(row: AgentTrial) -> dict[Step, StepState]:
    return {one.step: one.state for one in trial.steps(row)}


def test_stop_ends_a_trial_that_nobody_took_at_once(world: World, profile: AgentProfile) -> None:
    made = trial.ask(world.lab, profile, "anna")
    trial.stop(world.lab, made, "bob")
    made.refresh_from_db()
    assert (made.state, made.note) == (TrialState.STOPPED, "Stopped by bob.")
    trial.carry_out(world.lab, made.pk)
    assert world.sessions.orders == {}


def test_a_trial_whose_worker_was_killed_ends_in_words_and_leaves_nothing(
    world: World, profile: AgentProfile
) -> None:
    made = trial.ask(world.lab, profile, "anna")
    rows = AgentTrial.objects.filter(pk=made.pk)
    rows.update(state=TrialState.RUNNING, process="boot:9:9")
    world.sessions.appear(made.session, made.mark)
    folder = world.lab.paths.trials / str(profile.pk)
    folder.mkdir(parents=True)
    trial.sweep(world.lab)
    assert rows.get().state == TrialState.RUNNING
    assert folder.exists()
    world.dead_processes.add("boot:9:9")
    trial.sweep(world.lab)
    ended = rows.get()
    assert (ended.state, ended.note) == (TrialState.FAILED, trial.INTERRUPTED)
    assert (made.session in world.sessions.all, folder.exists()) == (False, False)


def test_a_trial_that_no_worker_takes_ends_in_words(world: World, profile: AgentProfile) -> None:
    made = trial.ask(world.lab, profile, "anna")
    trial.sweep(world.lab)
    world.clock.forward(minutes=1)
    trial.sweep(world.lab)
    made.refresh_from_db()
    assert (made.state, made.note) == (TrialState.FAILED, trial.NOT_TAKEN)


def test_folders_of_nobody_are_removed(world: World, profile: AgentProfile) -> None:
    (world.lab.paths.trials / "77").mkdir(parents=True)
    made = trial.ask(world.lab, profile, "anna")
    (world.lab.paths.trials / str(made.profile_id)).mkdir()
    trial.sweep(world.lab)
    assert [one.name for one in world.lab.paths.trials.iterdir()] == [str(profile.pk)]


GOOD = (
    "labctl issue view 1; echo hello > hello.txt; git add hello.txt;"
    " git commit -qm 'feat: add a file'; git push -q origin afk/1;"
    " labctl pr create --title 'feat: add a file' --body 'Closes #1'"
)


def shell(script: str) -> list[str]:
    """An agent that is a shell script; its task is an argument that it does not need."""
    return ["sh", "-c", script, "agent", "{prompt}"]


@pytest.fixture
def lab_with_labctl(real: RealWorld) -> RealWorld:
    write_labctl(real.paths, sys.executable, ROOT)
    return real


@pytest.mark.parametrize(
    ("mode", "script", "failed"),
    [
        pytest.param("one_shot", GOOD, [], id="one-shot and good"),
        pytest.param("interactive", f"{GOOD}; sleep 600", [], id="interactive and good"),
        pytest.param("one_shot", "exit 0", ["started"], id="ends at once"),
        pytest.param("one_shot", "echo no root here; exit 3", ["started", "ended"], id="refuses"),
        pytest.param(
            "one_shot", "labctl issue view 1", ["pushed", "pull"], id="sees its task and goes"
        ),
        pytest.param(
            "one_shot",
            "labctl issue view 1; labctl pr create --title x; exit 0",
            ["pushed", "pull"],
            id="no pull request without a push",
        ),
    ],
)
@pytest.mark.django_db(transaction=True)
def test_a_scripted_agent_is_tried_for_real(
    lab_with_labctl: RealWorld, mode: str, script: str, failed: list[str]
) -> None:
    real = lab_with_labctl
    profile = make.an_agent(argv=shell(script), mode=mode)
    ended = carried_out(real, profile)
    wrong = [one.step.value for one in trial.steps(ended) if one.state is F]
    assert wrong == failed, (ended.steps, ended.screen)
    assert ended.state == (TrialState.FAILED if failed else TrialState.PASSED)
    assert real.session_names() == []
    assert not (real.paths.trials / str(profile.pk)).exists()
    assert not real.paths.run_folder(-ended.pk).exists()
    assert not Run.objects.exists() and not Project.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_program_that_waits_is_shown_with_its_last_lines(lab_with_labctl: RealWorld) -> None:
    real = lab_with_labctl
    profile = make.an_agent(argv=shell("echo 'Do you trust this folder?'; sleep 600"))
    late = replace(real.lab, now=lambda: real.lab.now() + timedelta(minutes=4))
    made = trial.ask(real.lab, profile, "anna")
    moments = iter([real.lab, *[late] * 10_000])
    trial.carry_out(replace(real.lab, now=lambda: next(moments).now()), made.pk)
    made.refresh_from_db()
    assert states(made)[Step.STARTED] is F
    assert "Do you trust this folder?" in made.screen


@pytest.mark.django_db(transaction=True)
def test_stop_ends_a_trial_that_runs(lab_with_labctl: RealWorld) -> None:
    real = lab_with_labctl
    profile = make.an_agent(argv=shell("sleep 600"))
    made = trial.ask(real.lab, profile, "anna")
    looks = iter(range(100))

    def pause(_seconds: float) -> None:
        if next(looks) == 2:
            trial.stop(real.lab, AgentTrial.objects.get(pk=made.pk), "bob")

    trial.carry_out(replace(real.lab, pause=pause), made.pk)
    made.refresh_from_db()
    assert (made.state, made.note) == (TrialState.STOPPED, "Stopped by a person.")
    assert next(looks) < 10
    assert real.session_names() == []
