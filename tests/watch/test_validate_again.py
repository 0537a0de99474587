"""An ended watch session whose validation failed is validated again when a person asks for it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from runs.core.states import NoticeKind
from runs.models import Fixer, Notice, Project, Validation
from runs.overview import attention
from runs.validation import acts as validations
from runs.validation.command_rules import Checked
from tests.fakes import World
from tests.watch.test_watch_pages import of_session, part
from tests.watch.test_watch_validations import BAD, CheckedDay
from tests.watch.watch_day import BATCH
from tests.web.people import hx, text_of

pytestmark = pytest.mark.django_db(transaction=True)

GOOD = Checked(0, 1.0, "ok\n")


class FailedDay(CheckedDay):
    """A session of two deliveries that ended because they do not pass together."""

    def __init__(self, world: World, **fields: Any) -> None:
        super().__init__(world, "1", "2", **fields)
        world.checks.answers["make check"] = BAD
        self.opens(BATCH).ends("1", "2").wait(5)
        assert self.end == (1, "validation failed")
        self.at_once = False

    @property
    def address(self) -> str:
        return f"/projects/{self.project.pk}/watch/{self.session.pk}/validate"

    def passes(self) -> FailedDay:
        self.world.checks.answers["make check"] = GOOD
        return self

    def needs(self, client: Client) -> str:
        return part(text_of(client.get("/")), "needs-you")


@pytest.mark.row("C-54", "C-14", level="contract")
@pytest.mark.parametrize("is_htmx", [True, False])
def test_a_press_validates_again_and_a_pass_needs_nobody(
    world: World, anna: Client, is_htmx: bool
) -> None:
    day = FailedDay(world)
    assert "validation failed" in day.needs(anna)
    send: Any = hx if is_htmx else Client.post
    answer = send(anna, day.address)
    assert answer.status_code == (200 if is_htmx else 303)
    assert day.rows == [(1, 2, "failed"), (2, 2, "running")]
    assert "validation failed" not in day.needs(anna)
    shown = of_session(anna, day, "watch-validations")
    assert "Validation 2 running asked for by anna" in shown
    assert "Validate again" not in shown
    day.passes().validates()
    assert day.rows == [(1, 2, "failed"), (2, 2, "passed")]
    assert day.end == (1, "validation failed")
    assert "validation failed" not in day.needs(anna)
    ended = of_session(anna, day, "watch-act")
    assert "Validation failed (exit code 1), validated again: passed" in ended
    assert "Validate again" not in of_session(anna, day, "watch-validations")
    began = Notice.objects.get(kind=NoticeKind.VALIDATION_BEGAN, by="anna")
    assert began.text == "validation 2 began, again"


@pytest.mark.row("C-54", level="contract")
def test_a_repeat_that_fails_starts_no_fixer_and_needs_somebody_again(
    world: World, anna: Client
) -> None:
    day = FailedDay(world)
    Project.objects.update(fix_attempts=2)
    attention.opened(day.session, world.clock.now)
    world.clock.forward(hours=48)
    assert "validation failed" not in day.needs(anna)
    validations.validate_again(day.lab, day.session, "anna")
    day.validates()
    assert day.rows[-1] == (2, 2, "failed")
    assert not Fixer.objects.exists()
    assert "validation failed" in day.needs(anna)
    assert "Validate again" in of_session(anna, day, "watch-validations")
    validations.validate_again(day.lab, day.session, "bert")
    assert [number for number, *_ in day.rows] == [1, 2, 3]


@pytest.mark.row("C-54", level="contract")
def test_pressed_twice_or_raced_it_makes_one(world: World) -> None:
    day = FailedDay(world)
    first = validations.validate_again(day.lab, day.session, "anna")
    assert validations.validate_again(day.lab, day.session, "bert") == first
    assert day.rows == [(1, 2, "failed"), (2, 2, "running")]


@pytest.mark.row("C-54", level="contract")
def test_the_second_press_says_that_it_is_at_work(world: World, anna: Client) -> None:
    day = FailedDay(world)
    assert "Started validation 2." in text_of(hx(anna, day.address))
    again = text_of(hx(anna, day.address))
    assert "Validation 2 is already running." in again


def test_a_worker_that_was_killed_in_it_goes_on(world: World) -> None:
    day = FailedDay(world)
    row = validations.validate_again(day.lab, day.session, "anna")
    world.queue.validations.clear()
    Validation.objects.filter(pk=row.pk).update(runner="dead")
    world.dead_processes.add("dead")
    validations.tend(day.lab)
    day.passes().validates()
    assert day.rows[-1] == (2, 2, "passed")


@pytest.mark.row("C-54", level="contract")
def test_who_may_only_look_has_no_button_and_is_refused(world: World, vera: Client) -> None:
    day = FailedDay(world)
    assert "Validate again" not in of_session(vera, day, "watch-validations")
    assert vera.post(day.address).status_code == 403
    assert day.rows == [(1, 2, "failed")]


def test_what_did_not_fail_is_refused_in_words(world: World, anna: Client) -> None:
    day = FailedDay(world)
    Validation.objects.update(state="passed")
    answer = hx(anna, day.address)
    assert answer.status_code == 409
    assert "did not fail" in text_of(answer)
    assert day.rows == [(1, 2, "passed")]


def test_a_refresh_shows_what_a_repeat_prints(world: World, anna: Client) -> None:
    day = FailedDay(world)
    validations.validate_again(day.lab, day.session, "anna")
    live = f"/projects/{day.project.pk}/watch/{day.session.pk}/live"
    for _ in range(2):
        answer = anna.get(live, headers={"HX-Request": "true", "HX-PTag": "x"})
        assert answer.status_code == 200
        assert 'hx-target="#watch-validations"' in text_of(answer)
