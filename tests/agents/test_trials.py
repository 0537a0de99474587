"""Try this agent, with the real programs: each step that works is told, and each that does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runs.agents import trial
from runs.agents.trial_rules import Step, StepState, TrialState
from runs.core.ports import Lab
from runs.models import AgentProfile, AgentTrial, Project, Run
from tests.agents.house import CLAUDE, CODEX, PRINT, AgentHouse
from tests.agents.script import Refuse, Say, Shell

TASK = (
    Shell("labctl issue view 1"),
    Shell("echo hello > hello.txt && git add hello.txt && git commit -qm 'feat: add a file'"),
    Shell("git push -q origin afk/1"),
    Shell('labctl pr create --title "feat: add a file" --body "Closes #1"'),
    Say("The pull request is open."),
)


def tried(house: AgentHouse, profile: AgentProfile) -> AgentTrial:
    """A trial of the profile, carried out as the worker does."""
    made = trial.ask(house.real.lab, profile, "anna")
    trial.carry_out(_slow(house.real.lab), made.pk)
    return AgentTrial.objects.get(pk=made.pk)


def _slow(lab: Lab) -> Lab:
    """The same by whose clock a busy machine is quick enough for a trial, which has its time."""
    begun = lab.now()
    return replace(lab, now=lambda: begun + (lab.now() - begun) / 5)


def states(row: AgentTrial) -> dict[Step, StepState]:
    return {one.step: one.state for one in trial.steps(row)}


@pytest.mark.parametrize("name", [CLAUDE, PRINT, CODEX])
def test_every_step_of_a_good_agent_passes_in_an_empty_home(house: AgentHouse, name: str) -> None:
    house.model.script(*TASK)
    profile = house.profile(name)
    ended = tried(house, profile)
    wrong = {
        step: state
        for step, state in states(ended).items()
        if state not in (StepState.PASSED, StepState.NOT_MEANT)
    }
    assert wrong == {}, (ended.steps, ended.screen)
    assert ended.state == TrialState.PASSED
    hooks = states(ended)[Step.HOOKS]
    assert hooks is (StepState.PASSED if name == CLAUDE else StepState.NOT_MEANT)
    assert not Run.objects.exists() and not Project.objects.exists()
    assert house.real.session_names() == []
    assert list(house.real.paths.trials.iterdir()) == []


@pytest.mark.parametrize("name", [CLAUDE, PRINT])
def test_claude_code_as_root_outside_a_sandbox_is_told_before_it_starts(
    house: AgentHouse, name: str
) -> None:
    profile = house.profile(name, IS_SANDBOX="")
    if not house.real.lab.programs.is_root():
        pytest.skip("only root is refused")
    ended = tried(house, profile)
    assert states(ended)[Step.FOUND] is StepState.FAILED
    assert "IS_SANDBOX=1" in trial.steps(ended)[0].note


@pytest.mark.parametrize("name", [CLAUDE, CODEX])
def test_a_logged_out_program_and_a_missing_one_fail_their_own_step(
    house: AgentHouse, name: str
) -> None:
    profile = AgentProfile.objects.get(name=name)
    profile.env = {**profile.env, "IS_SANDBOX": "1"}
    profile.save()
    assert states(tried(house, profile))[Step.LOGIN] is StepState.FAILED
    profile.env = {**profile.env, "PATH": str(house.real.folder)}
    profile.save()
    assert states(tried(house, profile))[Step.FOUND] is StepState.FAILED


@pytest.mark.parametrize("name", [CLAUDE, PRINT, CODEX])
def test_what_a_model_provider_refuses_is_told_in_its_words(house: AgentHouse, name: str) -> None:
    house.model.script(
        Refuse(400, "invalid_request_error", "Your credit balance is too low to access the API.")
    )
    ended = tried(house, house.profile(name))
    found = states(ended)
    assert ended.state == TrialState.FAILED
    assert found[Step.LABCTL] in (StepState.FAILED, StepState.SKIPPED)
    told = " ".join([ended.screen, *(one.note for one in trial.steps(ended))])
    assert "credit balance" in told.casefold(), ended.screen


def test_an_own_wrapper_that_asks_a_person_is_shown_with_its_question(
    house: AgentHouse,
) -> None:
    """Without the settings file that labsite gives, Claude Code asks about permissions."""
    house.model.script(*TASK)
    profile = house.profile(CLAUDE)
    profile.argv = ["env", "claude", "--permission-mode", "default", "{prompt}"]
    profile.save()
    made = trial.ask(house.real.lab, profile, "anna")
    is_asked = False

    def pause(seconds: float) -> None:
        """Its time is over at the look after the one that has seen the question."""
        nonlocal is_asked
        house.real.lab.pause(seconds)
        if is_asked:
            house.real.offset += 5 * trial.trial_rules.TRIAL_FOR
        shown = house.real.sessions.screens([made.session]).get(made.session, "")
        is_asked = "Do you want to" in shown

    trial.carry_out(replace(_slow(house.real.lab), pause=pause), made.pk)
    made.refresh_from_db()
    assert made.state == TrialState.FAILED
    assert "Do you want to" in made.screen, made.screen
