"""What is left of a loop's limits as lines: steps, gaps, rests, thinning, from numbers alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from runs.loop_pages import burn_down_rules as rules
from runs.loop_pages.burn_down_rules import Turn, Used

BEGIN = datetime(2026, 11, 22, 12, tzinfo=UTC)
MARK = 0.8


def at(minutes: float) -> datetime:
    return BEGIN + timedelta(minutes=minutes)


def turn(number: int, ended: float, **other: Any) -> Turn:
    """A turn of a loop with a turn each minute, a dollar each."""
    values = {
        **{"used_turns": number, "used_seconds": 60.0 * number, "used_cost": float(number)},
        **{"own_seconds": 60.0, "own_cost": 1.0, **other},
    }
    return Turn(number, at(ended - 1), at(ended), **values)


def amounts(used: list[Used]) -> list[float | None]:
    return [one.amount for one in used]


@pytest.mark.parametrize(
    ("last", "most", "numbers"),
    [
        (0, 5, []),
        (1, 5, [1]),
        (2, 5, [1, 2]),
        (5, 5, [1, 2, 3, 4, 5]),
        (6, 5, [1, 2, 3, 5, 6]),
        (10_002, 5, [1, 3334, 6667, 10_001, 10_002]),
    ],
)
def test_of_many_turns_the_first_the_last_and_some_between_are_drawn(
    last: int, most: int, numbers: list[int]
) -> None:
    assert rules.picks(last, most) == numbers


def test_no_more_than_two_hundred_turns_are_drawn() -> None:
    found = rules.picks(10_000)
    assert (len(found), found[0], found[-2:]) == (200, 1, [9_999, 10_000])
    steps = {after - before for before, after in pairwise(found[:-1])}
    assert steps == {50, 51}
    assert rules.picks(200) == list(range(1, 201))


@pytest.mark.parametrize(
    ("used", "limit", "path", "mark_at", "last"),
    [
        # Ten turns allowed, two used: full until the end of the first one.
        ([(0, 0), (1, 1), (2, 2)], 10, "M0 0L500 0L500 10L1000 10L1000 20L1000 20", 80, 2),
        # Beyond the limit nothing is left.
        ([(0, 0), (1, 6), (2, 11)], 10, "M0 0L500 0L500 60L1000 60L1000 100L1000 100", 80, 11),
        # Without a limit it rises to a round number.
        ([(0, 0), (1, 1), (2, 4)], None, "M0 100L500 100L500 80L1000 80L1000 20L1000 20", None, 4),
        ([(0, 0), (1, 0)], None, "M0 100L1000 100L1000 100L1000 100", None, 0),
        # Broken where nobody told.
        ([(0, 0), (0, None), (1, 0), (2, 5)], 10, "M0 0L0 0M500 0L1000 0L1000 50L1000 50", 80, 5),
        # A clock that was set back; and all in one moment.
        (
            [(0, 0), (2, 5), (1, 8), (4, 10)],
            10,
            "M0 0L500 0L500 50L500 50L500 80L1000 80L1000 100L1000 100",
            80,
            10,
        ),
        ([(0, 0), (0, 5)], 10, "M0 0L0 0L0 50L1000 50", 80, 5),
    ],
)
def test_a_line_falls_to_zero_in_steps(
    used: list[tuple[float, float | None]],
    limit: float | None,
    path: str,
    mark_at: float | None,
    last: float,
) -> None:
    found = rules.line([Used(at(when), amount) for when, amount in used], limit, MARK)
    assert (found.path, found.mark_at, found.used) == (path, mark_at, last)
    assert found.top == (limit or (5 if last else 1))


def test_one_turn_is_a_line_from_its_begin_to_its_end() -> None:
    found = rules.line(rules.turns_used([turn(1, 1)]), 2, MARK)
    assert found.path == "M0 0L1000 0L1000 50L1000 50"


def test_a_turn_that_was_turned_away_counts_as_none_and_is_paid() -> None:
    told = [
        turn(1, 1, used_turns=0, was_refused=True),
        turn(2, 2, used_turns=1, own_cost=None, was_refused=True, used_cost=1.0),
        turn(3, 3, used_turns=1, used_cost=2.0),
    ]
    assert amounts(rules.turns_used(told)) == [0, 0, 1, 1]
    assert amounts(rules.money_used(told)) == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("own", "used", "expected"),
    [
        ((1, 1), (1, 2), [0, 1, 2]),
        ((None, 1), (0, 1), [0, None, 0, 1]),
        ((1, None), (1, 1), [0, 1, None, 1]),
        ((None, None), (0, 0), [0, None, 0, None, 0]),
    ],
)
def test_a_turn_that_told_no_cost_is_a_gap_and_not_zero(
    own: tuple[float | None, ...], used: tuple[float, ...], expected: list[float | None]
) -> None:
    pairs = zip(own, used, strict=True)
    told = [turn(n, n, own_cost=cost, used_cost=sum_) for n, (cost, sum_) in enumerate(pairs, 1)]
    found = rules.money_used(told)
    assert amounts(found) == expected
    for before, one in pairwise(found):
        assert one.amount is not None or one.since == before.since


def test_time_in_which_the_loop_rested_is_left_out() -> None:
    """An hour passes between two turns, in which no time is used."""
    found = rules.time_used([turn(1, 1), turn(2, 62, used_seconds=120.0)])
    assert amounts(found) == [0, 60, 120]
    assert rules.line(found, 240, MARK).path == "M0 0L16.1 0L16.1 25L1000 25L1000 50L1000 50"


def test_a_generation_begins_with_all_turns_and_money_and_the_time_that_is_left() -> None:
    """Half an hour was used before the loop began anew: its most time goes on."""
    told = [turn(1, 31, used_seconds=1860.0), turn(2, 32, used_seconds=1920.0)]
    assert amounts(rules.turns_used(told)) == [0, 1, 2]
    assert amounts(rules.money_used(told)) == [0, 1, 2]
    assert amounts(rules.time_used(told)) == [1800, 1860, 1920]


def test_a_loop_that_goes_on_with_its_counters_begins_where_they_stood() -> None:
    told = [turn(1, 1, used_turns=8, used_cost=9.0, own_seconds=None), turn(2, 2)]
    assert (rules.turns_used(told)[0].amount, rules.money_used(told)[0].amount) == (7, 8)
    assert rules.time_used(told)[0].amount == 60  # how long it ran is not known
