"""Set-up commands: run in each new worktree, told, bounded, and nothing stays of a start that they failed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client

from runs import tick
from runs.core.ports import SeamError
from runs.core.states import Outcome, RunState
from runs.dispatch import start_requests
from runs.lifecycle import launch, stop
from runs.models import Notice, Project, Run, StartRequest
from runs.validation.command_rules import Check, Checked
from tests import make
from tests.fakes import World
from tests.web.people import text_of
from tests.world.stories import look, ready, work

pytestmark = pytest.mark.django_db(transaction=True)

SETUP = "npm ci\n# the schema\nmake 'the schema'"


@pytest.fixture
def project(world: World) -> Project:
    made = make.a_project(agent=make.an_agent(), setup=SETUP, setup_minutes=7)
    world.tracker.add_root("demo")
    ready(world, "7", made.tracker_root)
    return made


def _press(world: World, project: Project) -> StartRequest:
    asked = start_requests.request(world.lab, project, "anna", "7")
    tick.tick(world.lab, project=project.slug)
    work(world)
    return StartRequest.objects.select_related("run").get(pk=asked.pk)


def _soil(world: World, worktree: Path) -> None:
    """Leave what the commands wrote, which is no work of an agent."""
    world.repos.trees[worktree].is_dirty = True


def test_they_run_in_the_new_worktree_before_the_agent_starts(
    world: World, project: Project
) -> None:
    sessions: list[int] = []
    world.checks.meanwhile = lambda check: sessions.append(len(world.sessions.look()))
    run = _press(world, project).run
    assert run is not None
    assert run.state == RunState.WORKING
    assert [one.argv for one in world.checks.ran] == [["npm", "ci"], ["make", "the schema"]]
    first = world.checks.ran[0]
    assert (first.cwd, first.limit) == (Path(run.worktree), timedelta(minutes=7))
    assert first.env["LAB_PORT_BASE"] == world.sessions.orders[run.session].env["LAB_PORT_BASE"]
    assert first.env["LAB_WORKTREE"] == run.worktree
    assert first.mark == run.marker(world.lab.paths)
    assert sessions == [0, 0]
    assert run.setup["has_passed"] is True
    assert [one["status"] for one in run.setup["results"]] == [0, 0]
    told = Notice.objects.filter(run=run, text__startswith="set-up").order_by("pk")
    assert [one.text for one in told] == [
        "set-up 1 of 2: npm ci",
        "set-up 2 of 2: make 'the schema'",
    ]


def test_what_git_does_not_ignore_is_told(world: World, project: Project) -> None:
    world.checks.meanwhile = lambda check: _soil(world, check.cwd)
    run = _press(world, project).run
    assert run is not None
    told = Notice.objects.filter(run=run, text__startswith="the set-up left changes")
    assert (run.state, told.count()) == (RunState.WORKING, 1)


def test_submodules_come_before_them_where_a_project_has_some(
    world: World, project: Project
) -> None:
    Project.objects.update(has_submodules=True)
    assert _press(world, project).run is not None
    assert [one.argv for one in world.checks.ran] == [
        ["git", "submodule", "update", "--init", "--recursive"],
        ["npm", "ci"],
        ["make", "the schema"],
    ]


def test_none_is_no_work(world: World, project: Project) -> None:
    Project.objects.update(setup="# nothing yet")
    run = _press(world, project).run
    assert run is not None
    assert (run.state, run.setup, world.checks.ran) == (RunState.WORKING, None, [])


def test_a_failed_one_starts_nothing_and_gives_the_issue_back(
    world: World, project: Project
) -> None:
    world.checks.answers["npm ci"] = Checked(1, 2.0, tail="npm ERR! no lock file\n")
    world.checks.meanwhile = lambda check: _soil(world, check.cwd)
    asked = _press(world, project)
    run = Run.objects.get()
    assert asked.text == (
        "the set-up of the project failed: npm ci failed with exit status 1. Its final output: npm "
        "ERR! no lock file"
    )
    assert (run.outcome, run.did_start, run.worktree) == (Outcome.FAILED, False, "")
    assert len(world.checks.ran) == 1
    assert not world.sessions.look()
    assert not world.repos.claims(project.repo(world.lab.paths))
    look(world)
    assert Run.objects.get().settled_at is not None


def test_one_that_could_not_be_run_is_a_failed_start_too(world: World, project: Project) -> None:
    world.checks.broken = "the disk is full"
    asked = _press(world, project)
    assert asked.text == "the disk is full"
    assert not world.repos.claims(project.repo(world.lab.paths))


def test_stop_during_the_set_up_ends_it_and_starts_no_agent(world: World, project: Project) -> None:
    def stop_it(check: Check) -> None:
        world.checks.meanwhile = lambda check: None
        stop.stop(world.lab, Run.objects.get(), "anna")

    world.checks.meanwhile = stop_it
    _press(world, project)
    run = Run.objects.get()
    assert (run.outcome, run.did_start) == (Outcome.STOPPED, False)
    assert len(world.checks.ran) == 1
    assert not world.sessions.look()


def test_nobody_takes_a_long_set_up_over_while_its_worker_lives(
    world: World, project: Project
) -> None:
    states: list[str] = []

    def wait(check: Check) -> None:
        world.clock.forward(seconds=6 * 60)
        look(world)
        states.append(Run.objects.get().state)

    world.checks.meanwhile = wait
    assert _press(world, project).run is not None
    assert states == [RunState.STARTING] * 2


class _KilledError(BaseException):
    """Stands for the death of the worker."""


def test_a_worker_that_died_in_the_set_up_leaves_nothing(world: World, project: Project) -> None:
    def die(check: Check) -> None:
        raise _KilledError

    world.checks.meanwhile = die
    with pytest.raises(_KilledError):
        _press(world, project)
    run = Run.objects.get()
    assert (run.state, run.setup["has_passed"]) == (RunState.STARTING, False)
    _soil(world, Path(run.worktree))
    world.dead_processes.add(world.lab.process)
    world.checks.meanwhile = lambda check: None
    look(world)
    run.refresh_from_db()
    assert (run.outcome, run.worktree) == (Outcome.FAILED, "")
    assert not world.repos.claims(project.repo(world.lab.paths))


def test_a_worktree_that_cannot_be_cleared_is_tried_again(
    world: World, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.checks.answers["npm ci"] = Checked(1, 2.0)
    kept = world.repos.force_remove

    def fail(repo: Path, path: Path) -> None:
        raise SeamError("busy")

    monkeypatch.setattr(world.repos, "force_remove", fail)
    _press(world, project)
    assert Run.objects.get().settled_at is None
    monkeypatch.setattr(world.repos, "force_remove", kept)
    look(world)
    assert Run.objects.get().settled_at is not None
    assert not world.repos.claims(project.repo(world.lab.paths))


def test_the_page_of_the_run_shows_them(world: World, project: Project, anna: Client) -> None:
    world.checks.answers["npm ci"] = Checked(1, 2.0, tail="npm ERR! no lock file\n")
    _press(world, project)
    run = Run.objects.get()
    text = text_of(anna.get(f"/runs/{run.pk}/"))
    assert "No agent was started, and nobody" in text
    assert "npm ERR! no lock file" in text
    Run.objects.update(setup=None)
    assert "setup-title" not in text_of(anna.get(f"/runs/{run.pk}/"))


MORE = {"setup_minutes": "5", "branch_prefix": "afk/"}


def test_a_change_is_told_without_the_commands(
    world: World, project: Project, anna: Client
) -> None:
    at = f"/projects/{project.pk}/settings/setup/"
    answer = anna.post(at, {**MORE, "setup": "env TOKEN=hush make"})
    assert answer.status_code == 303
    text = Notice.objects.latest("pk").text
    assert text == (
        "set-up commands changed; time limit of a set-up command (minutes) changed from 7 to 5"
    )
    wrong = anna.post(at, {**MORE, "setup": "make && make test"})
    assert wrong.status_code == 422
    assert "no shell reads this" in text_of(wrong)
    project.refresh_from_db()
    assert project.setup == "env TOKEN=hush make"


def test_launch_is_safe_to_ask_for_twice(world: World, project: Project) -> None:
    run = _press(world, project).run
    assert run is not None
    launch.carry_out(world.lab, run.pk)
    assert len(world.checks.ran) == 2
