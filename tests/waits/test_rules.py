"""Whether a working run waits for a person: the rule as a table, and what hooks say of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from runs.core.states import Wait
from runs.transcript.hook_events import Session, read_on
from runs.waits import rules
from runs.waits.rules import WaitFacts, Waiting, waiting, was_answered

NOW = datetime(2026, 11, 22, 3, 0, tzinfo=UTC)
QUARTER = timedelta(minutes=15)


def ago(**delta: float) -> datetime:
    return NOW - timedelta(**delta)


@pytest.mark.parametrize(
    ("facts", "kind", "since"),
    [
        pytest.param(WaitFacts(), Wait.NONE, None, id="nothing is known"),
        pytest.param(
            WaitFacts(Wait.PERMISSION, ago(seconds=2)), Wait.NONE, None, id="asked just now"
        ),
        pytest.param(
            WaitFacts(Wait.PERMISSION, ago(seconds=3)),
            Wait.PERMISSION,
            ago(seconds=3),
            id="asked, and nobody has answered at once",
        ),
        pytest.param(
            WaitFacts(Wait.PERMISSION, ago(seconds=9), "", True, changed_at=NOW),
            Wait.PERMISSION,
            ago(seconds=9),
            id="its dialog is on the screen",
        ),
        pytest.param(
            WaitFacts(Wait.PERMISSION, ago(seconds=9), "", False, changed_at=ago(seconds=5)),
            Wait.NONE,
            None,
            id="a hook allowed it: no dialog, and the screen moves",
        ),
        pytest.param(
            WaitFacts(Wait.PERMISSION, ago(seconds=9), "", False, changed_at=ago(seconds=6)),
            Wait.PERMISSION,
            ago(seconds=9),
            id="a dialog of another form stands still",
        ),
        pytest.param(
            WaitFacts(turn_ended_at=ago(minutes=2), changed_at=ago(seconds=5)),
            Wait.NONE,
            None,
            id="its turn ended, and its screen goes on",
        ),
        pytest.param(
            WaitFacts(turn_ended_at=ago(minutes=2), changed_at=ago(seconds=100)),
            Wait.IDLE,
            ago(minutes=2),
            id="the last lines of a turn came after its end",
        ),
        pytest.param(
            WaitFacts(Wait.QUESTION, ago(hours=1), turn_ended_at=ago(minutes=1)),
            Wait.QUESTION,
            ago(hours=1),
            id="a question comes before the end of a turn",
        ),
        pytest.param(
            WaitFacts(turn_ended_at=ago(seconds=9)), Wait.NONE, None, id="its turn ended just now"
        ),
        pytest.param(
            WaitFacts(turn_ended_at=ago(seconds=10)), Wait.IDLE, ago(seconds=10), id="idle"
        ),
        pytest.param(
            WaitFacts(turn_ended_at=ago(minutes=2), is_error=True, note="API Error"),
            Wait.ERROR,
            ago(minutes=2),
            id="stopped by an error",
        ),
        pytest.param(
            WaitFacts(shows_dialog=True, changed_at=ago(seconds=6)),
            Wait.QUESTION,
            ago(seconds=6),
            id="a dialog of which no hook told",
        ),
        pytest.param(
            WaitFacts(shows_dialog=True, changed_at=ago(seconds=5)),
            Wait.NONE,
            None,
            id="a dialog that was drawn just now",
        ),
        pytest.param(
            WaitFacts(shows_dialog=True, changed_at=ago(seconds=9), turn_ended_at=ago(seconds=20)),
            Wait.IDLE,
            ago(seconds=20),
            id="a dialog after the end of a turn",
        ),
        pytest.param(
            WaitFacts(changed_at=ago(minutes=15), quiet_after=QUARTER),
            Wait.QUIET,
            ago(minutes=15),
            id="an unchanged screen",
        ),
        pytest.param(
            WaitFacts(changed_at=ago(minutes=14, seconds=59), quiet_after=QUARTER),
            Wait.NONE,
            None,
            id="not for long enough",
        ),
        pytest.param(
            WaitFacts(changed_at=ago(days=1)), Wait.NONE, None, id="a quiet screen counts never"
        ),
        pytest.param(
            WaitFacts(changed_at=NOW + QUARTER, turn_ended_at=NOW + QUARTER, quiet_after=QUARTER),
            Wait.NONE,
            None,
            id="the clock was set back",
        ),
    ],
)
def test_for_what_a_run_waits(facts, kind, since):
    found = waiting(facts, NOW)
    assert (found.kind, found.since) == (kind, since)


def test_what_the_program_said_comes_along():
    asked = WaitFacts(Wait.PERMISSION, ago(minutes=1), "Bash: ls")
    assert waiting(asked, NOW).note == "Bash: ls"
    ended = WaitFacts(turn_ended_at=ago(minutes=1), is_error=True, note="API Error")
    assert waiting(ended, NOW).note == "API Error"
    assert waiting(WaitFacts(turn_ended_at=ago(minutes=1), note="x"), NOW) == Waiting(
        Wait.IDLE, ago(minutes=1)
    )


@pytest.mark.parametrize(
    ("changed_before", "answered"),
    [
        (None, False),
        (timedelta(seconds=-30), False),
        (timedelta(seconds=1), False),
        (timedelta(seconds=8), False),
        (timedelta(seconds=9), True),
    ],
    ids=["never", "before it asked", "it draws its question", "still drawing", "it goes on"],
)
def test_a_screen_that_changes_again_shows_that_it_goes_on(changed_before, answered):
    before = NOW + changed_before if changed_before is not None else None
    assert was_answered(NOW, before) is answered
    assert not was_answered(None, before)


@pytest.mark.parametrize("kind", [one for one in Wait if one])
def test_every_kind_has_its_words(kind):
    assert rules.words(kind)
    assert rules.past(kind)
    assert rules.advice(kind).endswith(".")


def read(*entries: object, before: Session = Session()) -> Session:  # noqa: B008
    return read_on(before, b"".join(json.dumps(one).encode() + b"\n" for one in entries), NOW)


GIVEN = {"event": "UserPromptSubmit", "at": ago(minutes=5).timestamp(), "session": "s-1"}
ASKS = {"event": "PermissionRequest", "at": ago(seconds=9).timestamp(), "tool": "Bash"}


@pytest.mark.parametrize(
    ("event", "asks", "question"),
    [
        ({**ASKS, "wish": "git push"}, Wait.PERMISSION, "Bash: git push"),
        (ASKS, Wait.PERMISSION, "Bash"),
        (
            {"event": "Notification", "asks": "permission_prompt", "said": "Claude needs it"},
            Wait.PERMISSION,
            "",
        ),
        (
            {"event": "Notification", "asks": "elicitation_dialog", "said": "Which one?"},
            Wait.QUESTION,
            "Which one?",
        ),
        ({"event": "Notification", "asks": "idle_prompt"}, Wait.NONE, ""),
        ({"event": "Notification", "asks": ["x"]}, Wait.NONE, ""),
        ({"event": "Notification"}, Wait.NONE, ""),
        ({"event": "PermissionRequest", "tool": 5, "wish": {}}, Wait.PERMISSION, ""),
    ],
)
def test_what_hooks_say_that_it_asks(event, asks, question):
    session = read(GIVEN, event)
    assert (session.asks, session.question) == (asks, question)
    assert (session.asked_at is not None) == bool(asks)


@pytest.mark.parametrize("is_told_first", [True, False])
def test_two_hooks_of_one_permission_may_come_in_either_order(is_told_first):
    at = ago(seconds=9).timestamp()
    told = {"event": "Notification", "asks": "permission_prompt", "said": "needs you", "at": at}
    wish = {**ASKS, "wish": "ls", "at": at}
    session = read(GIVEN, *((told, wish) if is_told_first else (wish, told)))
    assert (session.asks, session.question) == (Wait.PERMISSION, "Bash: ls")
    assert session.asked_at == ago(seconds=9)


def test_of_several_questions_at_once_the_first_stands():
    more = {**ASKS, "tool": "Write", "wish": "x", "at": ago(seconds=8).timestamp()}
    session = read(GIVEN, {**ASKS, "wish": "ls"}, more)
    assert (session.question, session.asked_at) == ("Bash: ls", ago(seconds=9))


def test_a_later_question_of_the_same_turn_is_another_one():
    later = {**ASKS, "tool": "Write", "wish": "x", "at": ago(seconds=4).timestamp()}
    session = read(GIVEN, {**ASKS, "wish": "ls"}, later)
    assert (session.question, session.asked_at) == ("Write: x", ago(seconds=4))


@pytest.mark.parametrize("over", ["UserPromptSubmit", "Stop", "StopFailure", "SessionEnd"])
def test_what_comes_after_an_answer_ends_the_question(over):
    session = read({"event": over}, before=read(GIVEN, ASKS))
    assert (session.asks, session.asked_at, session.question) == (Wait.NONE, None, "")
