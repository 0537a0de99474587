"""Real programs that go on after their run has ended: resumed by a person, in their own session."""

from __future__ import annotations

import pytest

from runs import tick
from runs.core.states import Outcome
from runs.followups import acts
from runs.lifecycle import stop
from runs.models import Settings, StartRequest
from runs.pulls import comments as pulls
from tests.agents.house import CLAUDE, CODEX, PRINT, work_on
from tests.agents.script import Say, Shell
from tests.real import git
from tests.world import stories

FORGOT = (Shell("echo begun > begun.txt"), Say("I have looked at it."))


def _resume(house, run, text):  # type: ignore[no-untyped-def]
    """Press Resume."""
    asked = acts.resume(house.real.lab, run, text, by="anna")
    tick.tick(house.real.lab, project=run.project.slug)
    stories.work(house.real)
    asked = StartRequest.objects.select_related("run__project").get(pk=asked.pk)
    assert asked.run is not None, asked.text
    return asked.run


@pytest.mark.parametrize("name", [PRINT, CODEX])
def test_a_one_shot_agent_is_resumed_in_its_own_session_with_what_a_person_says(house, name):
    script = house.model.script(*FORGOT)
    project = house.project(house.profile(name))
    first = house.until_over(house.start(project))
    assert first.outcome == Outcome.DIED, house.told(first)
    script.go_on(*work_on())
    run = house.until_over(_resume(house, first, "--help me: open the pull request."))
    assert run.outcome == Outcome.SUCCEEDED, house.told(run)
    assert (run.agent_session, run.resumes, run.branch) == (first.agent_session, 0, first.branch)
    last = house.model.all_asked()[-1]
    assert "echo begun" in last.text  # the same conversation
    assert "--help me: open the pull request." in last.text


def test_a_stopped_interactive_claude_is_resumed_in_its_own_session(house):
    script = house.model.script(*FORGOT)
    project = house.project(house.profile(CLAUDE))
    first = house.until(house.start(project), lambda run: run.turn_ended_at)
    stop.stop(house.real.lab, first, "anna")
    first = house.until_over(first)
    script.go_on(*work_on())
    run = house.until_over(_resume(house, first, "Open the pull request."))
    assert run.outcome == Outcome.SUCCEEDED, house.told(run)
    assert "echo begun" in house.model.all_asked()[-1].text


def test_a_claude_that_has_no_such_conversation_gets_its_task_and_the_text(house):
    script = house.model.script(*FORGOT)
    project = house.project(house.profile(PRINT))
    first = house.until_over(house.start(project))
    first.agent_session = "00000000-0000-4000-8000-000000000000"
    first.save(update_fields=["agent_session"])
    script.go_on(*work_on())
    run = house.until_over(_resume(house, first, "Open the pull request."))
    assert (run.outcome, run.resumes) == (Outcome.SUCCEEDED, 1), house.told(run)
    assert "Open the pull request." in house.model.all_asked()[-1].text


@pytest.mark.parametrize("name", [PRINT, CODEX])
def test_what_a_review_says_becomes_a_second_commit_on_the_same_branch(house, name):
    script = house.model.script(*work_on())
    project = house.project(house.profile(name))
    first = house.until_over(house.start(project))
    assert first.outcome == Outcome.SUCCEEDED, house.told(first)
    number = first.pull_number
    line = {"path": "hello.txt", "line": 2, "side": "new"}
    pulls.comment(house.real.lab, project, number, body="Say it in French.", by="vera", **line)
    script.go_on(
        Shell("sed -i 's/hello again/bonjour/' hello.txt && git commit -qam 'feat: in French'"),
        Shell("git push -q origin afk/1"),
        Say("It says it in French now."),
    )
    asked = acts.request_changes(house.real.lab, first, "Please see my comment.", by="anna")
    tick.tick(house.real.lab, project=project.slug)
    stories.work(house.real)
    asked = StartRequest.objects.select_related("run__project").get(pk=asked.pk)
    assert asked.run is not None, asked.text
    run = house.until_over(asked.run)
    assert run.outcome == Outcome.SUCCEEDED, house.told(run)
    assert (run.pull_number, run.branch, run.agent_session) == (
        number,
        first.branch,
        first.agent_session,
    )
    told = house.model.all_asked()[-1].text
    for words in (
        "Please see my comment.",
        "vera on hello.txt:2:",
        "> Line: hello again",
        "in French.",
    ):
        assert words in told
    repo = project.repo(house.real.paths)
    made = git(repo, "log", "--format=%s", "origin/main..origin/afk/1").splitlines()
    assert made == ["feat: in French", "feat: greet again"]


@pytest.mark.parametrize("name", [CLAUDE, PRINT, CODEX])
def test_an_agent_that_forgot_its_pull_request_opens_it_when_it_is_asked(house, name):
    Settings.objects.update(nudges=True)
    look_at, make, push, open_pull, said = work_on()
    house.model.script(look_at, make, Say("I have done it."), push, open_pull, said)
    run = house.until_over(house.start(house.project(house.profile(name))))
    assert run.outcome == Outcome.SUCCEEDED, house.told(run)
    assert (run.nudged_at is not None, run.resumes) == (True, 0)
    told = list(run.notice_set.filter(kind="run.step").values_list("text", flat=True))
    assert "asked once to open its pull request or to say why not" in told
    assert "You have stopped" in house.model.all_asked()[-1].text
