"""Scales, lanes, stairs and weeks, from numbers alone."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from runs.history import plot_rules
from runs.history.plot_rules import Span

BEGIN = datetime(2026, 11, 22, 12, tzinfo=UTC)
END = BEGIN + timedelta(hours=10)


def at(hours: float) -> datetime:
    return BEGIN + timedelta(hours=hours)


@pytest.mark.parametrize(
    ("most", "top"),
    [(0, 1), (1, 1), (1.2, 2), (3, 5), (6, 10), (100, 100), (101, 200), (0.04, 0.05)],
)
def test_a_scale_ends_at_a_round_number(most: float, top: float) -> None:
    assert plot_rules.ceiling(most) == pytest.approx(top)


@pytest.mark.parametrize(("hours", "x"), [(0, 0), (5, 500), (10, 1000), (-1, 0), (99, 1000)])
def test_a_moment_stands_within_the_plot(hours: float, x: float) -> None:
    assert plot_rules.across(at(hours), BEGIN, END) == x


@pytest.mark.parametrize(
    ("value", "top", "y"), [(0, 10, 100), (10, 10, 0), (99, 10, 0), (5, 0, 100)]
)
def test_a_value_stands_within_the_plot(value: float, top: float, y: float) -> None:
    assert plot_rules.up(value, top) == y


def test_a_path_is_broken_where_a_point_is_missing() -> None:
    assert plot_rules.path([(0, 1), (2, 3.5), None, (4, 5)]) == "M0 1L2 3.5M4 5"
    assert plot_rules.path([]) == ""


def test_lanes_show_each_slot_with_its_waits() -> None:
    spans = [
        Span(2, at(1), at(2), "good", "a", waits=[(at(1), at(1.5))]),
        Span(1, at(-5), None, "live", "b", waits=[(at(9), None)]),
        Span(2, at(3), at(3), "bad", "c"),
    ]
    one, two = plot_rules.lanes(spans, BEGIN, END)
    assert (one.slot, [(bar.x, bar.width) for bar in one.bars]) == (1, [(0, 1000)])
    assert [(bar.x, bar.width) for bar in one.waits] == [(900, 100)]
    assert [(bar.x, bar.width) for bar in two.bars] == [(100, 100), (300, 2)]
    assert [(bar.x, bar.width) for bar in two.waits] == [(100, 50)]


@pytest.mark.parametrize(
    ("end", "rests", "left"),
    [
        (None, [], [(0, None)]),
        (5, [(1, 2), (3, 4)], [(0, 1), (2, 3), (4, 5)]),
        (5, [(0, 2)], [(2, 5)]),
        (5, [(2, None)], [(0, 2)]),
        (None, [(0, None)], []),
        (2, [(1, 2)], [(0, 1)]),
        (0, [], [(0, 0)]),
    ],
)
def test_a_run_has_no_slot_while_it_is_held(
    end: float | None,
    rests: list[tuple[float, float | None]],
    left: list[tuple[float, float | None]],
) -> None:
    def moved(found: list[tuple[float, float | None]]) -> list[plot_rules.Time]:
        return [(at(a), None if b is None else at(b)) for a, b in found]

    until = None if end is None else at(end)
    assert plot_rules.without(at(0), until, moved(rests)) == moved(left)


def test_times_begin_once_and_end_once() -> None:
    told = [("x", at(0)), ("b", at(1)), ("b", at(2)), ("x", at(3)), ("x", at(4)), ("b", at(5))]
    assert plot_rules.times(told, "b", "x") == [(at(1), at(3)), (at(5), None)]


@pytest.mark.parametrize(
    ("part", "whole", "percent"), [(0, 3, 0), (2, 3, 66), (399, 400, 99), (4, 4, 100)]
)
def test_only_all_of_them_are_a_hundred_per_cent(part: int, whole: int, percent: int) -> None:
    assert plot_rules.share(part, whole) == percent


def test_slots_in_use_change_as_runs_begin_and_end() -> None:
    spans = [
        Span(1, at(-1), at(2), "", ""),
        Span(2, at(1), at(2), "", ""),
        Span(1, at(2), None, "", ""),
    ]
    steps = plot_rules.in_use(spans, BEGIN, END)
    assert steps == [(at(0), 1), (at(1), 2), (at(2), 1)]
    assert plot_rules.stairs(steps, 2, BEGIN, END) == "M0 50L100 50L100 0L200 0L200 50L1000 50"
    assert plot_rules.in_use([], BEGIN, END) == [(BEGIN, 0)]


def test_stairs_are_broken_until_the_number_is_known_again() -> None:
    steps = [(at(0), 1.0), (at(1), None), (at(2), 1.5)]
    assert plot_rules.stairs(steps, 2, BEGIN, END) == "M0 50L100 50M200 25L1000 25"


def test_weeks_begin_on_mondays_and_tell_nothing_of_none() -> None:
    monday = date(2026, 11, 23)
    ended = [
        (datetime(2026, 11, 22, 23, tzinfo=UTC), True, 60),
        (datetime(2026, 11, 16, 0, tzinfo=UTC), False, 180),
        (datetime(2026, 11, 25, 0, tzinfo=UTC), True, None),
        (datetime(2026, 1, 1, tzinfo=UTC), True, 5),
    ]
    first, second, third = plot_rules.weeks(ended, date(2026, 11, 26), 3)
    assert (first.runs, first.percent, first.minutes) == (0, None, None)
    assert (second.runs, second.percent, second.minutes) == (2, 50, 2.0)
    assert (third.monday, third.runs, third.percent, third.minutes) == (monday, 1, 100, None)
