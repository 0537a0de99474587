"""What is sent between machines: nothing is lost on the way, and nothing foreign is believed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from runs.core.history_ports import Change, Commit
from runs.core.ports import Exit, Output, Progress, SeamError, Sighting
from runs.remote import messages
from runs.remote.messages import Question, Unreadable

HERE, THERE = Path("/srv/here"), Path("/var/lib/there")
NOW = datetime(2026, 11, 24, 1, 2, 3, 456, tzinfo=UTC)
KEY = b"k" * 32


def passed(value: Any) -> Any:
    """What the other machine reads of it."""
    message = messages.written(KEY, {"value": value}, HERE, 10_000)
    return messages.read(KEY, message, THERE)["value"]


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -1,
        "ä\x00\x1b[0m",
        b"\xff\x00raw",
        ["a", 1],
        {"is": "no mark", "7": None},
        {"": {}},
        Change("a b", "R", 1, None, old_path="b", is_open=True),
        [Commit("c", ("p", "q"), "Anna", NOW, "subject", "body")],
        Output(b"\x00\xff", 2, NOW),
        Exit(None, 9, NOW),
        Progress("head", 3),
        {"demo~1": Sighting("demo~1", True, created_at=NOW, marker="m")},
    ],
)
def test_what_is_told_is_what_is_read(value: Any) -> None:
    assert passed(value) == value


def test_a_path_of_the_state_folder_is_the_one_of_the_other_machine() -> None:
    assert passed(HERE / "runs" / "7") == THERE / "runs" / "7"
    assert passed(THERE / "worktrees" / "demo-7") == THERE / "worktrees" / "demo-7"


@pytest.mark.parametrize("path", ["/etc/passwd", "/var/lib/there/../secret", "runs/7"])
def test_a_path_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(Unreadable, match="outside"):
        passed(Path(path) if path.startswith("/") else HERE / ".." / path)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(messages.written(b"other", {"value": 1}, HERE, 99), id="another key"),
        pytest.param(messages.written(KEY, {"value": 1}, HERE, 99)[:-1] + b"0", id="changed"),
        pytest.param(b"", id="empty"),
        pytest.param(messages._signature(KEY, b"[1]") + b"[1]", id="no message"),
        pytest.param(messages._signature(KEY, b"{") + b"{", id="no JSON"),
        pytest.param(
            messages._signature(KEY, t := json.dumps({"v": {"is": "Lab"}}).encode()) + t,
            id="a thing that is not told",
        ),
    ],
)
def test_what_nobody_of_this_installation_wrote_is_not_believed(message: bytes) -> None:
    with pytest.raises(Unreadable):
        messages.read(KEY, message, THERE)


# As the versions up to 0.1.0+97 write a question, and answer it.
ASKED_BY_97 = {
    **{"id": "1", "host": "there", "part": "sessions", "name": "screens"},
    **{"args": [["a"], 5], "more": {"is": "map", "items": []}},
}
ANSWERED_BY_97 = {
    "value": {
        "is": "map",
        "items": [["a", {"is": "Exit", "status": 3, "signal": None, "at": None}]],
    }
}


def signed(value: Any) -> bytes:
    text = json.dumps(value).encode()
    return messages._signature(KEY, text) + text


def test_an_older_version_is_asked_and_answers_in_the_form_that_it_knows() -> None:
    asked = Question("1", "there", "sessions", "screens", [["a"], 5], {})
    text = messages.written(KEY, asked.values, HERE, 1000)
    assert json.loads(text[64:]) == ASKED_BY_97
    read = messages.question(messages.opened(KEY, signed(ASKED_BY_97)))
    assert (read.part, read.name, read.args, read.form) == ("sessions", "screens", [["a"], 5], 1)
    assert messages.read(KEY, signed(ANSWERED_BY_97), THERE)["value"] == {"a": Exit(3, None, None)}
    assert asked.since == ()


def test_what_a_newer_version_tells_more_is_left_out_and_what_it_tells_otherwise_is_said() -> None:
    newer = messages.question({**ASKED_BY_97, "form": 2, "patience": 3})
    assert (newer.form, newer.name) == (2, "screens")
    more = {"v": {"is": "Exit", "status": 3, "signal": None, "at": None, "mood": "good"}}
    assert messages.read(KEY, signed(more), THERE)["v"] == Exit(3, None, None)
    with pytest.raises(Unreadable, match="as another version of labsite tells it: Mood"):
        messages.read(KEY, signed({"v": {"is": "Mood", "of": "good"}}), THERE)
    with pytest.raises(Unreadable, match="another version of labsite"):
        messages.question({"id": "1", "host": "there"})


def test_what_only_newer_workers_answer_names_their_version() -> None:
    assert Question("1", "there", "elsewhere", "parked", [1, 1], {}).since == (0, 1, 0, 98)
    assert Question("1", "there", "repos", "upstream", [], {}).since == (0, 1, 0, 98)


def test_a_message_that_is_too_long_is_not_sent() -> None:
    with pytest.raises(SeamError, match="bytes"):
        messages.written(KEY, {"value": "x" * 100}, HERE, 100)


@pytest.mark.parametrize(
    ("part", "name", "is_allowed", "is_act"),
    [
        ("sessions", "screens", True, False),
        ("repos", "patch", True, False),
        ("sessions", "press", True, True),
        ("sessions", "kill", False, False),
        ("sessions", "start", False, False),
        ("sessions", "__class__", False, False),
        ("repos", "force_remove", False, False),
        ("elsewhere", "read", True, False),
        ("elsewhere", "restore", True, True),
        ("elsewhere", "_records", False, False),
        ("repos", "say", False, False),
        ("paths", "state", False, False),
    ],
)
def test_few_things_may_be_asked(part: str, name: str, is_allowed: bool, is_act: bool) -> None:
    question = Question("1", "there", part, name, [], {})
    assert (question.is_allowed, question.is_act) == (is_allowed, is_act)
