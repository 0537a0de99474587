"""How many wrong tries are let through: the rule as a table, and its rows."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connections

from runs.models import Tries
from runs.people import throttle, throttle_rules
from runs.people.throttle import Door, Kind, TooManyTries
from runs.people.throttle_rules import Limit
from tests.fakes import START, World
from tests.patience import PATIENCE

FIVE = Limit(5, timedelta(minutes=15))
MINUTE = timedelta(minutes=1)


@pytest.mark.row("X-10", level="pure")
@pytest.mark.parametrize(
    ("clear_in", "waits", "then_clear_in"),
    [
        pytest.param(None, 0, 3, id="nothing tried"),
        pytest.param(-10, 0, 3, id="long ago"),
        pytest.param(9, 0, 12, id="three tries"),
        pytest.param(12, 0, 15, id="four tries: the fifth is let through"),
        pytest.param(15, 3, 18, id="five tries: the sixth waits"),
        pytest.param(13, 1, 16, id="two minutes later one minute is left"),
        pytest.param(60 * 24, 3, 18, id="the clock was set back: no more than one wait"),
    ],
)
def test_a_few_tries_at_once_then_one_at_a_time(
    clear_in: int | None, waits: int, then_clear_in: int
) -> None:
    clear_at = None if clear_in is None else START + clear_in * MINUTE
    assert throttle_rules.wait(START, clear_at, FIVE) == waits * MINUTE
    assert throttle_rules.charged(START, clear_at, FIVE) == START + then_clear_in * MINUTE


DOOR = Door(Kind.PERSON, "192.0.2.1 ada")


@pytest.mark.django_db
def test_a_right_try_after_the_wait_is_let_through_and_forgets_the_wrong_ones(world: World) -> None:
    for _ in range(5):
        throttle.attempt(world.lab, [DOOR])
    with pytest.raises(TooManyTries) as shut:
        throttle.attempt(world.lab, [DOOR])
    assert shut.value.wait == timedelta(minutes=3)
    world.clock.forward(minutes=3)
    throttle.attempt(world.lab, [DOOR])
    throttle.was_right(world.lab, [DOOR])
    for _ in range(5):
        throttle.attempt(world.lab, [DOOR])


@pytest.mark.django_db
def test_trying_on_while_shut_never_makes_the_wait_longer(world: World) -> None:
    for _ in range(500):
        try:
            throttle.attempt(world.lab, [DOOR])
        except TooManyTries as shut:
            assert shut.wait <= timedelta(minutes=3)
    world.clock.forward(minutes=3)
    throttle.attempt(world.lab, [DOOR])


@pytest.mark.django_db
def test_one_shut_door_spares_the_other_ones(world: World) -> None:
    house = Door(Kind.ADDRESS, "192.0.2.1")
    for _ in range(100):
        with_name = [house, DOOR]
        try:
            throttle.attempt(world.lab, with_name)
        except TooManyTries:
            continue
    left = Kind.ADDRESS.value.tries - Kind.PERSON.value.tries
    for _ in range(left):
        throttle.attempt(world.lab, [house])
    with pytest.raises(TooManyTries):
        throttle.attempt(world.lab, [house])


@pytest.mark.django_db
def test_being_right_about_oneself_gives_an_address_back_one_try_only(world: World) -> None:
    house = Door(Kind.ADDRESS, "192.0.2.1")
    for _ in range(Kind.ADDRESS.value.tries - 1):
        throttle.attempt(world.lab, [house])
    for _ in range(3):
        throttle.attempt(world.lab, [house])
        throttle.was_right(world.lab, [house])
    throttle.attempt(world.lab, [house])
    with pytest.raises(TooManyTries):
        throttle.attempt(world.lab, [house])


@pytest.mark.django_db
def test_rows_hold_no_name_and_no_address_and_go_when_they_say_nothing(world: World) -> None:
    for number in range(300):
        throttle.attempt(world.lab, throttle.doors(f"192.0.2.{number}", f"name-{number}"))
    assert Tries.objects.count() == 600
    assert not Tries.objects.filter(key__contains="name").exists()
    world.clock.forward(minutes=15)
    throttle.attempt(world.lab, [DOOR])
    throttle.attempt(world.lab, [DOOR])
    assert Tries.objects.count() == 1


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_a_crowd_at_once_gets_no_more_tries_than_one_after_the_other(world: World) -> None:
    barrier = threading.Barrier(12)
    let_through: list[bool] = []

    def guess() -> None:
        barrier.wait(PATIENCE)
        try:
            throttle.attempt(world.lab, [DOOR])
            let_through.append(True)
        except TooManyTries:
            let_through.append(False)
        finally:
            connections.close_all()

    crowd = [threading.Thread(target=guess) for _ in range(12)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join(PATIENCE)
    assert sorted(let_through) == [False] * 7 + [True] * 5
