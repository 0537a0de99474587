"""Each limit at nothing, near and reached; what is not told reaches none; and what is said of it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from runs.core.states import AgentMode, Outcome, OutputKind, RunState, Trouble
from runs.dispatch import streak
from runs.dispatch.streak import Move
from runs.lifecycle.verdict import RunFacts, verdict
from runs.spending import limit_rules
from runs.spending.day_rules import Sum, Used
from runs.spending.limit_rules import Limit, Meter, Program, Terms
from runs.watch import rules as watch_rules
from tests.fakes import START

ZERO = Used(0, Decimal(0))
HUNDRED, DOLLARS = Used(100, Decimal(0)), Used(0, Decimal(10))


def near_and_reached(terms: Terms, run: Used, project: Sum, everybody: Sum) -> tuple[str, str]:
    found = limit_rules.meters(terms, run, project, everybody)
    near, reached = limit_rules.to_tell(found, ""), limit_rules.reached(found)
    return near.limit if near else "", reached.limit if reached else ""


def used(terms: Terms, tokens: int | None, cost: str | None) -> tuple[str, str]:
    """The same where everything was used by one run, today."""
    own = Used(tokens, Decimal(cost) if cost is not None else None)
    day = Sum(own.tokens or 0, own.cost or Decimal(0), 1)
    return near_and_reached(terms, own, day, day)


@pytest.mark.parametrize(
    ("terms", "limit"),
    [
        (Terms(run=HUNDRED), Limit.RUN_TOKENS),
        (Terms(project=HUNDRED), Limit.PROJECT_TOKENS),
        (Terms(everybody=HUNDRED), Limit.ALL_TOKENS),
    ],
)
@pytest.mark.parametrize(
    ("tokens", "is_near", "is_reached"),
    [(None, 0, 0), (0, 0, 0), (79, 0, 0), (80, 1, 0), (99, 1, 0), (100, 1, 1), (500, 1, 1)],
)
def test_a_limit_of_tokens_is_near_at_80_percent_and_reached_at_100(
    terms, limit, tokens, is_near, is_reached
):
    expected = (limit if is_near else "", limit if is_reached else "")
    assert used(terms, tokens, None) == expected


@pytest.mark.parametrize(
    ("terms", "limit"),
    [
        (Terms(run=DOLLARS), Limit.RUN_COST),
        (Terms(project=DOLLARS), Limit.PROJECT_COST),
        (Terms(everybody=DOLLARS), Limit.ALL_COST),
    ],
)
@pytest.mark.parametrize(
    ("cost", "is_near", "is_reached"),
    [(None, 0, 0), ("7.99", 0, 0), ("8", 1, 0), ("9.99", 1, 0), ("10", 1, 1), ("10.01", 1, 1)],
)
def test_a_limit_of_money_is_near_at_80_percent_and_reached_at_100(
    terms, limit, cost, is_near, is_reached
):
    expected = (limit if is_near else "", limit if is_reached else "")
    assert used(terms, 10**9, cost) == expected


def test_without_a_limit_nothing_is_near():
    assert used(Terms(), 10**12, "100000") == ("", "")


def test_a_limit_of_a_project_counts_that_project_and_one_of_all_counts_all():
    own, everybody = Sum(60, Decimal(6), 2), Sum(100, Decimal(10), 4)
    terms = Terms(project=Used(100, Decimal(10)), everybody=Used(100, Decimal(10)))
    assert near_and_reached(terms, Used(5), own, everybody) == (Limit.ALL_TOKENS, Limit.ALL_TOKENS)
    assert limit_rules.meters(terms, None, own, Sum())[0].percent == 60


def test_a_day_of_which_nobody_told_a_cost_is_unknown_and_not_zero():
    found = limit_rules.meters(Terms(everybody=DOLLARS), None, Sum(), Sum(500, runs=2, unpriced=2))
    assert (found[0].used, found[0].numbers) == (None, "unknown of $10.00")
    day = Sum(500, Decimal(9), runs=3, unpriced=2)
    found = limit_rules.meters(Terms(everybody=DOLLARS), None, Sum(), day)
    assert found[0].numbers == "$9.00 of $10.00, and 2 runs of unknown cost"
    assert limit_rules.meters(Terms(everybody=DOLLARS), None, Sum(), Sum())[0].percent == 0


def test_a_projects_day_knows_no_limit_of_a_run():
    assert limit_rules.meters(Terms(run=HUNDRED), None, Sum(500), Sum(500)) == ()


def test_an_agent_is_told_once_of_each_limit():
    terms = Terms(run=HUNDRED, everybody=HUNDRED)
    found = limit_rules.meters(terms, Used(90), Sum(90), Sum(90))
    told = ""
    for expected in (Limit.RUN_TOKENS, Limit.ALL_TOKENS):
        meter = limit_rules.to_tell(found, told)
        assert meter is not None
        assert meter.limit is expected
        told = f"{told} {meter.limit}".strip()
    assert limit_rules.to_tell(found, told) is None


def test_sentences_name_the_limit_and_the_numbers():
    tokens = Meter(Limit.RUN_TOKENS, Decimal(415_000), Decimal(500_000))
    money = Meter(Limit.PROJECT_COST, Decimal("5.02"), Decimal(5))
    assert limit_rules.message(tokens).startswith(
        "About 83 % of the limit of tokens for one run is used (415,000 of 500,000 tokens)."
    )
    assert limit_rules.ended(money) == (
        "the limit of money for this project today is reached: $5.02 of $5.00; its work is kept"
    )
    assert limit_rules.holds(money) == (
        "The limit of money for this project today is reached: $5.02 of $5.00. Nothing new starts "
        "until 00:00 UTC."
    )
    assert Meter(Limit.RUN_COST, None, Decimal(5)).numbers == "unknown of $5.00"
    assert Meter(Limit.RUN_TOKENS, Decimal(999), Decimal(1000)).percent == 99


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        pytest.param(
            Program("Claude Code", argv=["/usr/bin/claude", "{prompt}"]),
            ["Claude Code tells no cost, so a limit of money cannot hold for it."],
            id="Claude Code in a terminal",
        ),
        pytest.param(
            Program("Print", AgentMode.ONE_SHOT, OutputKind.CLAUDE, ["claude"]),
            [
                "Print tells its cost when it ends, so a limit of money keeps the next run from "
                "starting and ends none in the middle.",
                "Print cannot be told beforehand that a limit is near.",
            ],
            id="Claude Code in print mode",
        ),
        pytest.param(
            Program("Codex", AgentMode.ONE_SHOT, OutputKind.CODEX, ["codex"]),
            [
                "Codex tells no cost, so a limit of money cannot hold for it.",
                "Codex cannot be told beforehand that a limit is near.",
            ],
            id="Codex",
        ),
        pytest.param(
            Program("Aider", argv=["aider"]),
            [
                "Aider tells no tokens, so a limit of tokens cannot hold for it.",
                "Aider tells no cost, so a limit of money cannot hold for it.",
            ],
            id="another program",
        ),
    ],
)
def test_what_a_limit_cannot_do_with_a_program_is_said(program, expected):
    assert limit_rules.caveats(program, tokens=True, cost=True) == expected
    assert limit_rules.caveats(program, tokens=False, cost=False) == []


FACTS = {"age": START - START, "budget": START.replace(hour=13) - START}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param({"is_done": False, "alive": True}, Outcome.OVER_LIMIT, id="at work"),
        pytest.param({"is_done": True, "alive": True}, Outcome.SUCCEEDED, id="delivered"),
        pytest.param({"is_done": None, "alive": True}, None, id="could not tell"),
        pytest.param({"is_done": False, "alive": None}, None, id="tmux did not answer"),
        pytest.param({"is_done": False, "alive": False}, Outcome.DIED, id="ended by itself"),
        pytest.param(
            {"is_done": False, "alive": True, "trouble": Trouble.LIMIT},
            Outcome.OVER_LIMIT,
            id="turned away too",
        ),
        pytest.param(
            {"is_done": False, "alive": False, "trouble": Trouble.LIMIT},
            RunState.HELD,
            id="turned away, and ended",
        ),
    ],
)
def test_a_limit_that_is_reached_ends_what_is_at_work_and_takes_no_delivery_away(facts, expected):
    assert verdict(RunFacts(**FACTS, **facts, is_over_limit=True)) is expected


def test_an_end_by_a_limit_is_neutral():
    assert streak.move(Outcome.OVER_LIMIT, did_start=True) is Move.LEAVES
    assert watch_rules.counts(Outcome.OVER_LIMIT, did_start=True) is None
    assert Outcome.OVER_LIMIT.words == "over limit"
