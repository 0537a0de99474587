"""What a wait does with the budget: nothing, or it stops it where the project wants that."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs.core.states import Outcome, Wait
from runs.lifecycle import resuming
from runs.models import Project, Run, Settings
from runs.waits import rules
from tests.api.program import Program
from tests.waits.test_stepper import BASH, hears, looked, project, run, shows
from tests.web import board_rows as rows
from tests.web.people import text_of

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["project", "run"]


@pytest.fixture
def stopping(project: Project) -> None:
    """The project says that a wait stops its budget."""
    Project.objects.update(waits_stop_budget=True)


def goes_on(world, run) -> Run:  # type: ignore[no-untyped-def]
    hears(world, run, {"event": "UserPromptSubmit"})
    return looked(world, run)


@pytest.mark.parametrize(
    ("kind", "is_wanted", "stops"),
    [
        (Wait.NONE, True, False),
        (Wait.PERMISSION, True, True),
        (Wait.QUESTION, True, True),
        (Wait.IDLE, True, True),
        (Wait.ERROR, True, True),
        (Wait.QUIET, True, False),
        *((kind, False, False) for kind in Wait),
    ],
)
def test_which_waits_stop_a_budget(kind, is_wanted, stops):
    assert rules.stops_budget(kind, is_wanted) is stops


@pytest.mark.parametrize(
    ("seconds", "is_stopped", "words"),
    [
        (59, False, ""),
        (59, True, ""),
        (60, False, "; in 1 min of them it waited for a person"),
        (3600, True, "; the 60 min in which it waited for a person did not count"),
    ],
)
def test_what_is_said_of_waits_that_are_over(seconds, is_stopped, words):
    assert rules.budget_words(timedelta(seconds=seconds), is_stopped) == words


def test_by_itself_a_wait_does_not_stop_the_budget(world, run):
    Settings.objects.update(quiet_minutes=0)
    hears(world, run, BASH)
    looked(world, run, minutes=1)
    looked(world, run, minutes=20)
    goes_on(world, run)
    assert (run.waited_seconds, run.rested_seconds) == (21 * 60, 0)
    looked(world, run, minutes=25)
    assert run.outcome == Outcome.TIMED_OUT
    assert run.reason.endswith("; in 21 min of them it waited for a person")


def test_where_the_project_wants_it_a_wait_stops_the_budget(world, run, stopping):
    Settings.objects.update(quiet_minutes=0)
    hears(world, run, BASH)
    looked(world, run, minutes=1)
    assert run.budget_stopped_at == world.clock.now
    looked(world, run, hours=5)
    assert (run.outcome, run.age(world.clock.now)) == ("", timedelta(minutes=1))
    goes_on(world, run)
    assert (run.budget_stopped_at, run.rested_seconds) == (None, 5 * 3600)
    looked(world, run, minutes=43)
    assert run.outcome == ""
    looked(world, run, minutes=1)
    assert run.outcome == Outcome.TIMED_OUT
    assert run.reason.endswith("; the 301 min in which it waited for a person did not count")


def test_a_screen_that_stands_still_stops_no_budget(world, run, stopping):
    assert looked(world, run, minutes=16).waits == Wait.QUIET
    looked(world, run, minutes=30)
    assert run.outcome == Outcome.TIMED_OUT


def test_the_setting_works_for_a_wait_that_goes_on(world, run):
    hears(world, run, BASH)
    looked(world, run, minutes=10)
    Project.objects.update(waits_stop_budget=True)
    looked(world, run)
    looked(world, run, minutes=20)
    assert run.age(world.clock.now) == timedelta(minutes=10)
    Project.objects.update(waits_stop_budget=False)
    looked(world, run)
    assert (run.budget_stopped_at, run.rested_seconds) == (None, 20 * 60)
    looked(world, run, minutes=5)
    assert run.age(world.clock.now) == timedelta(minutes=15)


@pytest.mark.parametrize("hours", [-3, 3])
def test_a_clock_that_is_set_makes_no_wait_longer_or_shorter(world, run, stopping, hours):
    hears(world, run, BASH)
    looked(world, run, minutes=1)
    looked(world, run, minutes=10)
    world.clock.jump(hours=hours)
    looked(world, run)
    assert run.age(world.clock.now) == timedelta(minutes=1)
    goes_on(world, run)
    assert (run.rested_seconds, run.waited_seconds) == (600, 660)
    assert run.age(world.clock.now) == timedelta(minutes=1)


def test_what_was_held_while_it_waited_counts_neither(world, run, stopping):
    hears(world, run, BASH)
    looked(world, run, minutes=1)
    forgotten = resuming.forgotten(run)
    assert forgotten["budget_stopped_at"] is None
    run.held_at = world.clock.now + timedelta(minutes=5)
    assert run.age(world.clock.now + timedelta(hours=1)) == timedelta(minutes=1)


def test_pages_say_what_the_wait_does(world, run, project, anna: Client, operator: User):
    program = Program.of(operator)
    hears(world, run, BASH)
    looked(world, run, minutes=2)
    there = f"/runs/{run.pk}/"
    page = text_of(anna.get(there))
    assert "The budget goes on meanwhile." in page
    assert "2 min of waiting for you counted." in " ".join(page.split())
    assert program.get(f"/projects/{project.pk}").json()["waits_stop_budget"] is False
    Project.objects.update(waits_stop_budget=True)
    looked(world, run)
    page = text_of(anna.get(there))
    assert "The budget rests meanwhile." in page
    assert "rests while the agent waits for you, as the project wants" in page
    assert "2 min of waiting for you did not count." in " ".join(page.split())
    told = program.get(f"/runs/{run.pk}").json()
    assert (told["is_budget_stopped"], told["waited_seconds"]) == (True, 120)
    rows.a_tick(world)
    row = text_of(anna.get("/"))
    assert "Bash: rm -rf build; its budget rests" in row
    assert "without waits for you" in text_of(anna.get(f"/projects/{project.pk}/"))
    shows(world, run, "✳ …")
    goes_on(world, run)
    assert "its budget rests" not in text_of(anna.get("/"))
