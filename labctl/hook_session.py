"""`labctl hook session`: appends one short line for each event of a session's own hooks.

The agent's settings name this command for the events that labsite asks for. Each call appends one
JSON line to `events.jsonl` in the run's folder and asks labsite for a look.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time

from labctl import wake
from labctl.safe_files import line

TYPE_CHECKING = False  # importing `typing` would take longer than all else here
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

FILE = "events.jsonl"
MOST_BYTES = 1024 * 1024  # of a payload
FULL = 1_000_000  # bytes; more than a run's events ever are
# What is kept of a payload, under which name, and how many letters of it.
KEPT = (
    ("session", "session_id", 100),
    ("kind", "error", 60),
    ("text", "last_assistant_message", 300),
    ("asks", "notification_type", 60),
    ("said", "message", 300),
    ("tool", "tool_name", 60),
    ("transcript", "transcript_path", 500),
)
_ERRORS_ONLY = frozenset({"kind", "text"})
MOST_TASKS = 20  # of the work in the background of which an end of a turn tells
# What a person has to know of a tool to allow it, the first of these that it was given.
_TELLING = ("command", "file_path", "url", "pattern", "description", "prompt")
_NAME = re.compile(r"[A-Za-z]{1,40}", re.ASCII)
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def run() -> int:
    """Handle one event. Returns 0 whatever happens, since a hook must never hold up its agent."""
    try:
        handle(os.environ, payload())
    except Exception as error:
        print(f"labctl hook: nothing was signalled: {error}", file=sys.stderr)
    return 0


def payload() -> dict[str, Any]:
    """What the agent says of the event. Too long a text is cut and so not valid JSON."""
    if sys.stdin is None or sys.stdin.isatty():
        return {}
    try:
        said = json.loads(sys.stdin.buffer.read(MOST_BYTES))
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def handle(env: Mapping[str, str], payload: Mapping[str, Any]) -> None:
    """Append one event and wake the worker; does nothing outside a session of labsite. Raises OSError."""
    folder, name = env.get("LAB_RUN_FOLDER", ""), payload.get("hook_event_name")
    if not folder or not isinstance(name, str) or not _NAME.fullmatch(name):
        return
    entry: dict[str, object] = {"event": name, "at": time.time()}
    for ours, theirs, most in KEPT:
        text = line(payload.get(theirs), most)
        if text and (name == "StopFailure" or ours not in _ERRORS_ONLY):
            entry[ours] = text
    wish = _wish(payload.get("tool_input"))
    if wish:
        entry["wish"] = wish
    background = _background(payload.get("background_tasks")) if name == "Stop" else []
    if background:
        entry["background"] = background
    _append(os.path.join(folder, FILE), json.dumps(entry).encode() + b"\n")  # noqa: PTH118
    wake.send(env.get("LAB_WAKE_SOCKET", ""), env.get("LAB_PROJECT", ""))


def _wish(given: object) -> str:
    """What a tool is asked to do, on one line."""
    values = [given.get(name) for name in _TELLING] if isinstance(given, dict) else []
    return next((text for text in (line(value, 300) for value in values) if text), "")


def _background(tasks: object) -> list[str]:
    """What kinds of work go on in the background after the end of a turn, one for each piece."""
    found = [one for one in tasks if isinstance(one, dict)] if isinstance(tasks, list) else []
    going = [one for one in found if one.get("status") in (None, "running", "pending")]
    return [line(one.get("type"), 40) or "task" for one in going[:MOST_TASKS]]


def _append(path: str, data: bytes) -> None:
    """In one write, so that lines of concurrent hooks do not interleave."""
    file = os.open(path, _APPEND, 0o600)
    try:
        if os.fstat(file).st_size < FULL:
            os.write(file, data)
    finally:
        os.close(file)
