"""When a visit begins, and the sum of what ended meanwhile: pure rules and their tables."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from runs.core.states import Outcome
from runs.overview.away_rules import Ended, begin, is_due, summary, was_away
from tests.fakes import START

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("ago", "due", "away"),
    [
        pytest.param(None, True, False, id="never here before"),
        pytest.param(timedelta(0), False, False, id="just now"),
        pytest.param(5 * MINUTE - timedelta(seconds=1), False, False, id="noted a moment ago"),
        pytest.param(5 * MINUTE, True, False, id="to be noted again"),
        pytest.param(30 * MINUTE, True, False, id="half an hour"),
        pytest.param(30 * MINUTE + timedelta(seconds=1), True, True, id="longer"),
        pytest.param(-MINUTE, True, False, id="the clock was set back"),
    ],
)
def test_when_a_visit_begins(ago, due, away) -> None:
    seen = None if ago is None else START - ago
    assert (is_due(seen, START), was_away(seen, START)) == (due, away)


def test_after_very_long_only_the_last_weeks_are_told() -> None:
    assert begin(START - timedelta(days=400), START) == START - timedelta(days=60)
    assert begin(START - timedelta(days=4), START) == START - timedelta(days=4)


@pytest.mark.row("C-46", level="contract")
def test_the_sum_of_what_ended() -> None:
    found = summary(
        [
            Ended("stopped", 1),
            Ended("died", 2, cost=None, tokens=50),
            Ended("succeeded", 3, pulls=3, priced=2, cost=Decimal("1.25"), tokens=1000),
            Ended("odd", 1),
        ]
    )
    assert found.counts == [(Outcome.SUCCEEDED, 3), (Outcome.DIED, 2), (Outcome.STOPPED, 1)]
    assert (found.runs, found.pulls) == (7, 3)
    assert (found.cost, found.priced, found.tokens_words) == (Decimal("1.25"), 2, "1 k")
    nothing = summary([Ended("succeeded", 2)])
    assert (nothing.cost, nothing.tokens) == (None, None)
    assert summary([]).runs == 0
