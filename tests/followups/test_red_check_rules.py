"""What follows from the checks of a delivered pull request: a case for each rule."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from runs.followups import red_check_rules as rules
from runs.followups.red_check_rules import Act, CheckFacts, Step, WatchState
from trackers.base import Check, CheckState, PullState

GOOD = Check("lint", CheckState.PASSED)
BAD = Check("unit", CheckState.FAILED, "https://forge/unit")
RUNS = Check("slow", CheckState.RUNNING)
MINUTE = timedelta(minutes=1)
OPEN = CheckFacts(True, PullState.OPEN, (GOOD,), MINUTE, 30 * MINUTE)
WAIT, SEND = Step(Act.WAIT), Step(Act.SEND_BACK)


def end(state: WatchState) -> Step:
    return Step(Act.END, state)


@pytest.mark.parametrize(
    ("change", "step"),
    [
        pytest.param({}, end(WatchState.PASSED), id="all passed"),
        pytest.param({"is_on": False, "checks": (BAD,)}, end(WatchState.OVER), id="turned off"),
        pytest.param({"is_worked_on": True, "checks": (BAD,)}, end(WatchState.OVER), id="a later run"),
        pytest.param({"state": PullState.MERGED, "checks": (BAD,)}, end(WatchState.OVER), id="merged"),
        pytest.param({"state": PullState.CLOSED, "checks": (BAD,)}, end(WatchState.OVER), id="closed"),
        pytest.param({"state": None}, WAIT, id="pull request unknown"),
        pytest.param({"checks": None}, WAIT, id="checks unknown"),
        pytest.param({"checks": None, "since_head": rules.GIVE_UP_AFTER - MINUTE}, WAIT, id="unknown for long"),
        pytest.param({"checks": None, "since_head": rules.GIVE_UP_AFTER}, end(WatchState.OVER), id="never known"),
        pytest.param({"checks": (), "since_head": 29 * MINUTE}, WAIT, id="none yet"),
        pytest.param({"checks": (), "since_head": 30 * MINUTE}, end(WatchState.NO_CHECKS), id="none at all"),
        pytest.param({"checks": (GOOD, RUNS)}, WAIT, id="one runs"),
        pytest.param({"checks": (BAD, RUNS)}, WAIT, id="one failed, one runs"),
        pytest.param({"checks": (BAD, RUNS), "since_head": 59 * MINUTE}, WAIT, id="one runs long"),
        pytest.param({"checks": (BAD, RUNS), "since_head": 60 * MINUTE}, SEND, id="one runs for too long"),
        pytest.param({"checks": (GOOD, RUNS), "since_head": 60 * MINUTE}, WAIT, id="nothing failed so far"),
        pytest.param({"checks": (RUNS,), "since_head": rules.GIVE_UP_AFTER}, end(WatchState.OVER), id="one never ends"),
        pytest.param({"checks": (GOOD, BAD)}, SEND, id="one failed"),
        pytest.param({"checks": (BAD,), "rounds": 2}, SEND, id="the last round"),
        pytest.param({"checks": (BAD,), "rounds": 3}, end(WatchState.RED), id="no round left"),
        pytest.param({"checks": (BAD,), "since_head": rules.GIVE_UP_AFTER - MINUTE}, SEND, id="no slot for long"),
        pytest.param({"checks": (BAD,), "since_head": rules.GIVE_UP_AFTER}, end(WatchState.RED), id="never a slot"),
        pytest.param({"rounds": 3}, end(WatchState.PASSED), id="passed in the last round"),
    ],
)  # fmt: skip
def test_the_first_rule_that_holds_decides(change: dict[str, object], step: Step) -> None:
    assert rules.decide(replace(OPEN, **change)) == step


@pytest.mark.parametrize(
    ("step", "checks", "age", "delay"),
    [
        (WAIT, (GOOD, RUNS), MINUTE, rules.SOON),
        (WAIT, (), MINUTE, rules.LATER),
        (WAIT, (GOOD,), MINUTE, rules.LATER),
        (WAIT, None, MINUTE, rules.LATER),
        (end(WatchState.PASSED), (GOOD,), MINUTE, None),
        (end(WatchState.OVER), (RUNS,), MINUTE, None),
        (end(WatchState.RED), (BAD,), MINUTE, rules.SELDOM),
        (end(WatchState.RED), (BAD, RUNS), rules.RED_FOR - MINUTE, rules.SELDOM),
        (end(WatchState.RED), (BAD,), rules.RED_FOR, None),
    ],
)
def test_when_it_looks_again(
    step: Step, checks: tuple[Check, ...] | None, age: timedelta, delay: timedelta | None
) -> None:
    assert rules.choose_delay(step, checks, age) == delay


def test_the_agent_is_told_which_checks_failed_where_and_how_often_it_may_try() -> None:
    failed = rules.list_failed([GOOD, BAD, RUNS, Check("Build", CheckState.FAILED)])
    told = rules.write_message(8, "a" * 40, failed, 2)
    assert told.startswith(
        "The checks of pull request 8 failed on commit aaaaaaaaaaaa (attempt 2 of 3):\n"
        "- Build\n- unit: https://forge/unit\n\n"
    )
    assert "lint" not in told


def test_many_long_names_are_cut() -> None:
    failed = [Check("n" * 900, CheckState.FAILED)] * 30
    assert len(rules.write_message(8, "a" * 40, failed, 1)) < 2000
    assert rules.name_checks(["n" * 900] * 12).endswith("n and 2 more")
    assert "more" not in rules.name_checks(["n"] * 10)
    assert "more" not in rules.write_message(8, "a" * 40, failed[:10], 1)
    assert rules.name_checks(["a", "b"]) == "a, b"
