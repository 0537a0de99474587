"""What an agent's own record tells of tokens: each message once, whatever becomes of the file."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from runs.transcript import usage_rules
from runs.transcript.record_rules import Form, OwnRecord
from runs.transcript.token_usage import Tokens
from runs.transcript.usage_rules import Place, Usage
from tests.fakes import START

MAIN = OwnRecord(Form.CLAUDE, "s-1", "/base", ("x", "s-1.jsonl"))
AGENT = OwnRecord(Form.CLAUDE, "s-1", "/base", ("x", "a.jsonl"), agent="a-1")
THREAD = OwnRecord(Form.CODEX, "t-1", "/base", ("t-1.jsonl",))
SINCE = START.timestamp()
TOLD = {"input_tokens": 100, "cache_read_input_tokens": 20, "output_tokens": 10}


def at(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")


def message(ident: str, seconds: float = 5, out: int = 10, **more: Any) -> dict[str, Any]:
    usage = {**TOLD, "output_tokens": out}
    said = {"id": ident, "model": "opus", "usage": usage}
    return {"type": "assistant", "timestamp": at(seconds), "message": said, **more}


def thread(into: int, seconds: float = 5, window: int | None = 1000) -> dict[str, Any]:
    total = {"input_tokens": into, "cached_input_tokens": into // 10, "output_tokens": into // 20}
    last = {"input_tokens": 77, "cached_input_tokens": 7, "output_tokens": 1}
    info = {"total_token_usage": total, "last_token_usage": last, "model_context_window": window}
    told = {"type": "token_count", "info": info}
    return {"type": "event_msg", "timestamp": at(seconds), "payload": told}


def turn(seconds: float = 5) -> dict[str, Any]:
    payload = {"type": "task_started", "turn_id": "x"}
    return {"type": "event_msg", "timestamp": at(seconds), "payload": payload}


def written(*lines: object) -> bytes:
    return b"".join(
        one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in lines
    )


def look(usage: Usage, raw: bytes, record: OwnRecord = MAIN, limit: int = 10_000) -> Usage:
    """One look at a record that is `raw` by now, and what a restarted worker finds stored of it."""
    place = usage.place(record, SINCE)
    begin = usage_rules.start(place)
    if not usage_rules.is_same(place, raw[begin : begin + limit], len(raw)):
        place, begin = usage_rules.rewritten(place), 0
    after = usage_rules.read(usage, record, place, raw[begin : begin + limit])
    stored = usage_rules.from_json(json.loads(json.dumps(usage_rules.to_json(after))))
    assert stored == after
    return stored


def sums(usage: Usage) -> tuple[int, int, int, int]:
    total = usage.spent.total
    return usage.turns, total.into, total.cached, total.out


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param([], (0, 0, 0, 0), id="nothing"),
        pytest.param([message("m1"), message("m2")], (2, 240, 40, 20), id="two messages"),
        pytest.param(
            [message("m1", out=1), message("m1"), message("m1")],
            (1, 120, 20, 10),
            id="told once for each of its parts",
        ),
        pytest.param(
            [message("m1"), message("m2", isSidechain=True)],
            (1, 240, 40, 20),
            id="of an agent that it started",
        ),
        pytest.param(
            [message("old", seconds=-60), message("m1")],
            (1, 120, 20, 10),
            id="of an earlier run in the same session",
        ),
        pytest.param(
            [message("m1", 5), message("m2", -3600)],
            (2, 240, 40, 20),
            id="the clock was set back",
        ),
        pytest.param(
            [{**message("m1"), "message": {"id": "m1", "model": "<synthetic>", "usage": TOLD}}],
            (0, 0, 0, 0),
            id="the program's own words",
        ),
        pytest.param([message("")], (0, 0, 0, 0), id="without an id"),
        pytest.param(
            [{**message("m1"), "timestamp": "soon"}], (1, 120, 20, 10), id="without a time"
        ),
        pytest.param([b"\xff{\n", b"[]\n", b"{" * 99 + b"\n"], (0, 0, 0, 0), id="no lines at all"),
    ],
)
def test_each_message_of_claude_code_counts_once(lines, expected):
    assert sums(look(Usage(), written(*lines))) == expected


def test_sums_do_not_depend_on_how_the_bytes_were_cut_or_who_reads_on():
    raw = written(*(message(f"m{number % 40}", number) for number in range(1, 90)))
    whole = look(Usage(), raw, limit=len(raw))
    for size in (300, 500, 4096):
        usage = Usage()
        while usage.place(MAIN, SINCE).read < len(raw):
            usage = look(usage, raw, limit=size + usage_rules.MARKED)
        assert (sums(usage)[1:], usage.context) == (sums(whole)[1:], whole.context)


def test_the_last_message_of_the_main_agent_says_how_full_its_context_is():
    usage = look(Usage(), written(message("m1"), message("m2", isSidechain=True)))
    assert (usage.context, usage.window, usage.model) == (120, None, "opus")


def test_messages_of_another_agent_count_and_are_no_turns():
    usage = look(Usage(), written(message("m1", 100)))
    usage = look(usage, written(message("m2", 50)), AGENT)
    assert (sums(usage), usage.context) == ((1, 240, 40, 20), 120)


MANY = [message(f"m{number}", number) for number in range(1, 100)]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param([], 99, id="truncated"),
        pytest.param(MANY, 99, id="written anew, the same"),
        pytest.param([b"{}\n", *MANY, message("new", 200)], 100, id="rewritten and longer"),
        pytest.param([*MANY[-3:], message("new", 200)], 100, id="compacted, and gone on"),
        pytest.param([*MANY, message("new", 200)], 100, id="gone on"),
    ],
)
def test_what_was_counted_is_not_counted_again_when_the_record_is_rewritten(after, expected):
    usage = look(Usage(), written(*MANY), limit=10**6)
    assert sums(usage)[0] == 99
    for _ in range(2):
        usage = look(usage, written(*after), limit=10**6)
    assert sums(usage)[:2] == (expected, 120 * expected)


def test_a_session_that_goes_on_in_another_file_does_not_bring_its_messages_along():
    usage = look(Usage(), written(*MANY), limit=10**6)
    other = OwnRecord(Form.CLAUDE, "s-2", "/base", ("x", "s-2.jsonl"))
    usage = look(usage, written(*MANY, message("new", 200)), other, limit=10**6)
    assert sums(usage)[0] == 100


def test_a_line_that_is_too_long_is_left_out_and_the_next_one_counts():
    long = b'{"x": "' + b"y" * 300_000 + b'"}\n'
    raw = written(long, message("m1"))
    usage = Usage()
    while usage.place(MAIN, SINCE).read < len(raw):
        usage = look(usage, raw, limit=280_000)
    assert sums(usage)[0] == 1


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param([turn(), thread(100), thread(200)], (1, 200, 20, 10), id="a sum each time"),
        pytest.param([turn(), thread(200), thread(200)], (1, 200, 20, 10), id="told twice"),
        pytest.param(
            [turn(-50), thread(150, -40), turn(), thread(200)],
            (1, 50, 5, 3),
            id="of an earlier run in the same thread",
        ),
        pytest.param([turn(), {**thread(1), "payload": None}], (1, 0, 0, 0), id="no numbers"),
    ],
)
def test_codex_tells_the_sum_of_its_thread(lines, expected):
    assert sums(look(Usage(), written(*lines), THREAD)) == expected


def test_a_thread_of_codex_tells_how_much_of_its_context_is_used():
    usage = look(Usage(), written(thread(100)), THREAD)
    assert (usage.context, usage.window) == (77, 1000)
    assert look(usage, written(thread(100), thread(120, window=None)), THREAD).window == 1000


def test_a_rewritten_thread_of_codex_takes_nothing_back_and_counts_nothing_twice():
    first = [turn(-50), thread(150, -40), turn(), thread(500, 50)]
    usage = look(Usage(), written(*first), THREAD)
    usage = look(usage, written(thread(100, 60)), THREAD)
    assert sums(usage)[:2] == (1, 350)
    usage = look(usage, written(thread(100, 60), thread(600, 70)), THREAD)
    assert usage.spent.total.into == 450


@pytest.mark.parametrize("odd", [None, [], "x", {"told": []}, {"told": [1] * 5, "places": [[1]]}])
def test_what_a_column_should_not_hold_counts_as_nothing(odd):
    assert usage_rules.from_json(odd) == Usage()


def test_what_stood_before_the_run_counts_for_a_thread_and_not_for_the_run():
    usage = look(Usage(), written(thread(150, -40)), THREAD)
    assert usage.place(THREAD, SINCE).before == Tokens(150, 15, 7)
    assert not usage.is_told


def test_no_more_records_are_read_than_places_can_be_kept():
    usage = Usage(places=tuple((f"other-{n}", Place()) for n in range(usage_rules.MOST_PLACES)))
    assert not usage.may_read(MAIN)
