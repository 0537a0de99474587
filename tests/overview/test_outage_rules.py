"""Outages out of what was told: when they began and ended, what waited, and who has to care."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs.overview.outage_rules import Outage, Told, What, is_calm, outages, with_starts
from tests.fakes import START

NIGHT = START + timedelta(hours=8)
NAMES = {1: "billing", 2: "docs", 3: "search"}


def at(hours: float):
    return START + timedelta(hours=hours)


def down(source: int, hours: float, what: What = What.TRACKER) -> Told:
    return Told(what, source, NAMES[source], at(hours), is_down=True)


def up(source: int, hours: float, what: What = What.TRACKER) -> Told:
    return Told(what, source, NAMES[source], at(hours), is_down=False)


def said(found: list[Outage]) -> list[tuple[str, float | None, float | None]]:
    def hours(when):
        return None if when is None else (when - START) / timedelta(hours=1)

    return [(one.listed, hours(one.since), hours(one.until)) for one in found]


@pytest.mark.parametrize(
    ("told", "now", "expected"),
    [
        pytest.param([], (), [], id="a quiet night"),
        pytest.param([down(1, 1), up(1, 3)], (), [("billing", 1, 3)], id="down and back"),
        pytest.param([up(1, 3), down(1, 1)], (), [("billing", 1, 3)], id="told in any order"),
        pytest.param([down(1, 1), up(1, 1.05)], (), [], id="too short for anybody to mind"),
        pytest.param([up(1, 3)], (), [("billing", None, 3)], id="it had begun before"),
        pytest.param([down(1, 1)], (1,), [("billing", 1, None)], id="it goes on"),
        pytest.param([down(1, 1)], (), [], id="never said to be back, and not down now"),
        pytest.param([down(1, 9)], (1,), [], id="after that time"),
        pytest.param(
            [down(1, 7), up(1, 9)], (), [("billing", 7, 9)], id="it ended after that time"
        ),
        pytest.param(
            [down(1, 1), down(1, 1.5), up(1, 3), up(1, 4)], (), [("billing", 1, 4)],
            id="tracker and repository of one project",
        ),
        pytest.param(
            [down(1, 1), up(1, 2), down(1, 5), up(1, 6)], (), [("billing", 1, 2), ("billing", 5, 6)],
            id="twice",
        ),
        pytest.param(
            [down(1, 1), down(2, 1.2), up(2, 3), up(1, 2)], (), [("billing and docs", 1, 3)],
            id="two at once",
        ),
        pytest.param(
            [down(1, 1), down(2, 1), down(3, 1), up(1, 2), up(2, 2)], (3,),
            [("billing, docs and search", 1, None)], id="one of three is down still",
        ),
        pytest.param(
            [down(1, 1), up(1, 2), down(2, 1, What.AGENT), up(2, 2, What.AGENT)], (),
            [("billing", 1, 2), ("docs", 1, 2)], id="a tracker and an account stay apart",
        ),
    ],
)  # fmt: skip
def test_outages_of_a_night(told, now, expected) -> None:
    found = outages(told, START, NIGHT, {What.TRACKER: frozenset(now)})
    assert said(found) == expected


@pytest.mark.parametrize(
    ("starts", "waited"),
    [
        pytest.param([], 0, id="none"),
        pytest.param([(1, 3), (1, 3.1)], 2, id="as soon as it answered"),
        pytest.param([(2, 3)], 0, id="of another project"),
        pytest.param([(1, 2.9), (1, 3.25)], 0, id="before it, and long after"),
    ],
)
def test_starts_that_waited_for_a_tracker(starts, waited) -> None:
    found = outages([down(1, 1), up(1, 3)], START, NIGHT, {})
    told = with_starts(found, [(source, at(hours)) for source, hours in starts])
    assert [one.waited for one in told] == [waited]


def test_of_an_account_the_runs_waited_that_were_held() -> None:
    told = [down(n, 1, What.AGENT) for n in NAMES] + [up(n, 2, What.AGENT) for n in NAMES]
    (found,) = with_starts(outages(told, START, NIGHT, {}), [])
    assert (found.is_agent, found.waited) == (True, 3)


def test_starts_wait_while_it_goes_on_and_are_not_counted() -> None:
    found = outages([down(1, 1)], START, NIGHT, {What.TRACKER: frozenset({1})})
    assert with_starts(found, [(1, at(2))])[0].waited == 0


@pytest.mark.parametrize(
    ("since", "calm"),
    [
        pytest.param(None, False, id="it answers, or a person has to do something"),
        pytest.param(timedelta(0), True, id="just now"),
        pytest.param(timedelta(hours=6) - timedelta(seconds=1), True, id="for hours"),
        pytest.param(timedelta(hours=6), False, id="too long to pass by itself"),
        pytest.param(-timedelta(hours=1), False, id="the clock was set back"),
    ],
)
def test_when_nobody_has_to_do_anything(since, calm) -> None:
    assert is_calm(None if since is None else START - since, START) is calm
