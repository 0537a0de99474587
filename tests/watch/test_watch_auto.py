"""The switch and its session: one open session without limits, which the switch opens and drains."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from runs.core.states import Outcome
from runs.models import Notice, Project, Run, Settings, WatchSession
from runs.watch import acts as watches
from runs.watch import switch as auto
from runs.watch.session import Request
from tests.fakes import World
from tests.watch.watch_day import WATCH, Day

pytestmark = pytest.mark.django_db(transaction=True)


def turn(day: Day, is_on: bool) -> None:
    assert auto.switch(day.lab, day.project, is_on=is_on, by="anna")
    day.tick()


@pytest.mark.row("C-28", "LAB-80", level="contract")
def test_the_switch_opens_a_session_without_limits_and_drains_it(world: World) -> None:
    day = Day(world, *"12", parallel=1)
    turn(day, True)
    session = day.session
    assert (session.is_auto, session.is_watching, session.opened_by) == (True, True, "anna")
    assert (session.limit, session.every, session.threshold) == (None, None, None)
    assert day.active == ["1"]
    turn(day, False)
    assert (day.session.phase, day.session.asked_by) == ("draining", "anna")
    day.wait(100, every=10).ends("1")
    assert (day.end, day.started) == ((130, "interrupted"), ["1"])
    assert len(Notice.objects.filter(kind="auto.changed")) == 2


@pytest.mark.row("C-28", "C-06", "LAB-81", level="contract")
def test_the_switch_s_session_polls_at_the_launch_interval_and_others_at_theirs(
    world: World,
) -> None:
    day = Day(world)
    turn(day, True)
    assert (day.session.next_poll_at - world.clock.now).total_seconds() == 45
    asked = day.polls
    assert day.wait(44).polls == asked
    assert day.wait(1).polls == asked + 1
    Settings.objects.update(launch_seconds=5)
    day.wait(30)  # the next look at the latest
    heard = day.polls
    assert day.wait(10).polls == heard + 2


@pytest.mark.long
@pytest.mark.row("C-28", level="contract")
def test_an_idle_switch_tells_nothing_but_its_page(world: World) -> None:
    day = Day(world)
    turn(day, True)
    day.wait(1200, every=5)
    assert (day.session.phase, day.told("watch.idle")) == ("idle", [])
    assert world.tracker.calls["open_count"] == 0


def test_turning_it_on_again_takes_the_drain_back(world: World) -> None:
    day = Day(world, *"12", parallel=1)
    turn(day, True)
    turn(day, False)
    assert day.session.reason == "interrupted"
    turn(day, True)
    assert WatchSession.objects.count() == 1
    assert (day.session.request, day.session.reason, day.session.asked_by) == (0, "", "")
    assert day.ends("1").active == ["2"]


def test_a_step_from_before_a_press_is_not_stored_over_it(world: World) -> None:
    """The switch is turned on again between the read that ends its session and the write."""
    day = Day(world)
    turn(day, True)
    assert auto.switch(day.lab, day.project, is_on=False, by="anna")
    pressed: list[str] = []

    def press(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith('UPDATE "runs_watchsession"') and not pressed:
            pressed.append(sql)
            assert auto.switch(day.lab, day.project, is_on=True, by="anna")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(press):
        day.tick()
    assert pressed
    session = WatchSession.objects.get()
    assert (session.is_open, session.request, Project.objects.get().is_auto) == (True, 0, True)


@pytest.mark.parametrize("request_", [Request.DRAIN, Request.ABORT, Request.KILL])
def test_who_ends_the_switch_s_session_turns_the_switch_off(
    world: World, request_: Request
) -> None:
    day = Day(world)
    turn(day, True)
    day.asks(request_, by="ben").wait(60, every=5)
    assert (day.end, Project.objects.get().is_auto) == ((130, "interrupted"), False)
    assert WatchSession.objects.count() == 1
    assert Notice.objects.filter(kind="auto.changed").latest("pk").by == "ben"


def test_a_session_of_a_person_goes_before_the_switch_s(world: World) -> None:
    day = Day(world, "1").opens(WATCH)
    turn(day, True)
    assert (WatchSession.objects.count(), day.session.is_auto) == (1, False)
    watches.drain(day.lab, day.session, "anna")
    day.ends("1").wait(60, every=10)
    assert [one.is_auto for one in WatchSession.objects.order_by("pk")] == [False, True]
    assert WatchSession.objects.open().get().is_auto


def test_a_switch_that_was_turned_in_the_admin_is_followed(world: World) -> None:
    day = Day(world, "1")
    Project.objects.update(is_auto=True)
    day.wait(46, every=46)
    assert (day.active, day.session.opened_by) == (["1"], "")
    Project.objects.update(is_auto=False)
    day.wait(46, every=46)
    assert day.session.phase == "draining"


def test_the_switch_may_take_an_issue_again_that_was_given_back(world: World) -> None:
    """It stays open for months, and discarding a branch is how an issue is queued anew."""
    day = Day(world, "1")
    turn(day, True)
    day.ends("1", outcome=Outcome.DIED).wait(50, every=10)
    assert day.started == ["1"]
    world.repos.heads.clear()
    for run in Run.objects.all():
        world.repos.roll_back(day.project.repo(world.lab.paths), _path(run), run.branch, "")
    day.wait(50, every=10)
    assert day.started == ["1", "1"]


def _path(run: Run) -> Any:
    from pathlib import Path

    return Path(run.worktree)


@pytest.mark.row("C-29", "MALA-W-56", level="contract")
def test_a_tracker_that_is_away_stops_it_until_resume_and_the_switch_stays_on(
    world: World,
) -> None:
    day = Day(world, "1")
    day.fails()
    turn(day, True)
    day.wait(600, every=5)
    project = Project.objects.get()
    assert (day.end, project.is_auto, day.session.needs_resume) == ((3, "poll failed"), True, True)
    assert WatchSession.objects.count() == 1
    assert "Resume asks at once" in day.told("watch.failed")[0]
    world.tracker.heal()
    assert watches.resume(day.lab, project, "anna")
    assert not watches.resume(day.lab, project, "ben")
    assert day.tick().active == ["1"]
    assert not WatchSession.objects.filter(needs_resume=True).exists()


@pytest.mark.any_database
@pytest.mark.row("C-29", level="contract")
def test_it_goes_on_by_itself_once_the_tracker_answers_and_asks_more_and_more_rarely_before(
    world: World,
) -> None:
    day = Day(world, "1")
    day.fails()
    turn(day, True)
    day.wait(180, every=5)
    assert day.session.needs_resume
    world.tracker.calls.clear()
    day.wait(3600, every=60)
    asked = world.tracker.calls["queues"]
    assert 5 <= asked <= 8  # after 1, 2, 4, 8, then every 15 minutes
    assert len(day.told("watch.failed")) == 1
    assert day.told("watch.poll_failed") == day.told("watch.poll_failed")[:3]
    world.tracker.heal()
    day.wait(960, every=60)
    assert day.active == ["1"]
    assert WatchSession.objects.count() == 2
    assert not WatchSession.objects.filter(needs_resume=True).exists()
    said = "the tracker answers again, and automatic work goes on"
    assert day.told("auto.changed").count(said) == 1


@pytest.mark.row("C-29", level="contract")
def test_a_switch_that_is_off_asks_nobody(world: World) -> None:
    day = Day(world, "1")
    day.fails()
    turn(day, True)
    day.wait(180, every=5)
    turn(day, False)
    world.tracker.calls.clear()
    world.tracker.heal()
    day.wait(1200, every=15)
    assert (world.tracker.calls["queues"], day.started) == (0, [])


@pytest.mark.row("C-29", level="contract")
def test_turning_the_switch_off_and_on_resumes_too(world: World) -> None:
    day = Day(world, "1").fails()
    turn(day, True)
    day.wait(300, every=5)
    world.tracker.heal()
    turn(day, False)
    assert not watches.resume(day.lab, day.project, "anna")
    turn(day, True)
    assert day.active == ["1"]


@pytest.mark.row("C-51", level="contract")
def test_a_paused_switch_asks_nobody_and_goes_on_after_reset(world: World) -> None:
    day = Day(world, "1", streak=3)
    turn(day, True)
    day.wait(120, every=2)
    assert (day.session.phase, day.polls) == ("paused", 0)
    auto.reset(day.lab, day.project, by="anna")
    assert day.tick().active == ["1"]


@pytest.mark.row("C-59", level="contract")
def test_a_run_of_a_person_counts_for_no_session(world: World) -> None:
    from runs import tick
    from runs.dispatch import start_requests

    day = Day(world, *"12", parallel=1)
    turn(day, True)
    start_requests.request(day.lab, day.project, "anna", "2")
    tick.tick(day.lab, project="demo")
    day.tick().ends("2")
    assert (day.session.completed, day.active) == (0, ["1"])
