"""What one-shot agents say in JSON lines, and what is made of it; each rule as a table."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.core import lenient_json
from runs.core.states import AgentState, OutputKind
from runs.lifecycle.verdict import Ending, why_dead
from runs.transcript import record, rendering, reports
from runs.transcript.record import Reading
from runs.transcript.reports import Report
from tests.fakes import START
from tests.transcript import agent_lines as x

CLAUDE, CODEX = OutputKind.CLAUDE, OutputKind.CODEX
BEGUN = (x.claude_init(), x.claude_does("make test"))
CODEX_BEGUN = (x.codex_thread(), x.codex_started())
AGAIN_401 = "Reconnecting... 1/2 (unexpected status 401 Unauthorized: invalid key, url: http://x)"
AGAIN_429 = "Reconnecting... 2/5 (exceeded retry limit, last status: 429 Too Many Requests)"
AGAIN_502 = "Reconnecting... 1/5 (unexpected status 502 Bad Gateway, url: http://x)"
CREDIT = json.dumps({"type": "error", "error": {"message": "Your credit balance is too low"}})


def told(kind, *lines):  # type: ignore[no-untyped-def]
    return record.read(kind, Reading(), x.written(*lines), START).report


def _soon(**delta: float) -> datetime:
    return START + timedelta(**delta)


@pytest.mark.parametrize(
    ("kind", "lines", "state", "note", "until"),
    [
        pytest.param(CLAUDE, (), "", "", None, id="claude: nothing yet"),
        pytest.param(CLAUDE, BEGUN, "working", "", None, id="claude: at work"),
        pytest.param(
            CLAUDE, (*BEGUN, x.claude_retry(1, "overloaded", 529)), "retrying",
            "overloaded (529), try 1 of 2", _soon(seconds=2.0005), id="claude: overloaded",
        ),
        pytest.param(
            CLAUDE, (*BEGUN, x.claude_retry()), "rate_limited",
            "rate limit (429), try 1 of 2", _soon(seconds=2.0005), id="claude: rate limit",
        ),
        pytest.param(
            CLAUDE, (*BEGUN, x.claude_retry(2, "authentication_failed", 401)), "needs_login",
            "authentication failed (401), try 2 of 2", _soon(seconds=2.0005), id="claude: login",
        ),
        pytest.param(
            CLAUDE, (*BEGUN, x.claude_retry(), x.claude_says("on")), "working", "", None,
            id="claude: the retry is over",
        ),
        pytest.param(
            CLAUDE, (*BEGUN, x.claude_retry(), x.claude_gets("x")), "working", "", None,
            id="claude: a tool answers, so it goes on",
        ),
        pytest.param(
            CLAUDE, (*BEGUN, x.claude_retry(), x.claude_says("API Error", error="rate_limit")),
            "rate_limited", "rate limit (429), try 1 of 2", _soon(seconds=2.0005),
            id="claude: its own words before it gives up are no work",
        ),
        pytest.param(
            CLAUDE, (*BEGUN, x.claude_retry(), {"type": "system", "subtype": "status"}),
            "rate_limited", "rate limit (429), try 1 of 2", _soon(seconds=2.0005),
            id="claude: another system line changes nothing",
        ),
        pytest.param(
            CLAUDE, (*BEGUN, {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 1795276800}}),
            "rate_limited", "the subscription's limit is used up", datetime(2026, 11, 21, 16, tzinfo=UTC),
            id="claude: the subscription is used up",
        ),
        pytest.param(
            CLAUDE, (*BEGUN, {"type": "rate_limit_event", "rate_limit_info": {"status": "allowed_warning"}}),
            "working", "", None, id="claude: a warning of the limit is no wait",
        ),
        pytest.param(CLAUDE, (*BEGUN, x.claude_result()), "finished", "", None, id="claude: done"),
        pytest.param(
            CLAUDE, (*BEGUN, x.claude_refused(400, "Credit balance is too low")), "failed",
            "Credit balance is too low", None, id="claude: success that is an error",
        ),
        pytest.param(
            CLAUDE, (*BEGUN, x.claude_refused(None, "Not logged in · Please run /login")),
            "needs_login", "Not logged in · Please run /login", None, id="claude: not logged in",
        ),
        pytest.param(
            CLAUDE, (*BEGUN, x.claude_retry(), x.claude_refused(429, "Request rejected (429)")),
            "rate_limited", "Request rejected (429)", _soon(seconds=2.0005), id="claude: gave up at a limit",
        ),
        pytest.param(
            CLAUDE, (*BEGUN, x.claude_refused(None, "Claude AI usage limit reached|1795276800")),
            "rate_limited", "Claude AI usage limit reached|1795276800",
            datetime(2026, 11, 21, 16, tzinfo=UTC), id="claude: the limit says when it ends",
        ),
        pytest.param(
            CLAUDE, (*BEGUN, x.claude_result(subtype="error_max_turns", result="")), "failed",
            "error max turns", None, id="claude: out of turns",
        ),
        pytest.param(
            CLAUDE, (*BEGUN, x.claude_result(subtype="error_during_execution", errors=["it broke", 7, "badly"])),
            "failed", "it broke; badly", None, id="claude: listed errors",
        ),
        pytest.param(
            CLAUDE, (*BEGUN, x.claude_result(), x.claude_says("late"), x.claude_retry()), "finished", "", None,
            id="claude: what comes after the result changes nothing",
        ),
        pytest.param(CODEX, CODEX_BEGUN, "working", "", None, id="codex: at work"),
        pytest.param(
            CODEX, (*CODEX_BEGUN, x.codex_error(AGAIN_429)), "rate_limited", AGAIN_429, None,
            id="codex: rate limit",
        ),
        pytest.param(
            CODEX, (*CODEX_BEGUN, x.codex_error(AGAIN_401)), "needs_login", AGAIN_401, None,
            id="codex: login",
        ),
        pytest.param(
            CODEX, (*CODEX_BEGUN, x.codex_error(AGAIN_502)), "retrying", AGAIN_502, None,
            id="codex: tries again",
        ),
        pytest.param(
            CODEX, (*CODEX_BEGUN, x.codex_error(AGAIN_502), x.codex_item("agent_message", text="on")),
            "working", "", None, id="codex: the retry is over",
        ),
        pytest.param(
            CODEX, (*CODEX_BEGUN, x.codex_error(AGAIN_502), x.codex_item("error", message="metadata")),
            "retrying", AGAIN_502, None, id="codex: a warning is no work",
        ),
        pytest.param(
            CODEX, (x.codex_thread(), x.codex_item("error", message="metadata"), x.codex_started()),
            "working", "", None, id="codex: an item of type error is not fatal",
        ),
        pytest.param(
            CODEX, (*CODEX_BEGUN, x.codex_error("it broke")), "working", "", None,
            id="codex: an error is not the end",
        ),
        pytest.param(CODEX, (*CODEX_BEGUN, x.codex_done()), "finished", "", None, id="codex: done"),
        pytest.param(
            CODEX, (*CODEX_BEGUN, x.codex_error(CREDIT), x.codex_failed(CREDIT)), "failed",
            "Your credit balance is too low", None, id="codex: the service's own words",
        ),
        pytest.param(
            CODEX, (*CODEX_BEGUN, x.codex_failed("exceeded retry limit, last status: 429 Too Many Requests")),
            "rate_limited", "exceeded retry limit, last status: 429 Too Many Requests", None, id="codex: gave up",
        ),
        pytest.param(
            CODEX, (*CODEX_BEGUN, x.codex_done(), x.codex_started()), "working", "", None,
            id="codex: a further turn",
        ),
    ],
)  # fmt: skip
def test_lines_make_a_state(kind, lines, state, note, until):
    report = told(kind, *lines)
    assert (report.agent_state, report.agent_note, report.agent_until) == (state, note, until)


def test_a_claude_run_tells_session_model_turns_tokens_and_cost():
    report = told(
        CLAUDE,
        *BEGUN,
        x.claude_gets("ok"),
        x.claude_says("so", "msg_1"),
        x.claude_says("done", "msg_2"),
        x.claude_result(num_turns=5),
    )
    assert (report.agent_session, report.agent_model) == (x.SESSION, "claude-sonnet-5")
    assert (report.turns, report.tokens_in, report.tokens_cached) == (5, 300, 80)
    assert (report.tokens_out, report.cost_usd) == (50, Decimal("0.001449"))
    assert report.has_result and not report.is_error


def test_the_delay_of_a_retry_that_is_over_is_no_end_of_a_limit():
    waited = record.read(CLAUDE, Reading(), x.written(*BEGUN, x.claude_retry()), START)
    gave_up = x.written(x.claude_refused(429, "Request rejected."))
    report = record.read(CLAUDE, waited, gave_up, _soon(seconds=3)).report
    assert (report.agent_state, report.agent_until) == ("rate_limited", None)
    reason = why_dead(Ending("one_shot", 1, None, report))
    assert reason.startswith("the agent was turned away by a rate limit: Request rejected (ended")


def test_turns_are_counted_while_the_end_is_not_told():
    assert told(CLAUDE, *BEGUN, x.claude_says("a", "msg_1"), x.claude_says("b", "msg_2")).turns == 2
    assert told(CODEX, *CODEX_BEGUN).turns == 1


def test_the_cost_is_that_of_the_invocation_and_is_not_added_up():
    """The same total comes again after a resume."""
    assert told(CLAUDE, x.claude_result(), x.claude_result()).cost_usd == Decimal("0.001449")


def test_the_turns_of_several_ends_are_added_up():
    """Claude Code 2.1.332 prints one end more for each time that something came back."""
    first = (x.claude_says("a", "msg_1"), x.claude_does("b", "msg_2"), x.claude_says("c", "msg_3"))
    ends = (
        x.claude_result(num_turns=2, result_index=0),
        x.claude_result(num_turns=1, result_index=1),
    )
    assert told(CLAUDE, *BEGUN, *first, *ends).turns == 3


@pytest.mark.row("C-46", level="pure")
def test_codex_tells_tokens_and_never_a_cost():
    report = told(CODEX, *CODEX_BEGUN, x.codex_done())
    assert (report.tokens_in, report.tokens_cached, report.tokens_out) == (400, 100, 40)
    assert report.cost_usd is None
    assert report.agent_session == x.THREAD


@pytest.mark.parametrize(
    "value", [True, -1, 1.5e300, float("inf"), float("nan"), 10**40, "7", None, [], {}], ids=repr
)
def test_numbers_that_cannot_be_meant_are_unknown(value):
    usage = dict.fromkeys(
        ("input_tokens", "output_tokens", "cache_read_input_tokens", "cached_input_tokens"), value
    )
    report = told(
        CLAUDE,
        x.claude_init(),
        x.claude_retry(delay=value, status=value),
        x.claude_result(usage=usage, num_turns=value, total_cost_usd=value, api_error_status=value),
    )
    assert (report.turns, report.tokens_in, report.tokens_cached) == (None, None, None)
    assert (report.tokens_out, report.cost_usd, report.api_status) == (None, None, None)
    codex = told(CODEX, x.codex_started(), {"type": "turn.completed", "usage": usage})
    assert (codex.tokens_in, codex.tokens_cached, codex.tokens_out) == (None, None, None)


@pytest.mark.parametrize(
    "wrong",
    ["--dangerously-do-this", "a b", "$(touch x)", "x" * 101, "a\n", 7, None, ["x"], "../x", "é"],
    ids=repr,
)
def test_a_session_id_that_is_no_plain_word_never_reaches_a_command(wrong):
    report = told(CLAUDE, {**x.claude_init(), "session_id": wrong})
    assert report.agent_session == ""
    assert told(CODEX, {**x.codex_thread(), "thread_id": wrong}).agent_session == ""


@pytest.mark.parametrize(
    "line",
    [
        b"", b"\n", b"not json\n", b"{\n", b'{"type"}\n', b"[1]\n", b"7\n", b'"x"\n', b"null\n", b"{}\n",
        b'{"type": 7}\n', b'{"type": ["result"]}\n', b'{"type": "unknown"}\n', b'{"type": "result"\n',
        b'{"type": "assistant", "message": 7}\n', b'{"type": "assistant", "message": {"content": [7, null]}}\n',
        b'{"type": "user", "message": {"content": "text"}}\n', b'{"type": "item.completed", "item": []}\n',
        b"\xff\xfe{}\n", b'{"type": "\xff"}\n', b'{"type": "error"}\n', b'{"a": ' + b"9" * 5000 + b"}\n",
        b'{"a": ' + b"[" * 50_000 + b"\n", b'{"type": "labsite.stderr"}\n', b'{"type": "system", "subtype": []}\n',
    ],
    ids=range(25),
)  # fmt: skip
@pytest.mark.parametrize("kind", [CLAUDE, CODEX, "", "unknown"])
def test_a_line_that_is_not_as_expected_never_ends_anything(kind, line):
    report = record.read(kind, Reading(), line, START, is_over=True).report
    assert not report.has_result
    assert report.agent_state in ("", "working")


def test_texts_come_without_control_characters_and_cut():
    odd = "\x1b]0;title\x07 a\ud800b\x00\r\n" + "x" * 1000
    report = told(CLAUDE, *BEGUN, x.claude_refused(400, odd))
    report.agent_note.encode()
    assert len(report.agent_note) == 300
    assert report.agent_note.isprintable()
    assert report.last_line.isprintable()


def test_a_line_that_is_too_long_is_left_out_and_the_next_counts():
    long = x.claude_says("x" * (lenient_json.LINE_LIMIT + 1))
    report = told(CLAUDE, *BEGUN, long, x.claude_result())
    assert report.agent_state is AgentState.FINISHED
    assert report.last_line == told(CLAUDE, *BEGUN).last_line
    text = b"y" * (lenient_json.LINE_LIMIT + 1) + b"\n"
    assert record.read(CLAUDE, Reading(), text, START).report == Report()
    part = record.read(CLAUDE, Reading(), b"y" * (lenient_json.LINE_LIMIT + 1), START)
    assert (part.output_read, part.output_skips) == (lenient_json.LINE_LIMIT + 1, True)
    rest = record.read(CLAUDE, part, b"yy\n" + x.written(x.claude_init()), START)
    assert rest.report.agent_session == x.SESSION


def test_half_a_line_is_left_for_the_next_look_and_counts_at_the_end():
    whole = x.written(*BEGUN, x.claude_result())
    cut = len(whole) - 10
    part = record.read(CLAUDE, Reading(), whole[:cut], START)
    assert not part.report.has_result
    after = record.read(CLAUDE, part, whole[part.output_read :], START)
    assert after.report.has_result and after.output_read == len(whole)
    no_line_end = record.read(CLAUDE, Reading(), whole.rstrip(b"\n"), START, is_over=True)
    assert no_line_end.report.has_result


_ANY_LINE = st.one_of(
    st.binary(max_size=60),
    st.sampled_from(
        [
            x.written(line)
            for line in (
                *BEGUN, x.claude_retry(), x.claude_gets("y"), x.claude_result(),
                x.claude_refused(429, "limit"), x.codex_thread(), x.codex_started(),
                x.codex_error(AGAIN_502), x.codex_done(), x.codex_failed("no"), x.codex_item("error", message="m"),
            )
        ]
    ),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "message", "content", "item", "usage", "error", "subtype", "result", "is_error", "errors"]),
            inner | st.sampled_from(["result", "assistant", "user", "system", "error", "turn.failed", "item.completed"]),
            max_size=4,
        ),
        max_leaves=12,
    ).map(lambda value: json.dumps(value).encode() + b"\n"),
)  # fmt: skip


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(
    kind=st.sampled_from([CLAUDE, CODEX]),
    lines=st.lists(_ANY_LINE, max_size=12),
    cuts=st.lists(st.integers(0, 3000), max_size=8),
)
def test_whatever_comes_nothing_is_raised_and_cuts_do_not_matter(kind, lines, cuts):
    whole = b"".join(lines)
    reading = Reading()
    for cut in sorted(cuts):
        reading = record.read(kind, reading, whole[reading.output_read : max(cut, 0)], START)
        assert reading.output_read <= len(whole)
    reading = record.read(kind, reading, whole[reading.output_read :], START, is_over=True)
    assert reading == record.read(kind, Reading(), whole, START, is_over=True)
    rendering.render_all(whole)


DONE = told(CLAUDE, *BEGUN, x.claude_result())
TABLE = [
    pytest.param(Ending("interactive", 7), "the session ended with exit status 7", id="interactive"),
    pytest.param(Ending("interactive", 0), "the session ended with exit status 0", id="interactive, 0"),
    pytest.param(Ending("interactive"), "the session is gone", id="interactive, gone"),
    pytest.param(Ending("interactive", None, 9), "the session was ended by signal 9", id="interactive, signal"),
    pytest.param(Ending("interactive", 0, None, DONE), "the session ended with exit status 0", id="interactive: a report is not asked"),
    pytest.param(Ending("one_shot", 0), "the session ended with exit status 0", id="plain one-shot"),
    pytest.param(Ending("one_shot", 0, None, DONE), "the agent finished (ended with exit status 0)", id="its word is not enough"),
    pytest.param(Ending("one_shot", 1, None, DONE), "the agent finished (ended with exit status 1)", id="done, and a bad status"),
    pytest.param(
        Ending("one_shot", 1, None, told(CLAUDE, *BEGUN, x.claude_refused(400, "Credit balance is too low"))),
        "the agent ended with an error (HTTP 400): Credit balance is too low (ended with exit status 1)", id="refused",
    ),
    pytest.param(
        Ending("one_shot", 0, None, told(CLAUDE, *BEGUN, x.claude_refused(400, "no"))),
        "the agent ended with an error (HTTP 400): no (ended with exit status 0)", id="is_error beats exit 0",
    ),
    pytest.param(
        Ending("one_shot", 1, None, told(CLAUDE, *BEGUN, x.claude_refused(401, "Invalid API key"))),
        "the agent is not logged in: Invalid API key. Log in on this machine, then start again (ended with exit status 1)", id="log in",
    ),
    pytest.param(
        Ending("one_shot", 1, None, told(CLAUDE, *BEGUN, x.claude_retry(delay=7_200_000), x.claude_refused(429, "Request rejected"))),
        "the agent was turned away by a rate limit until 21 Nov 14:00 UTC: Request rejected (ended with exit status 1)", id="rate limit with its end",
    ),
    pytest.param(
        Ending("one_shot", 1, None, told(CODEX, *CODEX_BEGUN, x.codex_failed("last status: 429 Too Many Requests"))),
        "the agent was turned away by a rate limit: last status: 429 Too Many Requests (ended with exit status 1)", id="rate limit, end unknown",
    ),
    pytest.param(
        Ending("one_shot", 1, None, told(CLAUDE, *BEGUN, x.claude_result(subtype="error_max_turns", num_turns=30))),
        "the agent reached its limit of turns (30 turns) (ended with exit status 1)", id="turns",
    ),
    pytest.param(
        Ending("one_shot", 1, None, told(CLAUDE, *BEGUN, x.claude_result(subtype="error_max_budget_usd", total_cost_usd=0.05475))),
        "the agent reached its limit of cost ($0.0548) (ended with exit status 1)", id="cost",
    ),
    pytest.param(
        Ending("one_shot", 0, None, told(CLAUDE, *BEGUN)),
        "the agent was interrupted: it ended with exit status 0 without a result line; its final output: ▸ Bash: make test", id="SIGINT: 0 and no result",
    ),
    pytest.param(
        Ending("one_shot", 143, None, told(CLAUDE, *BEGUN)),
        "the agent was interrupted: it ended with exit status 143 without a result line; its final output: ▸ Bash: make test", id="SIGTERM: 143",
    ),
    pytest.param(
        Ending("one_shot", None, 9, reports.closed(told(CLAUDE, *BEGUN, x.claude_retry()))),
        "the agent was interrupted while it tried again (rate limit (429), try 1 of 2): it was ended by signal 9 without a result line;"
        " its final output: ! rate limit (429), try 1 of 2", id="killed while it waited",
    ),
    pytest.param(
        Ending("one_shot", None, None, told(CLAUDE, *BEGUN)),
        "the agent was interrupted: it is gone without a result line; its final output: ▸ Bash: make test", id="gone with its tmux server",
    ),
    pytest.param(
        Ending("one_shot", 1, None, told(CLAUDE, {"type": "labsite.stderr", "text": "error: unknown option"})),
        "the agent ended with exit status 1 before it began to work; its final output: error: unknown option", id="never began",
    ),
    pytest.param(Ending("one_shot", 1, None, Report()), "the agent ended with exit status 1 before it began to work", id="said nothing"),
]  # fmt: skip


@pytest.mark.row("C-47", "LAB-24", level="pure")
@pytest.mark.parametrize(("ending", "expected"), TABLE)
def test_the_reason_of_a_death_says_what_happened(ending, expected):
    assert why_dead(ending) == f"{expected}, and there is no pull request"


def test_only_what_ended_without_a_result_is_called_interrupted():
    assert reports.closed(DONE) == DONE
    assert reports.closed(told(CLAUDE, *BEGUN)).agent_state is AgentState.INTERRUPTED
    assert reports.closed(Report()).agent_state is AgentState.INTERRUPTED


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (x.claude_init(), "claude-sonnet-5 · session " + x.SESSION),
        (x.claude_says("one\ntwo"), "one\ntwo"),
        (x.claude_does("git status"), "▸ Bash: git status"),
        (x.claude_gets("1\n\n2\n3\n4\n5\n6"), "  1\n  2\n  3\n  4\n  5\n  6"),
        (
            x.claude_gets("\n".join(map(str, range(1, 31)))),
            "  1\n  2\n  3\n  … 21 more lines …\n  25\n  26\n  27\n  28\n  29\n  30",
        ),
        (x.claude_retry(), "! rate limit (429), try 1 of 2"),
        (x.claude_result(), "■ done after 2 turns"),
        (x.claude_refused(400, "no credit"), "■ ended with an error: no credit"),
        (x.codex_item("command_execution", "started", command="ls"), "▸ ls"),
        (x.codex_item("command_execution", aggregated_output="a\n", exit_code=1), "  a"),
        (x.codex_item("agent_message", text="done"), "done"),
        (x.codex_item("file_change", changes=[{"path": "a.py"}]), "▸ changed a.py"),
        (x.codex_item("mcp_tool_call", "started", server="s", tool="t"), "▸ s.t"),
        (x.codex_item("web_search", "started", query="q"), "▸ search: q"),
        (x.codex_item("error", message="metadata"), "! metadata"),
        (x.codex_item("reasoning", text="hm"), ""),
        (x.codex_done(), "■ done"),
        (x.codex_failed("no"), "■ ended with an error: no"),
        ({"type": "labsite.stderr", "text": "warning"}, "  warning"),
    ],
    ids=range(19),
)
def test_a_line_is_shown_as_a_person_reads_it(line, shown):
    assert "\n".join(text for _, text in rendering.shown(line)) == shown
    rendered = rendering.render_all(x.written(line))
    assert rendered.endswith("\n") is bool(shown)


def test_a_record_shows_plain_text_too_and_no_broken_object():
    shown = rendering.render_all(
        b'plain \x1b[31mtext\n{"type": "assis\n' + x.written(x.codex_done())
    )
    assert "plain [31mtext\n" in shown
    assert "assis" not in shown
