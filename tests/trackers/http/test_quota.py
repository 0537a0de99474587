"""The meter: what was spent, who waits, and what wrong clocks and many threads do to it."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

import pytest

from tests.trackers.http.forge import START, Clock
from trackers.account import Purpose
from trackers.http.quota import MOST_ACCOUNTS, Meter, Why
from trackers.http.rules import Quota

ME = ("forge.example", "abc")


def quota(remaining: int, minutes: float = 30, limit: int = 5000, resource: str = "core") -> Quota:
    return Quota(limit, remaining, limit - remaining, timedelta(minutes=minutes), resource)


def a_meter(share: float = 0.4) -> tuple[Meter, Clock]:
    clock = Clock()
    return Meter(share, clock.monotonic), clock


def learn(meter: Meter, clock: Clock, told: Quota, purpose: Purpose = Purpose.QUEUE) -> None:
    assert meter.begin(*ME, Purpose.WRITE, clock.now()) is None
    meter.end(*ME, purpose, clock.now(), told)


@pytest.mark.parametrize(
    ("purpose", "remaining", "waits"),
    [
        (Purpose.QUEUE, 2001, False),
        (Purpose.QUEUE, 2000, True),
        (Purpose.PULLS, 1, True),
        (Purpose.BLOCKERS, 2000, True),
        (Purpose.READ, 2000, False),
        (Purpose.WRITE, 1, False),
        (Purpose.SETUP, 1, False),
        (Purpose.READ, 0, True),
        (Purpose.WRITE, 0, True),
    ],
)
def test_polling_leaves_the_human_s_share_alone(purpose: Purpose, remaining: int, waits: bool):
    meter, clock = a_meter()
    learn(meter, clock, quota(remaining))
    until = meter.may(*ME, purpose, clock.now())
    assert until == (START + timedelta(minutes=30) if waits else None)


def test_the_share_can_be_set_while_it_runs():
    meter, clock = a_meter()
    learn(meter, clock, quota(1500))
    assert meter.may(*ME, Purpose.QUEUE, clock.now()) is not None
    meter.share = 0.2
    assert meter.may(*ME, Purpose.QUEUE, clock.now()) is None


def test_calls_under_way_count_before_they_are_answered():
    meter, clock = a_meter()
    learn(meter, clock, quota(2003))
    begun = [meter.begin(*ME, Purpose.QUEUE, clock.now()) for _ in range(5)]
    assert [hold is None for hold in begun] == [True, True, True, False, False]
    assert begun[3] is not None and begun[3].why is Why.PEOPLE


def test_a_new_window_is_a_new_quota():
    meter, clock = a_meter()
    learn(meter, clock, quota(100))
    assert meter.may(*ME, Purpose.QUEUE, clock.now()) is not None
    clock.pass_by(30 * 60)
    assert meter.may(*ME, Purpose.QUEUE, clock.now()) is None
    assert meter.standing(*ME, clock.now()) is None


@pytest.mark.parametrize(
    ("heard", "remaining"),
    [
        pytest.param([quota(4000), quota(3999)], 3999, id="in order"),
        pytest.param([quota(3999), quota(4000)], 3999, id="the other way round"),
        pytest.param([quota(3999, 30), quota(4000, 30.2)], 3999, id="a reset 12 seconds off"),
        pytest.param([quota(10, 1), quota(5000, 60)], 5000, id="a new window"),
        pytest.param([quota(5000, 60), quota(10, 1)], 5000, id="an answer of the old window"),
        pytest.param([quota(10), quota(9000, limit=15000)], 9000, id="another limit"),
        pytest.param([quota(4000), quota(3, resource="search")], 4000, id="another resource"),
    ],
)
def test_which_answer_is_believed(heard: list[Quota], remaining: int):
    meter, clock = a_meter()
    for told in heard:
        learn(meter, clock, told)
    standing = meter.standing(*ME, clock.now())
    assert standing is not None and standing.remaining == remaining


def test_a_block_holds_everything_of_that_account_and_nothing_else():
    meter, clock = a_meter()
    meter.block(*ME, clock.now(), timedelta(minutes=5))
    for purpose in Purpose:
        assert meter.may(*ME, purpose, clock.now()) == START + timedelta(minutes=5)
    assert meter.may("forge.example", "other", Purpose.QUEUE, clock.now()) is None
    assert meter.may("other.example", "abc", Purpose.QUEUE, clock.now()) is None
    clock.pass_by(301)
    assert meter.may(*ME, Purpose.QUEUE, clock.now()) is None


def test_a_shorter_wait_does_not_end_a_longer_one():
    meter, clock = a_meter()
    meter.block(*ME, clock.now(), timedelta(minutes=5))
    until = meter.block(*ME, clock.now(), timedelta(minutes=1))
    assert until == START + timedelta(minutes=5)


def test_waits_that_nobody_told_double_until_a_call_goes_through():
    meter, clock = a_meter()
    waits = []
    for _ in range(9):
        until = meter.block(*ME, clock.now(), timedelta(seconds=60), is_blind=True)
        waits.append((until - clock.now()).total_seconds() / 60)
        clock.pass_by((until - clock.now()).total_seconds())
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    meter.heard(*ME, clock.now(), 200)
    until = meter.block(*ME, clock.now(), timedelta(seconds=60), is_blind=True)
    assert (until - clock.now()).total_seconds() == 60


def test_two_calls_side_by_side_that_meet_one_limit_wait_once():
    meter, clock = a_meter()
    for _ in range(3):
        until = meter.block(*ME, clock.now(), timedelta(seconds=60), is_blind=True)
    assert until == START + timedelta(seconds=60)


@pytest.mark.parametrize(
    "days", [pytest.param(-400, id="the clock was set back"), pytest.param(400, id="set forward")]
)
def test_a_clock_that_jumps_keeps_nobody_waiting(days: int):
    """No wait gets longer by it; a clock set forward ends one early, and the forge will say."""
    meter, clock = a_meter()
    learn(meter, clock, quota(10))
    meter.block(*ME, clock.now(), timedelta(minutes=5))
    clock.wall += timedelta(days=days)
    until = meter.may(*ME, Purpose.QUEUE, clock.now())
    assert until is None if days > 0 else until == clock.wall + timedelta(minutes=5)
    clock.pass_by(301)
    assert meter.may(*ME, Purpose.READ, clock.now()) is None
    held = meter.may(*ME, Purpose.QUEUE, clock.now())
    assert held is None if days > 0 else held == clock.wall + timedelta(seconds=30 * 60 - 301)
    clock.pass_by(1800)
    assert meter.may(*ME, Purpose.QUEUE, clock.now()) is None


def test_what_was_spent_is_handed_over_once_and_can_be_given_back():
    meter, clock = a_meter()
    for purpose, unchanged in [
        (Purpose.QUEUE, False),
        (Purpose.QUEUE, True),
        (Purpose.WRITE, False),
    ]:
        meter.begin(*ME, purpose, clock.now())
        meter.end(*ME, purpose, clock.now(), quota(4000), was_unchanged=unchanged)
    (spent,) = meter.settle(clock.now())
    assert (spent.host, spent.account) == ME
    assert spent.calls == {Purpose.QUEUE: 2, Purpose.WRITE: 1}
    assert spent.unchanged == {Purpose.QUEUE: 1}
    assert spent.standing is not None and spent.standing.remaining == 4000
    (again,) = meter.settle(clock.now())
    assert again.calls == {} and again.standing == spent.standing
    meter.give_back([spent])
    assert meter.settle(clock.now())[0].calls == spent.calls


def test_what_stands_is_told_with_what_was_spent():
    meter, clock = a_meter()
    meter.block(*ME, clock.now(), timedelta(minutes=5))
    assert meter.settle(clock.now())[0].blocked_until == START + timedelta(minutes=5)
    clock.pass_by(301)
    assert all(spent.blocked_until is None for spent in meter.settle(clock.now()))


def test_a_pace_is_only_slower_where_something_is_known():
    meter, clock = a_meter()
    normal = timedelta(seconds=45)
    assert meter.pace(*ME, clock.now(), normal, 20) == normal
    learn(meter, clock, quota(2200))
    assert meter.pace(*ME, clock.now(), normal, 20) == timedelta(minutes=3)
    clock.pass_by(31 * 60)
    assert meter.pace(*ME, clock.now(), normal, 20) == normal


@pytest.mark.long
def test_accounts_that_come_and_go_do_not_pile_up():
    meter, clock = a_meter()
    for number in range(5 * MOST_ACCOUNTS):
        account = ("forge.example", f"account {number}")
        meter.begin(*account, Purpose.QUEUE, clock.now())
        meter.end(*account, Purpose.QUEUE, clock.now(), quota(4000))
        meter.settle(clock.now())
    assert len(meter.settle(clock.now())) <= MOST_ACCOUNTS


def test_what_was_not_stored_yet_is_never_let_go():
    meter, clock = a_meter()
    for number in range(MOST_ACCOUNTS + 10):
        meter.begin("forge.example", f"account {number}", Purpose.QUEUE, clock.now())
        meter.end("forge.example", f"account {number}", Purpose.QUEUE, clock.now())
    assert len(meter.settle(clock.now())) == MOST_ACCOUNTS + 10


def test_many_threads_lose_no_count():
    meter = Meter()
    now: datetime = START

    def work() -> None:
        for _ in range(200):
            meter.begin(*ME, Purpose.QUEUE, now)
            meter.end(*ME, Purpose.QUEUE, now, was_unchanged=True)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    counted = 0
    while any(thread.is_alive() for thread in threads):
        counted += sum(spent.calls.get(Purpose.QUEUE, 0) for spent in meter.settle(now))
    for thread in threads:
        thread.join()
    counted += sum(spent.calls.get(Purpose.QUEUE, 0) for spent in meter.settle(now))
    assert counted == 1600


def test_what_another_process_heard_is_obeyed():
    meter, clock = a_meter()
    meter.learn(*ME, clock.now(), quota(1000), clock.now() + timedelta(minutes=5))
    assert meter.may(*ME, Purpose.READ, clock.now()) == START + timedelta(minutes=5)
    clock.pass_by(301)
    assert meter.may(*ME, Purpose.READ, clock.now()) is None
    assert meter.may(*ME, Purpose.QUEUE, clock.now()) == START + timedelta(minutes=30)


def test_what_was_stored_on_a_wrong_clock_is_not_learnt_for_ever():
    """Stored, then the clock was set back by a day: the row still says tomorrow."""
    meter, clock = a_meter()
    tomorrow = timedelta(days=1)
    for _ in range(5):
        meter.learn(*ME, clock.now(), quota(0, minutes=24 * 60), clock.now() + tomorrow)
        assert meter.may(*ME, Purpose.QUEUE, clock.now()) is None


def test_a_token_that_is_not_accepted_is_tried_less_and_less_by_what_polls():
    meter, clock = a_meter()
    waits = []
    for _ in range(10):
        assert meter.may(*ME, Purpose.QUEUE, clock.now()) is None
        meter.heard(*ME, clock.now(), 401)
        until = meter.may(*ME, Purpose.QUEUE, clock.now()) or clock.now()
        waits.append((until - clock.now()).total_seconds() / 60)
        assert meter.may(*ME, Purpose.SETUP, clock.now()) is None
        clock.pass_by(60 * waits[-1])
    assert waits == [0, 0, 1, 2, 4, 8, 16, 32, 60, 60]


def test_a_token_that_is_accepted_again_is_trusted_again():
    meter, clock = a_meter()
    for _ in range(5):
        meter.heard(*ME, clock.now(), 401)
    assert meter.may(*ME, Purpose.QUEUE, clock.now()) is not None
    meter.heard(*ME, clock.now(), 304)
    for _ in range(2):
        assert meter.may(*ME, Purpose.QUEUE, clock.now()) is None
        meter.heard(*ME, clock.now(), 401)
    assert meter.may(*ME, Purpose.QUEUE, clock.now()) is None
