"""On which day counts what a run used: told twice, late or never, and by a clock that was set."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from runs.spending import day_rules
from runs.spending.day_rules import Sum, Used

MONDAY, TUESDAY = date(2026, 11, 23), date(2026, 11, 24)
ONE, TWO = Decimal("1.5"), Decimal("2.25")


def after(*told: tuple[Used, date]) -> dict[date, Used]:
    """The days of a run whose numbers were told so, one after the other."""
    stored: list[list[object]] = []
    before = Used()
    for used, on in told:
        stored, before = day_rules.noted(stored, before, used, on), used
    return day_rules.read(stored)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        pytest.param([], {}, id="never"),
        pytest.param([(Used(), MONDAY)], {}, id="nothing was told"),
        pytest.param([(Used(100, ONE), MONDAY)], {MONDAY: Used(100, ONE)}, id="once"),
        pytest.param([(Used(100, ONE), MONDAY)] * 2, {MONDAY: Used(100, ONE)}, id="told twice"),
        pytest.param(
            [(Used(100), MONDAY), (Used(150), MONDAY)], {MONDAY: Used(150)}, id="more on a day"
        ),
        pytest.param(
            [(Used(100), MONDAY), (Used(150), TUESDAY)],
            {MONDAY: Used(100), TUESDAY: Used(50)},
            id="over midnight",
        ),
        pytest.param(
            [(Used(100), MONDAY), (Used(100, TWO), TUESDAY)],
            {MONDAY: Used(100), TUESDAY: Used(None, TWO)},
            id="a cost that is told at the end",
        ),
        pytest.param(
            [(Used(0, Decimal(0)), MONDAY)], {MONDAY: Used(0, Decimal(0))}, id="zero is a number"
        ),
        pytest.param(
            [(Used(100), MONDAY), (Used(130), TUESDAY), (Used(170), MONDAY)],
            {MONDAY: Used(140), TUESDAY: Used(30)},
            id="the clock was set forward and back",
        ),
        pytest.param(
            [(Used(100), TUESDAY), (Used(130), MONDAY), (Used(170), TUESDAY)],
            {MONDAY: Used(30), TUESDAY: Used(140)},
            id="the clock was set back and forward",
        ),
        pytest.param(
            [(Used(100), MONDAY), (Used(80), MONDAY)], {MONDAY: Used(80)}, id="told to be less"
        ),
    ],
)
def test_what_a_run_used_falls_on_the_day_on_which_it_was_told(told, expected):
    assert after(*told) == expected


@pytest.mark.parametrize(
    "odd", [None, {}, "x", [["never", 1, None]], [[1]], [["2026-11-23", "x", None]]]
)
def test_what_a_column_should_not_hold_counts_as_nothing(odd):
    assert day_rules.read(odd) == {}


def test_days_are_those_of_utc():
    at = datetime(2026, 11, 24, 0, 30, tzinfo=timezone(timedelta(hours=2)))
    assert day_rules.day_of(at) == MONDAY
    assert day_rules.day_of(datetime(2026, 11, 24, tzinfo=UTC)) == TUESDAY


def test_a_day_is_the_sum_of_its_runs_and_says_of_how_many_nobody_knows_the_cost():
    rows = [
        (1, [["2026-11-23", 100, "1.5"]]),
        (1, [["2026-11-23", 50, None]]),
        (2, [["2026-11-22", 9, None], ["2026-11-23", None, "2"]]),
        (3, [["2026-11-22", 7, "1"]]),
        (4, []),
    ]
    sums = day_rules.summed(rows, MONDAY)
    assert sums == {1: Sum(150, ONE, 2, 0, 1), 2: Sum(0, Decimal(2), 1, 1, 0)}
    assert day_rules.total(sums) == Sum(150, Decimal("3.5"), 3, 1, 1)


def test_only_the_last_days_of_a_run_are_kept():
    told = [(Used(n), MONDAY + timedelta(n)) for n in range(1, 40)]
    assert list(after(*told)) == [MONDAY + timedelta(n) for n in range(26, 40)]


@pytest.mark.parametrize(
    ("into", "out", "expected"), [(None, None, None), (5, None, 5), (None, 3, 3), (5, 3, 8)]
)
def test_tokens_of_a_limit_are_all_that_went_in_and_came_out(into, out, expected):
    assert day_rules.tokens(into, out) == expected
