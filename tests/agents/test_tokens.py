"""Tokens of an agent with subagents: at its end, when it was stopped, and when it went on later."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from runs.core.states import Outcome, OutputKind
from runs.lifecycle import stop
from runs.transcript import record, reports, token_usage
from runs.transcript.record import Reading
from runs.transcript.reports import Report
from runs.transcript.token_usage import LISTED, Spent, Tokens
from tests.agents.house import PRINT, hold
from tests.agents.script import Say, Shell, Tool
from tests.fakes import START
from tests.patience import PATIENCE
from tests.transcript import agent_lines as x

# What Claude Code 2.1.197 printed of seven calls: three of its own, two of each of two subagents.
STREAM = Path(__file__).with_name("claude_subagents.jsonl").read_bytes()
UNENDED = STREAM[: STREAM.rstrip().rindex(b"\n") + 1]
CALL = Tokens(127, 20, 50)


def _read(raw: bytes, reading: Reading | None = None) -> Report:
    return record.read(OutputKind.CLAUDE, reading or Reading(), raw, START).report


def _sums(report: Report) -> tuple[int | None, int | None, int | None]:
    return report.tokens_in, report.tokens_cached, report.tokens_out


def test_the_end_tells_what_subagents_used_too() -> None:
    report = _read(STREAM)
    assert _sums(report) == (7 * CALL.into, 7 * CALL.cached, 7 * CALL.out)
    assert (report.turns, report.cost_usd) == (4, Decimal("0.012626"))


def test_without_an_end_every_message_counts_once() -> None:
    """Of five messages that were streamed the beginning is told, of two that were not all."""
    report = _read(UNENDED)
    assert _sums(report) == (7 * CALL.into, 7 * CALL.cached, 5 * 1 + 2 * CALL.out)
    assert report.cost_usd is None
    assert report.turns == 3


@pytest.mark.parametrize("raw", [STREAM, UNENDED], ids=["ended", "not ended"])
def test_sums_do_not_depend_on_how_the_bytes_were_cut_or_who_reads_on(raw: bytes) -> None:
    whole = _read(raw)
    for size in (1, 7, 64, 1000):
        reading = Reading()
        while reading.output_read < len(raw):
            at = reading.output_read
            after = record.read(OutputKind.CLAUDE, reading, raw[at : at + size], START)
            size = size * 2 if after.output_read == at else size
            stored = json.loads(json.dumps(token_usage.to_json(after.report.used_tokens)))
            kept = replace(after.report, used_tokens=token_usage.from_json(stored))
            reading = replace(after, report=kept)
        assert reading.report == whole


def test_messages_that_come_between_are_not_counted_again() -> None:
    spent = Spent()
    for _ in range(3):
        for number in range(LISTED):
            spent = token_usage.told(spent, f"m{number}", Tokens(10, 1, number))
    assert spent.total == Tokens(10 * LISTED, LISTED, sum(range(LISTED)))
    for number in range(1000):
        spent = token_usage.told(spent, f"n{number}", Tokens(1, 0, 0))
    assert spent.total.into == 10 * LISTED + 1000
    assert len(spent.listed) == LISTED


def test_what_is_told_last_of_a_message_counts() -> None:
    spent = token_usage.told(token_usage.told(Spent(), "m", Tokens(1, 0, 1)), "m", Tokens(1, 0, 50))
    assert spent.total == Tokens(1, 0, 50)


def test_a_program_that_goes_on_later_adds_to_what_was_used() -> None:
    first = reports.again(reports.again(_read(STREAM)))
    second = _read(STREAM, Reading(first))
    assert _sums(second) == (14 * CALL.into, 14 * CALL.cached, 14 * CALL.out)
    assert (second.turns, second.cost_usd) == (8, Decimal("0.025252"))
    assert _sums(_read(UNENDED, Reading(first)))[0] == 14 * CALL.into


def test_an_end_that_tells_less_takes_nothing_back() -> None:
    """A program that gave up tells of nothing used."""
    zero = {"input_tokens": 0, "output_tokens": 0}
    report = _read(UNENDED + x.written(x.claude_result(usage=zero, modelUsage={}, is_error=True)))
    assert report.tokens_in == 7 * CALL.into


@pytest.mark.parametrize("odd", [None, [], "x", [1, 2], [[1], [2], "x", "y", []], {"a": 1}])
def test_what_a_column_should_not_hold_counts_as_nothing(odd: object) -> None:
    assert token_usage.from_json(odd) == Spent()


def _with_subagent(house):  # type: ignore[no-untyped-def]
    give = {"description": "part", "prompt": "PARTWORK", "subagent_type": "general-purpose"}
    return house.model.script(Tool("Agent", give), hold(), Say("All is done."))


def test_real_claude_code_tells_the_tokens_of_its_subagent(house):
    _with_subagent(house).go_on(
        Tool(
            "Agent",
            {"description": "part", "prompt": "PARTWORK", "subagent_type": "general-purpose"},
        ),
        Say("All is done."),
    )
    house.model.script(Shell("echo part"), Say("The part is done."), word="PARTWORK")
    run = house.until_over(house.start(house.project(house.profile(PRINT))), PATIENCE)
    assert len(house.model.asked("PARTWORK")) == 2, house.told(run)
    asked = len([one for one in house.model.all_asked() if one.path == "/v1/messages"])
    assert (run.tokens_in, run.tokens_cached, run.tokens_out) == (
        120 * asked,
        20 * asked,
        10 * asked,
    )
    assert run.cost_usd is not None


def test_real_claude_code_that_is_stopped_leaves_its_tokens_and_no_cost(house):
    _with_subagent(house)
    house.model.script(Shell("echo part"), Say("The part is done."), word="PARTWORK")
    run = house.start(house.project(house.profile(PRINT)))
    run = house.until(run, lambda run: (run.tokens_in or 0) >= 120 * 4, PATIENCE)
    assert stop.stop(house.real.lab, run, by="anna")
    run = house.until_over(run, PATIENCE)
    assert run.outcome == Outcome.STOPPED
    assert (run.tokens_in, run.tokens_cached) == (120 * 4, 20 * 4), house.told(run)
    assert run.cost_usd is None
    assert run.tokens_out
