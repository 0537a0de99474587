"""What the hooks of an interactive agent tell: read as a table, and told by the real program."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from runs.core.states import AgentState, Trouble
from runs.models import Notice
from runs.transcript.hook_events import Session, read_on
from tests.agents.script import Refuse, Say, Shell

NOW = datetime(2026, 11, 22, 3, 0, tzinfo=UTC)
THEN = NOW - timedelta(seconds=5)
GIVEN = {"event": "UserPromptSubmit", "at": THEN.timestamp(), "session": "s-1"}
STOPPED = {"event": "Stop", "at": NOW.timestamp()}
LIMITED = {
    "event": "StopFailure",
    "at": NOW.timestamp(),
    "kind": "rate_limit",
    "text": "API Error: Request rejected (429) · too many",
}


def read(*entries: object, before: Session = Session()) -> Session:  # noqa: B008
    return read_on(before, b"".join(json.dumps(one).encode() + b"\n" for one in entries), NOW)


def test_a_session_that_was_given_its_task_has_begun_and_works():
    session = read({"event": "SessionStart", "at": THEN.timestamp()}, GIVEN)
    assert (session.began_at, session.turn_ended_at) == (THEN, None)
    assert (session.report.agent_state, session.report.agent_session) == ("working", "s-1")


def test_a_turn_that_ended_idles_until_the_next_word():
    session = read(GIVEN, STOPPED)
    assert (session.turn_ended_at, session.report.agent_state) == (NOW, AgentState.FINISHED)
    assert not session.was_refused
    assert read({**GIVEN, "at": NOW.timestamp()}, before=session).turn_ended_at is None


def test_an_error_of_the_api_is_told_in_its_words_and_cleared_by_the_next_word():
    session = read(GIVEN, LIMITED)
    report = session.report
    assert session.was_refused
    assert (report.trouble, report.api_status, report.result_subtype, report.is_error) == (
        Trouble.LIMIT,
        429,
        "rate_limit",
        True,
    )
    after = read(GIVEN, before=session)
    assert (after.report.trouble, after.report.is_error, after.was_refused) == ("", False, False)
    assert after.began_at == THEN


@pytest.mark.parametrize(
    ("works", "note"),
    [
        (["subagent"], "1 agent in the background"),
        (["subagent", "shell", "workflow", "shell"], "2 agents and 2 commands in the background"),
        (["workflow", "never heard of"], "1 agent and 1 command in the background"),
    ],
)
def test_a_turn_after_which_an_agent_works_in_the_background_has_not_ended(works, note):
    session = read(GIVEN, {**STOPPED, "background": works})
    assert (session.turn_ended_at, session.report.agent_state) == (None, AgentState.WORKING)
    assert (session.report.agent_note, session.report.agent_session) == (note, "s-1")
    assert session.began_at == THEN
    # It comes back, which is told as a word of its user, and the turn after that ends.
    went_on = read(GIVEN, before=session)
    assert (went_on.turn_ended_at, went_on.report.agent_note) == (None, "")
    assert went_on.report.agent_until is None
    assert read(GIVEN, STOPPED, before=session).turn_ended_at == NOW


@pytest.mark.parametrize(
    "odd", [None, [], {}, "subagent", 5, [5, None, {}], ["shell"], ["never heard of"]]
)
def test_where_no_agent_is_told_of_in_the_background_a_turn_ends_as_ever(odd):
    assert read(GIVEN, {**STOPPED, "background": odd}).turn_ended_at == NOW


@pytest.mark.parametrize(
    ("kind", "text", "trouble", "status"),
    [
        ("rate_limit", "API Error: Request rejected (429) · much", Trouble.LIMIT, 429),
        ("rate_limit", "You've hit your limit", Trouble.LIMIT, None),
        ("server_error", "API Error: 529 Overloaded. Try again.", Trouble.OVERLOAD, 529),
        ("server_error", "API Error: 500 Internal server error.", Trouble.OVERLOAD, 500),
        ("authentication_failed", "Invalid API key · Fix it", Trouble.LOGIN, None),
        (
            "authentication_failed",
            "Please run /login · API Error: 403 Your account does not have access to this model.",
            Trouble.MODEL,
            403,
        ),
        ("billing_error", "Credit balance is too low", Trouble.CREDIT, None),
        ("model_not_found", "There's an issue with the selected model (x).", Trouble.MODEL, None),
        ("unknown", "Something odd", Trouble.NONE, None),
        ("", "", Trouble.NONE, None),
    ],
)
def test_an_error_is_the_accounts_trouble_or_none(kind, text, trouble, status):
    report = read(GIVEN, {"event": "StopFailure", "kind": kind, "text": text}).report
    assert (report.trouble, report.api_status, report.is_error) == (trouble, status, True)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"no json",
        b"[]",
        b'{"event": 5}',
        b'{"event": ["Stop"]}',
        b'{"event": "Unheard"}',
        b"\xff\xfe",
        b"{" * 5000,
    ],
)
def test_a_line_that_is_no_event_changes_nothing(line):
    session = read(GIVEN)
    after = read_on(session, line + b"\n", NOW)
    assert (after.report, after.began_at, after.turn_ended_at) == (session.report, THEN, None)
    assert after.read == session.read + len(line) + 1


@pytest.mark.parametrize("at", [None, "x", -1, 1e300, True, (NOW + timedelta(1)).timestamp()])
def test_a_time_that_cannot_be_is_now(at):
    assert read({**GIVEN, "at": at}).began_at == NOW


def test_half_a_line_waits_for_its_other_half():
    data = json.dumps(GIVEN).encode() + b"\n" + json.dumps(STOPPED).encode()
    session = read_on(Session(), data, NOW)
    assert (session.turn_ended_at, session.read) == (None, data.index(b"\n") + 1)
    assert read_on(session, data[session.read :] + b"\n", NOW).turn_ended_at == NOW


TROUBLES = ("run.troubled", "run.held")


def test_claude_code_tells_the_error_that_ended_its_turn(house):
    """A limit, an overload and a missing log-in are in test_limits."""
    refused = Refuse(400, "invalid_request_error", "Your credit balance is too low.")
    house.model.script(Shell("true"), refused)
    run = house.until(house.start(house.project(house.profile())), lambda run: run.trouble)
    assert (run.trouble, run.result_subtype, run.is_error) == (
        Trouble.CREDIT,
        "billing_error",
        True,
    )
    assert run.began_at is not None
    held = Notice.objects.filter(run=run, kind="run.held")
    house.until(run, lambda run: held.exists())
    assert held.count() == 1


def test_claude_code_tells_that_it_waits_for_a_next_word(house):
    house.model.script(Say("I am not sure what to do."))
    run = house.start(house.project(house.profile()))
    house.until(run, lambda run: run.turn_ended_at)
    assert run.began_at <= run.turn_ended_at
    assert (run.outcome, run.agent_state, run.trouble) == ("", AgentState.FINISHED, "")
    assert run.agent_session in house.model.asked()[0].text
