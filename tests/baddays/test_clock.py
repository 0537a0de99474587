"""Somebody sets the clock an hour forward or back: nobody loses time, nobody gains any (X-15)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from runs import tick
from runs.core import budgets, lease
from runs.core.budgets import JUMP, ClockReading, jump
from runs.core.ports import Steady
from runs.core.states import RunState
from runs.dispatch import reserve
from runs.kept import retention
from runs.models import Host, Notice, Run, Tick
from tests import make
from tests.fakes import START
from tests.world.stories import look, press_start, ready

pytestmark = pytest.mark.django_db(transaction=True)
HOUR = 3600.0


@pytest.mark.row("X-15", level="pure")
@pytest.mark.parametrize(
    ("before", "after", "seconds"),
    [
        pytest.param(("a", 100.0), ("a", 100.0), 0, id="nothing happened"),
        pytest.param(("a", 100.0), ("a", 109.0), 0, id="drift"),
        pytest.param(("a", 100.0), ("a", 100.0 + HOUR), HOUR, id="an hour forward"),
        pytest.param(("a", 100.0), ("a", 100.0 - HOUR), -HOUR, id="an hour back"),
        pytest.param(("a", 100.0), ("b", 100.0 + HOUR), 0, id="another boot"),
        pytest.param(("", 0.0), ("a", 1e9), 0, id="never compared before"),
        pytest.param(("", 0.0), ("", 1e9), 0, id="a system that names no boot"),
    ],
)
def test_only_a_set_clock_of_the_same_boot_is_a_jump(before, after, seconds):
    assert jump(ClockReading(*before), ClockReading(*after)) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "boot, counted, at, more",
    [
        ("a", None, 500.0, 0.0),
        ("a", 500.0, 530.0, None),
        ("a", 500.0, 560.0, 60.0),
        ("a", 500.0, 500.0 + 9 * 86_400, 3600.0),
        ("a", 500.0, 400.0, 0.0),
        ("b", 500.0, 560.0, 0.0),
        ("", 500.0, 560.0, 0.0),
    ],
)
def test_days_count_while_labsite_works_and_only_then(boot, counted, at, more):
    assert budgets.lived(ClockReading("a", 0.0), counted, boot, at) == more


def test_ticks_count_what_labsite_lives_through_and_no_clock_does(world):
    tick.tick(world.lab, force=True)
    for _ in range(5):
        world.clock.forward(minutes=10)
        tick.tick(world.lab, force=True)
        world.clock.jump(days=30)
    assert retention.lived(world.lab) == 50 * 60


def _working(world) -> Run:  # type: ignore[no-untyped-def]
    world.tracker.add_root("demo")
    run = make.a_run(make.a_project())
    world.live(run)
    return run


@pytest.mark.row("X-15", level="contract")
@pytest.mark.parametrize("hours", [1, -1, 24 * 365])
def test_a_run_ends_exactly_when_its_time_is_up_whatever_the_clock_did(world, hours):
    run = _working(world)
    world.clock.forward(minutes=20)
    look(world)
    world.clock.jump(hours=hours)
    look(world)
    run.refresh_from_db()
    assert run.is_active
    assert run.spent(world.clock(), timedelta(minutes=45)).used == timedelta(minutes=20)
    world.clock.forward(minutes=24)
    look(world)
    run.refresh_from_db()
    assert run.is_active
    world.clock.forward(minutes=1)
    look(world)
    run.refresh_from_db()
    assert run.outcome == "timed_out"


def test_the_jump_is_told_once_and_back_again_once(world):
    run = _working(world)
    look(world)
    for hours in (1, -1):
        world.clock.jump(hours=hours)
        look(world)
        look(world)
    told = list(Notice.objects.filter(kind="clock.set").order_by("pk").values_list("text"))
    assert [text.split(";")[0] for (text,) in told] == [
        "the clock of this machine was set forward by 1 h 0 min",
        "the clock of this machine was set back by 1 h 0 min",
    ]
    run.refresh_from_db()
    assert run.started_at == START


def test_slow_drift_is_followed_and_never_told(world):
    run = _working(world)
    look(world)
    for _ in range(20):
        world.clock.forward(seconds=30)
        world.clock.jump(seconds=JUMP.total_seconds() - 2)
        look(world)
    run.refresh_from_db()
    assert run.started_at == START
    assert not Notice.objects.filter(kind="clock.set").exists()


def test_a_jump_in_the_middle_of_a_tick_times_nobody_out(world):
    """The clock is set while the tracker is asked: the tick goes on with the time that it checked."""
    run = _working(world)
    look(world)

    class Late:
        def __getattr__(self, name):  # type: ignore[no-untyped-def]
            return getattr(world.tracker, name)

        def pulls(self, heads):  # type: ignore[no-untyped-def]
            world.clock.jump(hours=1)
            return world.tracker.pulls(heads)

    tick.tick(replace(world.lab, tracker_for=lambda kind: Late()), force=True)
    look(world)
    run.refresh_from_db()
    assert run.is_active
    assert run.spent(world.clock(), timedelta(minutes=45)).used < timedelta(minutes=1)


def test_a_process_that_was_held_up_between_its_two_clocks_sees_no_jump(world):
    run = _working(world)
    look(world)
    held = iter([True])

    def now():  # type: ignore[no-untyped-def]
        moment = world.clock()
        if next(held, False):
            world.clock.forward(minutes=5)
        return moment

    tick.tick(replace(world.lab, now=now), force=True)
    run.refresh_from_db()
    assert run.started_at == START
    assert not Notice.objects.filter(kind="clock.set").exists()


def test_after_another_boot_nothing_is_compared(world):
    run = _working(world)
    look(world)
    world.clock.jump(hours=1)
    rebooted = replace(world.lab, steady=lambda: Steady("another boot", 5.0))
    tick.tick(rebooted, force=True)
    run.refresh_from_db()
    assert run.started_at == START
    assert Host.objects.get().clock_boot == "another boot"


def test_a_lost_start_is_asked_for_again_at_once_after_the_clock_was_set_back(world):
    world.tracker.add_root("demo")
    make.a_run(make.a_project(), state=RunState.STARTING, started_at=None)
    world.clock.jump(hours=-1)
    look(world)
    assert world.queue.launches


def test_a_launch_that_goes_on_is_not_rolled_back_because_the_clock_was_set(world):
    world.tracker.add_root("demo")
    run = make.a_run(
        make.a_project(),
        state=RunState.STARTING,
        started_at=None,
        launcher="boot:9:9",
        launch_deadline=START + timedelta(minutes=6),
    )
    look(world)
    world.clock.jump(hours=1)
    look(world)
    run.refresh_from_db()
    assert run.is_active
    world.clock.forward(minutes=7)
    look(world)
    run.refresh_from_db()
    assert run.outcome == "failed"


@pytest.mark.parametrize("hours", [1, -1])
def test_ticks_and_leases_go_on_after_a_jump(world, hours):
    _working(world)
    tick.tick(world.lab)
    other = replace(world.lab, process="boot:9:9")
    assert lease.acquire(other) is not None
    world.clock.jump(hours=hours)
    assert tick.tick(world.lab).did
    for _ in range(4):
        world.clock.forward(seconds=31)
        assert tick.tick(world.lab).did
    assert not Tick.objects.filter(was_skipped=True).exists()


@pytest.mark.parametrize("hours", [1, -1])
def test_a_lost_clone_is_asked_for_again_after_a_jump(world, hours):
    make.a_project(state="cloning")
    look(world)
    world.clock.jump(hours=hours)
    look(world)
    assert world.queue.clones


@pytest.mark.parametrize("hours", [1, -1])
def test_real_agents_go_on_through_a_jump_and_new_ones_start(day, hours):
    run = day.run()
    look(day.real)
    day.real.jump = timedelta(hours=hours)
    look(day.real)
    ready(day.real, "8")
    assert press_start(day.real, day.project).answer == "started"
    assert day.again(run).is_active
    day.real.jump = timedelta(0)
    look(day.real)
    assert day.again(run).is_active
    assert len(day.real.session_names()) == 2
    assert reserve.room(day.real.lab, _settings(), day.real.sessions.look()).occupied == 2


def _settings():  # type: ignore[no-untyped-def]
    from runs.models import Settings

    return Settings.current()
