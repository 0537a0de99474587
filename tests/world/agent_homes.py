"""Records as Claude Code and Codex leave them in their own folders, written by a test."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

SESSION = "851b09ed-b5d3-451f-ad2e-b97a57966989"
OTHER = "24d053f5-3ea3-4ce4-a829-7aacd3f15f40"
CALL = "toolu_000000000000000000000007"
AGENT = "a8a96491f6bc8380e"
# The time that is in it: 2026-11-21 12:00:05 UTC, five seconds after a test's clock starts.
THREAD = "01a1fdfa-5988-7a20-a898-3837293bb447"

Line = Mapping[str, Any]


def write(path: Path, lines: Iterable[Line | bytes]) -> Path:
    """One JSON line for each; bytes as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = [one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in lines]
    path.write_bytes(b"".join(raw))
    return path


def claude_path(home: Path, worktree: str, session: str = SESSION) -> Path:
    """Where Claude Code keeps a session of a working directory."""
    folder = re.sub("[^A-Za-z0-9]", "-", worktree)
    return home / ".claude" / "projects" / folder / f"{session}.jsonl"


def agent_path(main: Path, agent: str = AGENT) -> Path:
    """Where it keeps what an agent did that this session started."""
    return main.with_suffix("") / "subagents" / f"agent-{agent}.jsonl"


def said(worktree: str, text: str = "Hello.", session: str = SESSION, **more: Any) -> Line:
    """One message of the model."""
    message = {"id": "msg_1", "role": "assistant", "content": [{"type": "text", "text": text}]}
    told = {"sessionId": session, "cwd": worktree, "timestamp": "2026-11-21T12:00:10.000Z"}
    return {"type": "assistant", "message": message, "uuid": "u-1", **told, **more}


def codex_path(home: Path, thread: str = THREAD, day: str = "2026/11/21") -> Path:
    """Where Codex keeps a session."""
    name = f"rollout-{day.replace('/', '-')}T12-00-05-{thread}.jsonl"
    return home / ".codex" / "sessions" / day / name


def codex_meta(worktree: str, thread: str = THREAD) -> Line:
    """The first line of one of Codex's records."""
    payload = {"id": thread, "session_id": thread, "cwd": worktree, "cli_version": "0.169.0"}
    return {"timestamp": "2026-11-21T12:00:05.000Z", "type": "session_meta", "payload": payload}
