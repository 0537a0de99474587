"""The tmux server goes away under several runs: told once, nobody's failure, and they go on."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from datetime import timedelta

import pytest

from runs.core.states import NoticeKind, Outcome, RunState
from runs.lifecycle import resuming
from runs.machine import tmux_recall
from runs.models import Notice, Project, Run, Settings
from tests import make
from tests.fakes import World
from tests.real import RealWorld
from tests.world.stories import look, press_start, ready, work

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project(world: World) -> Project:
    made = make.a_project(agent=make.an_agent(), parallel_runs=5)
    world.tracker.add_root("demo")
    Settings.current()
    Settings.objects.update(session_cap=5)
    return made


def _start(world: World, project: Project, *keys: str) -> list[Run]:
    for key in keys:
        ready(world, key, project.tracker_root)
        assert press_start(world, project, wanted=key).run is not None
    return list(Run.objects.order_by("pk"))


def _lose(world: World, server: str = "") -> None:
    world.sessions.all.clear()
    world.sessions.server_name = server


def test_all_go_on_without_a_strike_and_people_are_told_once(
    world: World, project: Project
) -> None:
    before = _start(world, project, "7", "8", "9")
    assert {one.server for one in before} == {"boot:10:1"}
    _lose(world)
    look(world)
    world.sessions.server_name = "boot:20:2"
    work(world)
    look(world)
    work(world)
    runs = list(Run.objects.order_by("pk"))
    assert [one.state for one in runs] == [RunState.WORKING] * 3
    assert {one.server for one in runs} == {"boot:20:2"}
    assert [(one.branch, one.worktree) for one in runs] == [
        (one.branch, one.worktree) for one in before
    ]
    project.refresh_from_db()
    assert project.streak == 0
    told = Notice.objects.get(kind=NoticeKind.SESSIONS_LOST)
    assert "its 3 runs go on, and this counts as no failure" in told.text
    assert not Notice.objects.filter(kind=NoticeKind.RUN_TROUBLED).exists()


def test_a_single_session_that_is_gone_is_a_death(world: World, project: Project) -> None:
    [run] = _start(world, project, "7")
    _lose(world)
    look(world)
    run.refresh_from_db()
    assert run.outcome == Outcome.DIED


def test_a_restart_of_the_machine_is_none_even_of_one(world: World, project: Project) -> None:
    [run] = _start(world, project, "7")
    world.lab = replace(world.lab, process="later:1:1")
    _lose(world)
    look(world)
    run.refresh_from_db()
    assert (run.outcome, run.state) == ("", RunState.STARTING)
    told = Notice.objects.get(kind=NoticeKind.SESSIONS_LOST)
    assert "its run goes on" in told.text


def test_one_of_several_whose_server_lives_is_a_death(world: World, project: Project) -> None:
    first, other = _start(world, project, "7", "8")
    del world.sessions.all[first.session]
    look(world)
    first.refresh_from_db()
    other.refresh_from_db()
    assert (first.outcome, other.state) == (Outcome.DIED, RunState.WORKING)


def test_a_server_that_is_lost_again_and_again_ends_its_runs(
    world: World, project: Project
) -> None:
    _start(world, project, "7", "8")
    for number in range(resuming.MOST_FAILURES + 1):
        _lose(world)
        look(world)
        world.sessions.server_name = f"boot:{20 + number}:2"
        for _ in range(3):
            world.clock.forward(seconds=timedelta(hours=1).total_seconds() / 12)
            work(world)
            look(world)
    assert {one.outcome for one in Run.objects.all()} == {Outcome.DIED}
    assert Notice.objects.filter(kind=NoticeKind.SESSIONS_LOST).count() == resuming.MOST_FAILURES


@pytest.mark.real
def test_three_runs_go_on_when_their_real_server_is_killed(real: RealWorld) -> None:
    project = real.project()
    Project.objects.update(parallel_runs=5)
    Settings.objects.update(session_cap=5)
    for key in ("7", "8", "9"):
        ready(real, key)
        assert press_start(real, project, wanted=key).run is not None
    servers = tmux_recall.living(real.paths.tmux_socket)
    [pid] = servers
    os.kill(pid, signal.SIGKILL)
    real.until(lambda: not tmux_recall.living(real.paths.tmux_socket))
    look(real)
    real.work()
    look(real)
    real.work()
    assert [one.state for one in Run.objects.all()] == [RunState.WORKING] * 3
    assert len(real.session_names()) == 3
    assert Notice.objects.filter(kind=NoticeKind.SESSIONS_LOST).count() == 1
    project.refresh_from_db()
    assert project.streak == 0
