"""The periodic watcher and its clocks (LAB-08 to LAB-18, X-08, X-12, X-13, X-15)."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connections

from runs import tick
from runs.core import lease
from runs.core.states import RunState
from runs.dispatch import start_requests
from runs.models import Host, Notice, Project, Run, Settings, Tick
from tests import make
from tests.world.stories import look, ready, start

pytestmark = pytest.mark.django_db(transaction=True)


def _live(world, project=None, key="7"):  # type: ignore[no-untyped-def]
    """A working run with a live session on the fake outside."""
    if project is None:
        project = make.a_project()
        world.tracker.add_root("demo")
    run = make.a_run(project, key, slot=int(key))
    world.live(run)
    return run


@pytest.mark.row("LAB-09", "X-08", level="contract")
def test_the_interval_is_one_setting_and_counts_at_the_next_tick(world):
    _live(world)

    def looks(seconds: int) -> int:
        before = Tick.objects.count()
        for _ in range(seconds // 5):
            world.clock.forward(seconds=5)
            tick.tick(world.lab)
        return Tick.objects.count() - before

    tick.tick(world.lab)
    assert Settings.current().tick_seconds == 30
    assert looks(120) == 4
    Settings.objects.filter(pk=1).update(tick_seconds=10)
    looks(30)
    assert looks(60) == 6


@pytest.mark.row("LAB-12", "LAB-28", level="contract")
def test_a_project_is_asked_once_per_tick_and_only_when_it_has_a_run(world):
    project = make.a_project()
    world.tracker.add_root("demo")
    tick.tick(world.lab, force=True)
    assert world.tracker.calls["pulls"] == 0
    for key in ("1", "2", "3"):
        _live(world, project, key)
    tick.tick(world.lab, force=True)
    assert world.tracker.calls["pulls"] == 1
    for key in ("1", "2", "3"):
        world.tracker.add_pull("demo", f"afk/{key}")
    tick.tick(world.lab, force=True)
    assert set(Run.objects.values_list("outcome", flat=True)) == {"succeeded"}
    tick.tick(world.lab, force=True)
    assert world.tracker.calls["pulls"] == 2


@pytest.mark.row("LAB-13", level="contract")
def test_a_tracker_that_fails_for_one_project_leaves_the_others_alone(world):
    a, b = make.a_project("a"), make.a_project("b")
    for root in ("a", "b"):
        world.tracker.add_root(root)
    run_a, run_b = _live(world, a, "1"), _live(world, b, "2")
    world.tracker.add_pull("a", "afk/1")
    world.tracker.add_pull("b", "afk/2")
    world.tracker.fail("a")
    for _ in range(2):
        tick.tick(world.lab, force=True)
    run_a.refresh_from_db()
    run_b.refresh_from_db()
    assert (run_a.outcome, run_b.outcome) == ("", "succeeded")
    assert Project.objects.get(name="a").warning
    assert Notice.objects.filter(kind="project.warned").count() == 1
    world.tracker.heal()
    tick.tick(world.lab, force=True)
    run_a.refresh_from_db()
    assert run_a.outcome == "succeeded"
    assert Project.objects.get(name="a").warning == ""


def test_a_tracker_that_is_down_for_good_never_ends_a_run(world):
    run = _live(world)
    world.tracker.fail()
    for hour in range(5):
        world.clock.forward(hours=hour)
        report = tick.tick(world.lab, force=True)
    run.refresh_from_db()
    assert run.is_active
    assert report.errors


@pytest.mark.row("LAB-14", level="contract")
def test_when_tmux_cannot_be_asked_no_run_changes_and_the_error_shows(world):
    run = _live(world)
    world.sessions.broken = "tmux could not run: No such file or directory"
    world.clock.forward(hours=5)
    tick.tick(world.lab, force=True)
    run.refresh_from_db()
    assert run.is_active
    assert "tmux" in Host.objects.get().last_error
    assert "tmux" in Tick.objects.first().error
    world.sessions.broken = ""
    tick.tick(world.lab, force=True)
    run.refresh_from_db()
    assert run.outcome == "timed_out"
    assert Host.objects.get().last_error == ""


@pytest.mark.row("LAB-14", "LAB-15", level="real")
def test_a_tmux_binary_that_cannot_run_ends_nothing_and_starts_nothing(real, tmp_path):
    project = real.project()
    run = start(real, project)
    real.memory.add_issue("demo", "next", "9", labels=("ready-for-agent",))
    program = real.sessions._program
    real.sessions._program = str(tmp_path / "no-tmux-here")
    look(real)
    start_requests.request(real.lab, project, "anna")
    look(real)
    run.refresh_from_db()
    assert run.is_active
    assert Run.objects.count() == 1
    assert "could not run" in Host.objects.get().last_error
    real.sessions._program = program
    look(real)
    run.refresh_from_db()
    assert run.is_active
    real.tmux("kill-session", "-t", run.session)
    look(real)
    run.refresh_from_db()
    assert run.outcome == "died"  # it was followed all the while


@pytest.mark.row("LAB-16", level="real")
def test_a_machine_without_a_tmux_server_has_a_clean_tick(real):
    report = look(real)
    assert report.errors == []
    host = Host.objects.get()
    assert (host.last_error, host.last_tick_at is not None) == ("", True)
    assert not Tick.objects.exists()


@pytest.mark.row("LAB-17", level="contract")
def test_a_tick_that_finds_another_in_progress_is_skipped_and_shown(world):
    run = _live(world)
    world.tracker.add_pull("demo", "afk/7")
    held = lease.acquire(world.lab)
    assert tick.tick(world.lab, force=True).was_skipped
    assert Tick.objects.get().was_skipped
    run.refresh_from_db()
    assert run.is_active
    lease.release(world.lab, held)
    assert tick.tick(world.lab, force=True).ended == 1


@pytest.mark.row("LAB-17", "C-41", level="contract")
def test_ticks_during_a_slow_one_are_skipped_and_one_after_its_lease_reaps_alone(world):
    """A tracker holds a tick up for 90 seconds, half a minute longer than its lease lasts."""
    run = _live(world)
    world.tracker.add_pull("demo", "afk/7")
    others: list[tick.Report] = []

    class Slow:
        def pulls(self, heads):
            if not others:
                for _ in range(3):
                    world.clock.forward(seconds=30)
                    others.append(tick.tick(replace(world.lab, process="other"), force=True))
            return world.tracker.pulls(heads)

        def __getattr__(self, name):
            return getattr(world.tracker, name)

    slow = replace(world.lab, tracker_for=lambda kind: Slow())
    with suppress(lease.Lost):
        assert tick.tick(slow, force=True).ended == 0
    assert [(one.was_skipped, one.ended) for one in others] == [(True, 0), (False, 1), (False, 0)]
    assert Tick.objects.filter(was_skipped=True).count() == 1
    assert Notice.objects.filter(kind="run.ended").count() == 1
    assert Notice.objects.filter(kind="run.reaped").count() == 1
    run.refresh_from_db()
    assert run.outcome == "succeeded"


@pytest.mark.postgres
@pytest.mark.row("LAB-17", level="contract")
def test_two_ticks_never_overlap_even_in_four_threads(world):
    for key in ("1", "2", "3"):
        _live(world, Project.objects.first() or _project(world), key)
        world.tracker.add_pull("demo", f"afk/{key}")
    go, problems = threading.Barrier(4), []

    def many() -> None:
        try:
            go.wait()
            for _ in range(10):
                tick.tick(world.lab, force=True)
        except Exception as error:
            problems.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert Notice.objects.filter(kind="run.ended").count() == 3
    assert Notice.objects.filter(kind="run.reaped").count() == 3


def _project(world):  # type: ignore[no-untyped-def]
    world.tracker.add_root("demo")
    return make.a_project()


@pytest.mark.row("LAB-18", level="contract")
def test_a_project_without_a_tracker_is_left_alone_without_warnings(world):
    project = make.a_project(tracker="")
    run = make.a_run(project)
    world.live(run)
    world.clock.forward(hours=5)
    for _ in range(3):
        assert tick.tick(world.lab, force=True).errors == []
    run.refresh_from_db()
    assert run.is_active
    assert not Notice.objects.filter(kind="project.warned").exists()


@pytest.mark.row("X-13", level="contract")
def test_the_lease_of_a_killed_worker_blocks_nobody(world):
    _live(world)
    other = replace(world.lab, process="boot:2:2")
    assert lease.acquire(other) is not None
    assert tick.tick(world.lab, force=True).was_skipped
    world.dead_processes.add("boot:2:2")
    assert not tick.tick(world.lab, force=True).was_skipped


@pytest.mark.row("X-13", level="contract")
def test_the_lease_of_a_worker_that_hangs_runs_out(world):
    _live(world)
    other = replace(world.lab, process="boot:2:2")
    assert lease.acquire(other) is not None
    world.clock.forward(seconds=59)
    assert tick.tick(world.lab, force=True).was_skipped
    world.clock.forward(seconds=2)
    assert not tick.tick(world.lab, force=True).was_skipped


@pytest.mark.row("X-15", level="contract")
def test_ticks_go_on_when_the_clock_is_set_back_an_hour(world):
    run = _live(world)
    tick.tick(world.lab)
    world.clock.jump(hours=-1)
    assert tick.tick(world.lab).did
    run.refresh_from_db()
    assert run.is_active
    assert run.spent(world.clock(), timedelta(minutes=45)).used == timedelta(0)
    world.clock.forward(seconds=31)
    assert tick.tick(world.lab).did


@pytest.mark.row("X-12", level="contract")
def test_two_ticks_at_the_same_clock_time_change_nothing_more(world):
    for key in ("1", "2"):
        _live(world, Project.objects.first() or _project(world), key)
    world.tracker.add_pull("demo", "afk/1")
    tick.tick(world.lab, force=True)
    before = list(Notice.objects.values()), list(Run.objects.values()), world.bell.rings
    tick.tick(world.lab, force=True)
    assert (list(Notice.objects.values()), list(Run.objects.values()), world.bell.rings) == before


@pytest.mark.row("LAB-11", "C-19", level="real")
def test_after_a_restart_everything_live_is_found_again_and_the_budget_is_not_extended(real):
    """A new process has only the database, tmux and git."""
    run = start(real, real.project())
    started = run.started_at
    real.offset = timedelta(minutes=44)
    again = replace(real.lab, process="boot:9:9")
    tick.tick(again, force=True)
    run.refresh_from_db()
    assert run.is_active
    assert run.started_at == started
    real.offset = timedelta(minutes=46)
    tick.tick(again, force=True)
    run.refresh_from_db()
    assert run.outcome == "timed_out"


def test_a_tick_costs_the_same_number_of_queries_for_1_and_for_50_runs(
    world, django_assert_max_num_queries
):
    project = _project(world)
    Settings.objects.filter(pk=1).update(session_cap=100)
    counts = []
    for total in (1, 50):
        for number in range(Run.objects.count() + 1, total + 1):
            _live(world, project, str(number))
        world.sessions.text = dict.fromkeys(world.sessions.all, "working")
        tick.tick(world.lab, force=True)
        with django_assert_max_num_queries(15) as seen:
            tick.tick(world.lab, force=True)
        counts.append(len(seen))
    assert counts[0] == counts[1]


def test_a_tick_asks_tmux_at_most_twice_whatever_the_number_of_runs(world):
    project = _project(world)
    for number in range(1, 51):
        _live(world, project, str(number))
    before = world.sessions.calls
    tick.tick(world.lab, force=True)
    assert world.sessions.calls - before <= 2


def test_an_idle_product_asks_nobody_and_stores_nothing(world):
    make.a_project()
    tick.tick(world.lab)
    calls = world.sessions.calls
    for _ in range(5):
        world.clock.forward(seconds=5)
        assert not tick.tick(world.lab).did
    assert world.sessions.calls == calls
    world.clock.forward(seconds=60)
    assert tick.tick(world.lab).did
    assert not Tick.objects.exists()
    assert sum(world.tracker.calls.values()) == 0


def test_the_first_line_and_each_new_one_are_kept_for_the_board(world):
    run = _live(world)
    world.sessions.text[run.session] = "\x1b[31mhello\x1b[0m\n\n"
    tick.tick(world.lab, force=True)
    run.refresh_from_db()
    assert run.last_line == "hello"
    assert Notice.objects.filter(kind="run.output").count() == 1
    looked = Host.objects.get().looked
    tick.tick(world.lab, force=True)
    assert Host.objects.get().looked == looked
    world.sessions.text[run.session] = "more"
    tick.tick(world.lab, force=True)
    assert Host.objects.get().looked == looked + 1
    assert Notice.objects.filter(kind="run.output").count() == 1


def test_a_run_in_starting_is_not_judged(world):
    world.tracker.add_root("demo")
    run = make.a_run(
        make.a_project(), state=RunState.STARTING, started_at=None, launcher="boot:1:1"
    )
    world.clock.forward(minutes=1)
    tick.tick(world.lab, force=True)
    run.refresh_from_db()
    assert run.is_active


def test_a_tick_whose_lease_went_to_another_ends_nothing(world):
    """It slept for a minute while it asked the tracker; meanwhile another tick took over."""
    run = _live(world)
    world.tracker.add_pull("demo", "afk/7")
    other = replace(world.lab, process="boot:2:2")

    class Sleeps:
        def __getattr__(self, name):  # type: ignore[no-untyped-def]
            return getattr(world.tracker, name)

        def pulls(self, heads):  # type: ignore[no-untyped-def]
            world.clock.forward(seconds=61)
            assert lease.acquire(other) is not None
            return world.tracker.pulls(heads)

    report = tick.tick(replace(world.lab, tracker_for=lambda kind: Sleeps()), force=True)
    run.refresh_from_db()
    assert run.is_active
    assert report.errors == ["the lease was lost; another tick goes on"]
    assert Host.objects.get().lease_owner == "boot:2:2"


def test_a_stopped_start_is_left_to_the_launcher_that_still_handles_it(world):
    """Settled under it, its session would appear after everything was thought to be over."""
    world.tracker.add_root("demo")
    ended = {"outcome": "stopped", "settled_at": None, "started_at": None, "launcher": "boot:3:3"}
    run = make.a_run(make.a_project(), **ended)
    tick.tick(world.lab, force=True)
    run.refresh_from_db()
    assert run.settled_at is None
    world.dead_processes.add("boot:3:3")
    tick.tick(world.lab, force=True)
    run.refresh_from_db()
    assert run.settled_at is not None


def test_a_look_gives_way_to_the_start_that_it_began(world):
    project = make.a_project(agent=make.an_agent())
    world.tracker.add_root("demo")
    ready(world)
    paused: list[float] = []
    lab = replace(world.lab, pause=paused.append)
    tick.tick(lab, project="demo")
    assert paused == []
    start_requests.request(lab, project, "anna", "7")
    tick.tick(lab, project="demo")
    assert paused == [tick.GIVE_WAY_SECONDS]
