"""When the ready queue of a forge is asked for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from runs.forges import cadence_rules
from runs.forges.cadence_rules import BY_BUDGET, BY_FULL, BY_HOOK, BY_QUOTA, PollFacts, PullFacts

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
S45, MIN4, MIN30 = timedelta(seconds=45), timedelta(minutes=4), timedelta(minutes=30)
MIN5, MIN10 = timedelta(minutes=5), timedelta(minutes=10)


def _ago(**delta: float) -> datetime:
    return NOW - timedelta(**delta)


QUIET = {"has_work": False, "issues_hooked_at": _ago(days=1)}


def _facts(**more: Any) -> PollFacts:
    """Asked and answered a minute ago."""
    told = {"asked_at": _ago(minutes=1), "seen_at": _ago(minutes=1), **more}
    return PollFacts(**{"interval": S45, "pace": S45, **told})


@pytest.mark.row("MALA-W-76", level="pure")
@pytest.mark.parametrize(
    ("facts", "every", "why"),
    [
        pytest.param(_facts(), S45, "", id="plain"),
        pytest.param(_facts(pace=MIN4), MIN4, BY_QUOTA, id="short of quota"),
        pytest.param(_facts(**QUIET), MIN30, BY_HOOK, id="hooks, nothing waits"),
        pytest.param(_facts(**QUIET, pace=MIN30 * 2), MIN30 * 2, BY_HOOK, id="hooks, no quota"),
        pytest.param(
            _facts(issues_hooked_at=_ago(days=1), has_work=True), S45, "", id="hooks and work"
        ),
        pytest.param(
            _facts(has_work=False, hooked_at=_ago(days=1)),
            S45,
            "",
            id="hooks that tell of no issues",
        ),
        pytest.param(_facts(issues_hooked_at=_ago(days=1)), S45, "", id="hooks, work not counted"),
        pytest.param(
            _facts(issues_hooked_at=_ago(days=1), has_work=True, is_full=True),
            MIN30,
            BY_FULL,
            id="hooks, and as many runs as may be",
        ),
        pytest.param(_facts(is_over=True), MIN5, BY_BUDGET, id="its budget is used up"),
        pytest.param(_facts(**QUIET, is_over=True), MIN30, BY_HOOK, id="hooks, budget used up"),
        pytest.param(
            _facts(is_over=True, watched_at=_ago(seconds=1)), MIN5, BY_BUDGET, id="that comes first"
        ),
        pytest.param(_facts(is_wanted=False), MIN10, "", id="nothing starts by itself"),
        pytest.param(
            _facts(is_wanted=False, watched_at=_ago(seconds=1)), S45, "", id="but a page is open"
        ),
        pytest.param(_facts(has_work=True, is_full=True), MIN5, BY_FULL, id="no hooks, and full"),
        pytest.param(
            _facts(**QUIET, watched_at=_ago(seconds=60)), S45, "", id="hooks, and a page is open"
        ),
        pytest.param(
            _facts(**QUIET, watched_at=_ago(seconds=80)), MIN30, BY_HOOK, id="a page was closed"
        ),
        pytest.param(
            _facts(**QUIET, watched_at=_ago(seconds=1), pace=MIN4),
            MIN4,
            BY_QUOTA,
            id="a page is open, and little quota is left",
        ),
        pytest.param(_facts(**QUIET, seen_at=None), S45, "", id="hooks, never answered"),
        pytest.param(
            _facts(has_work=False, issues_hooked_at=_ago(days=7)), S45, "", id="no hook for a week"
        ),
        pytest.param(
            _facts(has_work=False, issues_hooked_at=_ago(days=6, hours=23)),
            MIN30,
            BY_HOOK,
            id="just",
        ),
        pytest.param(_facts(has_work=False), S45, "", id="no hooks, nothing waits"),
    ],
)
def test_how_often_it_is_asked(facts: PollFacts, every: timedelta, why: str) -> None:
    assert cadence_rules.cadence(facts, NOW) == cadence_rules.Cadence(every, why)


@pytest.mark.row("MALA-W-76", level="pure")
@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(_facts(asked_at=None, seen_at=None), True, id="never asked"),
        pytest.param(_facts(asked_at=_ago(seconds=45)), True, id="an interval ago"),
        pytest.param(_facts(asked_at=_ago(seconds=43)), True, id="a pass that came early"),
        pytest.param(_facts(asked_at=_ago(seconds=20)), False, id="twice within one interval"),
        pytest.param(_facts(asked_at=_ago(seconds=-600)), True, id="the clock was set back"),
        pytest.param(_facts(pace=MIN4), False, id="slowed by the quota"),
        pytest.param(_facts(pace=MIN4, asked_at=_ago(minutes=4)), True, id="slowed, and over"),
        pytest.param(_facts(**QUIET, asked_at=_ago(minutes=20)), False, id="trusted to the hook"),
        pytest.param(_facts(**QUIET, asked_at=_ago(minutes=30)), True, id="trusted long enough"),
        pytest.param(
            _facts(has_work=False, hooked_at=_ago(seconds=1), asked_at=_ago(seconds=10)),
            True,
            id="woken by a hook",
        ),
        pytest.param(
            _facts(has_work=False, hooked_at=_ago(seconds=1), asked_at=_ago(seconds=4)),
            False,
            id="woken by a heap of hooks",
        ),
    ],
)
def test_when_it_is_asked(facts: PollFacts, expected: bool) -> None:
    assert cadence_rules.is_due(facts, NOW) is expected


def _pulls(**more: Any) -> PullFacts:
    """Asked for twenty seconds ago."""
    return PullFacts(**{"interval": S45, "asked_at": _ago(seconds=20), **more})


@pytest.mark.parametrize(
    ("facts", "every"),
    [
        pytest.param(_pulls(), MIN5, id="none of ours is open"),
        pytest.param(_pulls(has_open=True), S45, id="one waits for a review"),
        pytest.param(_pulls(is_live=True), timedelta(0), id="a run: in each look"),
        pytest.param(_pulls(has_open=True, hooked_at=_ago(days=1)), MIN30, id="a hook tells"),
        pytest.param(_pulls(is_live=True, hooked_at=_ago(days=1)), MIN5, id="a run and a hook"),
        pytest.param(_pulls(is_live=True, hooked_at=_ago(days=8)), timedelta(0), id="an old hook"),
        pytest.param(
            _pulls(hooked_at=_ago(days=1), watched_at=_ago(seconds=9)), S45, id="a page is open"
        ),
    ],
)
def test_how_often_pull_requests_are_asked_for(facts: PullFacts, every: timedelta) -> None:
    assert cadence_rules.pulls_every(facts, NOW) == every


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(_pulls(asked_at=None), True, id="never asked"),
        pytest.param(_pulls(asked_at=_ago(seconds=-9)), True, id="the clock was set back"),
        pytest.param(_pulls(is_live=True), True, id="a run"),
        pytest.param(_pulls(has_open=True), False, id="one is open, asked just now"),
        pytest.param(_pulls(has_open=True, asked_at=_ago(seconds=30)), False, id="a look too soon"),
        pytest.param(_pulls(has_open=True, asked_at=_ago(seconds=40)), True, id="one is open"),
        pytest.param(
            _pulls(has_open=True, asked_at=_ago(seconds=30), watched_at=_ago(seconds=1)),
            True,
            id="somebody waits for it",
        ),
        pytest.param(_pulls(asked_at=_ago(minutes=4)), False, id="none is open"),
        pytest.param(_pulls(hooked_at=_ago(seconds=2)), True, id="told just now"),
        pytest.param(
            _pulls(hooked_at=_ago(seconds=1), asked_at=_ago(seconds=3)), False, id="a heap of hooks"
        ),
        pytest.param(_pulls(hooked_at=_ago(seconds=22)), True, id="told, the list may lag"),
        pytest.param(
            _pulls(is_live=True, hooked_at=_ago(minutes=2)), False, id="a run, and nothing was told"
        ),
        pytest.param(
            _pulls(is_live=True, hooked_at=_ago(days=1), asked_at=_ago(minutes=5)),
            True,
            id="a run, and nothing was told for long",
        ),
        pytest.param(_pulls(kicked_at=_ago(seconds=1)), True, id="somebody opened its page"),
    ],
)
def test_when_pull_requests_are_asked_for(facts: PullFacts, expected: bool) -> None:
    assert cadence_rules.are_pulls_due(facts, NOW) is expected
