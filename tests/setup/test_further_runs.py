"""Commands before a further run in a worktree that is there already. With fakes."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from runs import tick
from runs.core.ports import UnfitFileError
from runs.core.states import NoticeKind, Outcome, RunState
from runs.followups import acts
from runs.lifecycle import resuming, stop
from runs.models import Notice, Project, Run, StartRequest
from runs.setup import file_acts, preparation
from runs.setup.commands import AGAIN
from runs.validation.command_rules import Check, Checked
from tests import make
from tests.accounts.test_held_runs import _turned_away
from tests.fakes import World
from tests.followups.conftest import ONE_SHOT, dead
from tests.web.people import text_of
from tests.world.stories import look, start, work

pytestmark = pytest.mark.django_db(transaction=True)

UP = "docker compose up -d"


@pytest.fixture
def project(world: World) -> Project:
    agent = make.an_agent(
        "Claude", argv=ONE_SHOT, mode="one_shot", output="claude_stream_json", model_names=["a"]
    )
    world.tracker.add_root("demo")
    return make.a_project(agent=agent, setup="npm ci", setup_again=UP, setup_minutes=7)


def _commands(world: World) -> list[str]:
    return [" ".join(one.argv) for one in world.checks.ran]


def _resume(world: World, before: Run) -> StartRequest:
    world.checks.ran.clear()
    asked = acts.resume(world.lab, Run.objects.get(pk=before.pk), "Go on.", by="anna")
    tick.tick(world.lab, project=before.project.slug)
    work(world)
    return StartRequest.objects.select_related("run").get(pk=asked.pk)


def _go_on(world: World) -> None:
    """The account of a held run can be used again."""
    world.checks.ran.clear()
    world.clock.forward(hours=2, minutes=2)
    tick.tick(world.lab)
    work(world)


def test_the_first_run_in_a_worktree_has_the_set_up_alone(world: World, project: Project) -> None:
    start(world, project)
    assert _commands(world) == ["npm ci"]


def test_a_run_that_goes_on_in_a_worktree_has_them_before_its_agent_starts(
    world: World, project: Project, anna: Client
) -> None:
    before = dead(world, project)
    sessions: list[int] = []
    world.checks.meanwhile = lambda check: sessions.append(len(world.sessions.look()))
    run = _resume(world, before).run
    assert run is not None
    assert (run.state, _commands(world), sessions) == (RunState.WORKING, [UP], [0])
    (check,) = world.checks.ran
    assert (check.cwd, check.limit) == (Path(before.worktree), timedelta(minutes=7))
    assert check.env["LAB_BRANCH"] == before.branch
    assert check.mark == run.marker(world.lab.paths)
    assert (run.setup, run.setup_again["has_passed"]) == (None, True)
    told = Notice.objects.filter(run=run, text__startswith="set-up before a further run 1 of 1")
    assert told.count() == 1
    assert "Set-up before this start" in text_of(anna.get(f"/runs/{run.pk}/"))


def test_a_worktree_that_is_made_again_is_a_new_one(world: World, project: Project) -> None:
    before = dead(world, project)
    world.repos.force_remove(project.repo(world.lab.paths), Path(before.worktree))
    run = _resume(world, before).run
    assert run is not None
    assert (_commands(world), run.setup_again) == (["npm ci"], None)


def test_one_that_fails_starts_nothing_and_leaves_the_work_as_it_is(
    world: World, project: Project
) -> None:
    before = dead(world, project)
    tree = Path(before.worktree)
    world.repos.trees[tree].is_dirty = True
    world.checks.answers[UP] = Checked(1, 2.0, tail="no daemon\n")
    asked = _resume(world, before)
    assert asked.text == (
        f"the set-up before a further run of the project failed: {UP} failed with exit status 1. "
        "Its final output: no daemon"
    )
    look(world)
    run = Run.objects.get(continues=before)
    assert (run.outcome, run.did_start, run.settled_at is None) == (Outcome.FAILED, False, False)
    assert tree.is_dir() and world.repos.trees[tree].is_dirty
    assert world.repos.claims(project.repo(world.lab.paths)) == {"7"}
    assert not world.sessions.look()


def test_none_goes_on_while_the_commands_before_removal_run(world: World, project: Project) -> None:
    before = dead(world, project)
    Run.objects.update(setup_removal={"is_over": False, "results": []})
    asked = _resume(world, before)
    assert asked.text.startswith("the project's commands before removal run in its worktree")
    assert (world.checks.ran, Path(before.worktree).is_dir()) == ([], True)


def test_none_goes_on_where_they_were_asked_for_while_it_fetched(
    world: World, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = dead(world, project)
    ask = world.repos.fetch_default

    def begin(*args: Any) -> str:
        Run.objects.filter(pk=before.pk).update(setup_removal={"is_over": False, "results": []})
        return ask(*args)

    monkeypatch.setattr(world.repos, "fetch_default", begin)
    asked = _resume(world, before)
    assert asked.text.startswith("the project's commands before removal run in its worktree")
    assert (world.checks.ran, Path(before.worktree).is_dir()) == ([], True)


class _KilledError(BaseException):
    """Stands for the death of the worker."""


def test_a_worker_that_dies_meanwhile_leaves_the_work_as_it_is(
    world: World, project: Project
) -> None:
    before = dead(world, project)

    def die(check: Check) -> None:
        raise _KilledError

    world.checks.meanwhile = die
    with pytest.raises(_KilledError):
        _resume(world, before)
    world.dead_processes.add(world.lab.process)
    world.checks.meanwhile = lambda check: None
    look(world)
    run = Run.objects.get(continues=before)
    assert run.outcome == Outcome.FAILED
    assert Path(before.worktree).is_dir()


def test_a_held_run_has_them_each_time_it_goes_on(world: World, project: Project) -> None:
    run = _turned_away(world, project)
    _go_on(world)
    run.refresh_from_db()
    assert (run.state, _commands(world)) == (RunState.WORKING, [UP])
    assert run.setup["has_passed"] and run.setup_again["has_passed"]


def test_a_held_run_whose_commands_fail_waits_with_its_session_and_fails_in_the_end(
    world: World, project: Project
) -> None:
    run = _turned_away(world, project)
    session, tree = run.agent_session, Path(run.worktree)
    assert session
    world.checks.answers[UP] = Checked(1, 2.0)
    for failures in range(1, resuming.MOST_FAILURES + 1):
        _go_on(world)
        run.refresh_from_db()
        assert (run.state, run.resume_failures) == (RunState.HELD, failures)
        assert run.agent_session == session
    _go_on(world)
    run.refresh_from_db()
    assert run.outcome == Outcome.FAILED
    assert run.reason.startswith("could not be started again: the set-up before a further run")
    assert tree.is_dir()


def test_stop_ends_them_and_starts_no_agent(world: World, project: Project) -> None:
    run = _turned_away(world, project)

    def stop_it(check: Check) -> None:
        stop.stop(world.lab, Run.objects.get(pk=run.pk), "anna")

    world.checks.meanwhile = stop_it
    _go_on(world)
    run.refresh_from_db()
    assert run.outcome == Outcome.STOPPED
    assert not world.sessions.look()
    assert Path(run.worktree).is_dir()


def test_a_file_that_git_tracks_meanwhile_keeps_no_run_from_going_on(
    world: World, project: Project
) -> None:
    file_acts.store(world.lab, project, ".env", "A=1\n", by="anna")
    run = _turned_away(world, project)
    world.repos.tracked = {".env"}
    _go_on(world)
    run.refresh_from_db()
    assert (run.state, run.resume_failures) == (RunState.WORKING, 0)


def test_files_that_cannot_be_read_any_more_keep_no_run_from_going_on(
    world: World, project: Project, settings: Any
) -> None:
    file_acts.store(world.lab, project, ".env", "A=1\n", by="anna")
    run = _turned_away(world, project)
    settings.SECRET_KEY = "another" * 8
    _go_on(world)
    run.refresh_from_db()
    assert (run.state, run.resume_failures) == (RunState.WORKING, 0)
    assert world.repos.placed[Path(run.worktree)] == {".env": "A=1\n"}
    preparation.place_files(world.lab, run, AGAIN)
    why = "files of the set-up: .env cannot be read any more"
    told = Notice.objects.filter(run=run, text__startswith=why)
    assert [one.kind for one in told] == [NoticeKind.RUN_STEP]


def test_what_is_in_the_way_of_a_file_keeps_no_run_from_going_on(
    world: World, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _turned_away(world, project)

    def refuse(*_: object, **__: object) -> None:
        raise UnfitFileError("config/x cannot be written: config is a link")

    monkeypatch.setattr(world.repos, "place_files", refuse)
    _go_on(world)
    run.refresh_from_db()
    assert run.state == RunState.WORKING
    assert Notice.objects.filter(run=run, text__contains="config is a link").count() == 1
