"""Real programs whose account is refused: held, and resumed in their own session."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from runs.core.states import Outcome, RunState
from runs.models import AgentProfile, Project, Run
from runs.watch import switch as auto
from tests.agents.house import CLAUDE, CODEX, PRINT, work_on
from tests.agents.script import Refuse, Shell
from tests.patience import PATIENCE
from tests.world import stories

LIMIT = "rate_limit_error"
FEW = {"CLAUDE_CODE_MAX_RETRIES": "1"}  # the shipped ten take minutes


def _held(run):  # type: ignore[no-untyped-def]
    return run.is_held and run.state == RunState.HELD


def _goes_on(house, minutes=90):  # type: ignore[no-untyped-def]
    """Time passes until whatever was held is tried again."""
    house.real.offset += timedelta(minutes=minutes)


REFUSED = [
    pytest.param(500, "api_error", "Internal server error", "overload", id="500"),
    pytest.param(401, "authentication_error", "invalid x-api-key", "login", id="401"),
]


@pytest.mark.parametrize(("status", "kind", "words", "trouble"), REFUSED)
def test_an_interactive_claude_that_is_refused_is_held_and_goes_on_in_its_session(
    house, status, kind, words, trouble
):
    script = house.model.script(Shell("echo begun > begun.txt"), Refuse(status, kind, words))
    profile = house.profile(CLAUDE, **FEW)
    project = house.project(profile)
    run = house.until(house.start(project), _held, seconds=PATIENCE)
    profile.refresh_from_db()
    assert (profile.hold, run.trouble, run.outcome) == (trouble, trouble, "")
    assert house.real.session_names() == []
    session = run.agent_session
    script.go_on(*work_on())
    _goes_on(house)
    run = house.until_over(run)
    assert run.outcome == Outcome.SUCCEEDED, house.told(run)
    assert (run.agent_session, run.resumes) == (session, 1)
    last = house.model.all_asked()[-1]
    assert "echo begun" in last.text  # the same conversation


@pytest.mark.parametrize("name", [PRINT, CODEX])
def test_a_one_shot_agent_that_is_refused_is_held_and_goes_on_in_its_session(house, name):
    kind = LIMIT if name == PRINT else "usage_limit_reached"
    script = house.model.script(Shell("echo begun > begun.txt"), Refuse(429, kind, "limit"))
    profile = house.profile(name, **FEW)
    project = house.project(profile)
    run = house.until(house.start(project), _held)
    assert run.trouble == "limit"
    session = run.agent_session
    script.go_on(*work_on())
    _goes_on(house)
    run = house.until_over(run)
    assert run.outcome == Outcome.SUCCEEDED, house.told(run)
    assert (run.agent_session, run.resumes) == (session, 1)
    assert "echo begun" in house.model.all_asked()[-1].text


def test_a_usage_limit_in_the_night_costs_no_issue_and_work_goes_on_after_the_reset(house):
    profile = house.profile(PRINT, **FEW)
    project = house.project(profile)
    keys = ["1", *(house.issue(project) for _ in range(4))]
    reset = house.real.lab.now() + timedelta(hours=2)
    words = f"Claude AI usage limit reached|{int(reset.timestamp())}"
    for key in keys:
        house.model.script(Refuse(429, LIMIT, words), word=f"issue {key} ")
    Project.objects.update(parallel_runs=2)
    project.refresh_from_db()
    auto.switch(house.real.lab, project, is_on=True, by="anna")
    _until(house, lambda: Run.objects.held().count() == 2)
    for _ in range(4):
        house.real.offset += timedelta(minutes=20)
        stories.look(house.real)
        stories.work(house.real)
    project.refresh_from_db()
    assert (Run.objects.count(), Run.objects.held().count()) == (2, 2)
    assert (project.streak, project.parked) == (0, 0)
    profile.refresh_from_db()
    assert abs(profile.held_until - reset - timedelta(minutes=1)) < timedelta(seconds=2)
    for key in keys:
        house.model.script(*work_on(key), word=f"issue {key} ")
    house.real.offset += timedelta(minutes=45)
    _until(house, lambda: Run.objects.filter(outcome="succeeded").count() == 5)
    assert sorted(Run.objects.values_list("issue_key", "outcome")) == [
        (key, "succeeded") for key in keys
    ]


def _until(house, happened):  # type: ignore[no-untyped-def]
    def told():  # type: ignore[no-untyped-def]
        runs = [(r.issue_key, r.outcome or r.state, r.reason) for r in Run.objects.all()]
        return runs, AgentProfile.objects.values_list("hold", "hold_note")

    house.look_until(happened, told)


def test_a_model_that_the_account_may_not_use_advises_no_log_in(house):
    words = "Your account does not have access to this model"
    house.model.script(Refuse(403, "permission_error", words))
    run = house.until(house.start(house.project(house.profile(PRINT, **FEW))), _held)
    assert run.trouble == "model"
    told = run.notice_set.get(kind="run.held").text
    assert "another model" in told
    assert not re.search("log", told, re.IGNORECASE)
