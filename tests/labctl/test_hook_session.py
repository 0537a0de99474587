"""`labctl hook session`, run as an agent's hooks run it: with a payload on standard input."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path

import pytest

from tests.labctl.session import Said, Session
from tests.patience import PATIENCE

pytestmark = [pytest.mark.real, pytest.mark.quick("an agent's own hooks, shown in milliseconds")]

STOP = {
    "session_id": "6b8c8d47",
    "transcript_path": "/home/anna/.claude/projects/demo/6b8c8d47.jsonl",
    "cwd": "/work",
    "hook_event_name": "StopFailure",
    "error": "server_error",
    "last_assistant_message": "API Error: 500 Internal server error.",
}


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


def told(session: Session) -> list[dict[str, object]]:
    path = session.folder / "run" / "events.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def hook(session: Session, payload: object) -> Said:
    return session.run("hook", "session", text=json.dumps(payload))


def test_an_event_becomes_one_line_that_only_its_user_can_read(session):
    before = time.time()
    assert hook(session, STOP) == Said(0, "", "")
    assert hook(session, {"hook_event_name": "SessionEnd"}) == Said(0, "", "")
    first, second = told(session)
    assert before <= first.pop("at") <= time.time()
    assert first == {
        "event": "StopFailure",
        "session": "6b8c8d47",
        "kind": "server_error",
        "text": "API Error: 500 Internal server error.",
        "transcript": "/home/anna/.claude/projects/demo/6b8c8d47.jsonl",
    }
    assert second["event"] == "SessionEnd"
    assert (session.folder / "run" / "events.jsonl").stat().st_mode & 0o777 == 0o600


def test_what_the_agent_says_and_is_told_is_not_kept(session):
    hook(session, {**STOP, "hook_event_name": "Stop", "prompt": "secret"})
    (entry,) = told(session)
    assert set(entry) == {"event", "at", "session", "transcript"}


def test_what_works_on_in_the_background_is_told_by_its_kinds(session):
    """As Claude Code 2.1.332 told them, after the main turn."""
    tasks = [
        {"id": "a87dea461c74d3f18", "type": "subagent", "status": "running", "description": "Look"},
        {"id": "biwab58ms", "type": "shell", "status": "running", "command": "echo $SECRET"},
    ]
    stop = {**STOP, "hook_event_name": "Stop", "session_crons": []}
    over = [{**tasks[0], "status": "completed"}, {**tasks[0], "status": "failed"}]
    for told_of in ([*tasks, *over], over, None, "x", [5, {}, {"type": 7}], tasks * 50):
        hook(session, {**stop, "background_tasks": told_of})
    said = [entry.get("background") for entry in told(session)]
    assert said == [
        ["subagent", "shell"],
        None,
        None,
        None,
        ["task"] * 2,
        ["subagent", "shell"] * 10,
    ]
    hook(session, {**STOP, "hook_event_name": "UserPromptSubmit", "background_tasks": tasks})
    assert "background" not in told(session)[-1]


def test_the_worker_is_asked_for_a_look(session):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as worker:
        worker.bind(str(session.socket))
        worker.settimeout(PATIENCE)
        hook(session, STOP)
        assert worker.recv(100) == b"demo"


def test_a_long_text_is_cut(session):
    hook(session, {**STOP, "last_assistant_message": "x" * 100_000, "error": "y" * 1000})
    (entry,) = told(session)
    assert (len(str(entry["text"])), len(str(entry["kind"]))) == (300, 60)


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        {},
        {"hook_event_name": 5},
        {"hook_event_name": "a b"},
        {"hook_event_name": "x" * 100},
    ],
    ids=str,
)
def test_what_is_no_event_is_not_noted_and_fails_nothing(session, payload):
    assert hook(session, payload).code == 0
    assert told(session) == []


def test_outside_a_session_nothing_happens(session, tmp_path):
    del session.env["LAB_RUN_FOLDER"]
    session.cwd = tmp_path
    assert hook(session, STOP) == Said(0, "", "")
    assert told(session) == []


def test_a_full_file_grows_no_further(session):
    path = session.folder / "run" / "events.jsonl"
    path.write_bytes(b"x" * 1_000_000)
    assert hook(session, STOP).code == 0
    assert path.stat().st_size == 1_000_000


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "no run folder"])
def test_no_odd_file_is_written_to_or_holds_up_the_agent(session, tmp_path, kind):
    path, aside = session.folder / "run" / "events.jsonl", tmp_path / "aside"
    if kind == "link":
        path.symlink_to(aside)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        session.env["LAB_RUN_FOLDER"] = str(tmp_path / "gone")
    assert hook(session, STOP).code == 0
    assert not aside.exists()
