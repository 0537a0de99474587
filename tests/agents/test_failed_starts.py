"""A program that ends before it is at its task is a start that failed, however long that took."""

from __future__ import annotations

import os

import pytest

from runs.lifecycle.verdict import Beginning, never_began, why
from runs.models import Project
from tests import make
from tests.agents.house import CLAUDE, PRINT
from tests.real import git
from tests.world import stories
from tests.world.stories import look, start


@pytest.mark.parametrize(
    ("facts", "wanted"),
    [
        (Beginning(1, tells=True), True),
        (Beginning(1, tells=True, began=True), False),
        (Beginning(1, tells=True, commits=1), False),
        (Beginning(0, tells=True), False),
        (Beginning(None, tells=True), False),
        (Beginning(None, signal=15, tells=True), False),
        (Beginning(1), False),
        (Beginning(126), True),
        (Beginning(127), True),
        (Beginning(127, commits=1), False),
    ],
    ids=str,
)
def test_only_an_end_before_the_work_is_a_failed_start(facts, wanted):
    assert never_began(facts) is wanted


def test_the_reason_holds_the_programs_own_last_words():
    assert why(Beginning(127), "claude: not found") == (
        "did not start: the agent ended with exit status 127 before it began to work. "
        "Its final output: claude: not found"
    )


@pytest.mark.django_db(transaction=True)
def test_a_program_that_could_not_be_run_costs_neither_claim_nor_streak(world):
    project = make.a_project(agent=make.an_agent())
    world.tracker.add_root("demo")
    run = start(world, project)
    world.sessions.text[run.session] = "sh: agent: not found"
    world.sessions.end(run.session, status=127)
    look(world)
    run.refresh_from_db()
    project.refresh_from_db()
    assert (run.outcome, run.did_start, project.streak) == ("failed", False, 0)
    assert run.reason.endswith("Its final output: sh: agent: not found")


@pytest.mark.django_db(transaction=True)
def test_a_one_shot_program_that_never_told_its_session_did_not_begin(world):
    agent = make.an_agent(mode="one_shot", output="claude_stream_json")
    project = make.a_project(agent=agent)
    world.tracker.add_root("demo")
    run = start(world, project)
    world.sessions.outputs[world.lab.paths.run_folder(run.pk)] = b"error: unknown option --new\n"
    world.sessions.end(run.session, status=1)
    look(world)
    run.refresh_from_db()
    assert (run.outcome, run.did_start) == ("failed", False)
    assert run.reason.endswith("Its final output: error: unknown option --new")


def test_one_that_could_not_be_run_after_a_while_leaves_nothing_behind(real):
    seen = real.folder / "seen"
    late = f"while [ ! -e {seen} ]; do sleep 0.1; done; echo agent: not found; exit 127"
    project = real.project(argv=["sh", "-c", late, "{prompt}"])
    run = start(real, project)
    assert run.did_start
    seen.touch()

    def is_settled() -> bool:
        look(real)
        run.refresh_from_db()
        return run.settled_at is not None

    real.until(is_settled)
    assert (run.outcome, run.did_start, run.worktree) == ("failed", False, "")
    assert "Its final output: agent: not found" in run.reason
    assert git(project.repo(real.paths), "branch", "--list", "afk/*") == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is refused")
@pytest.mark.parametrize("name", [CLAUDE, PRINT])
def test_as_root_outside_a_sandbox_claude_code_is_a_failed_start(house, name):
    """It refuses after about two seconds; the look half a second after the start sees it alive.

    labsite asks before a start whether it will, so its environment is changed behind its back.
    """
    profile = house.profile(name)
    profile.argv = ["env", "-u", "IS_SANDBOX", *profile.argv]
    profile.save()
    project = house.project(profile)
    asked = stories.press_start(house.real, project, wanted="1")
    assert asked.run is not None, asked.text
    run = house.until_over(asked.run)
    assert (run.outcome, run.did_start) == ("failed", False), house.told(run)
    assert "root" in run.reason
    assert git(project.repo(house.real.paths), "branch", "--list", "afk/1") == ""
    assert not (house.real.paths.worktrees / "demo-1").exists()
    assert Project.objects.get().streak == 0
