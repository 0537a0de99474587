"""Example lines of one-shot agents, written after what Claude Code 2.1.197 and Codex 0.169 print."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

Line = dict[str, Any]

SESSION = "ef2428a7-c405-4f0b-9c90-3b85490cb350"
THREAD = "01a1fd38-d5ac-7e20-befd-a242849fb65c"


def claude_init() -> Line:
    return {
        "type": "system",
        "subtype": "init",
        "cwd": "/x",
        "session_id": SESSION,
        "model": "claude-sonnet-5",
        "permissionMode": "bypassPermissions",
        "tools": ["Bash"],
    }


def claude_says(text: str, message: str = "msg_1", error: str = "") -> Line:
    """A message of the model, or with `error` the program's own before it gives up."""
    content = [{"type": "text", "text": text}]
    more = {"error": error} if error else {}
    return {"type": "assistant", "message": {"id": message, "content": content}, **more}


def claude_does(command: str, message: str = "msg_1") -> Line:
    part = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": command}}
    return {"type": "assistant", "message": {"id": message, "content": [part]}}


def claude_gets(text: str, is_error: bool = False) -> Line:
    part = {"type": "tool_result", "tool_use_id": "toolu_1", "content": text, "is_error": is_error}
    return {"type": "user", "message": {"role": "user", "content": [part]}}


def claude_retry(
    attempt: int = 1, error: str = "rate_limit", status: Any = 429, delay: Any = 2000.5
) -> Line:
    return {
        "type": "system",
        "subtype": "api_retry",
        "attempt": attempt,
        "max_retries": 2,
        "retry_delay_ms": delay,
        "error_status": status,
        "error": error,
        "session_id": SESSION,
    }


def claude_result(**more: Any) -> Line:
    usage = {
        "input_tokens": 200,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 80,
        "output_tokens": 50,
    }
    return {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "api_error_status": None,
        "num_turns": 2,
        "result": "All done.",
        "session_id": SESSION,
        "total_cost_usd": 0.001449,
        "usage": usage,
        **more,
    }


def claude_background(*kinds: str) -> Line:
    """What works in the background now, as 2.1.332 tells at each change."""
    tasks = [{"task_id": f"t{n}", "task_type": kind} for n, kind in enumerate(kinds)]
    return {"type": "system", "subtype": "background_tasks_changed", "tasks": tasks}


def claude_used_up(until: datetime) -> Line:
    """The subscription's limit, with when it is reset."""
    about = {"status": "rejected", "resetsAt": int(until.timestamp())}
    return {"type": "rate_limit_event", "rate_limit_info": about}


def claude_refused(status: int | None, text: str) -> Line:
    """A refused call: the subtype says success all the same."""
    return claude_result(
        is_error=True, api_error_status=status, result=text, num_turns=1, total_cost_usd=0
    )


def codex_thread() -> Line:
    return {"type": "thread.started", "thread_id": THREAD}


def codex_started() -> Line:
    return {"type": "turn.started"}


def codex_item(kind: str, when: str = "completed", **more: Any) -> Line:
    return {"type": f"item.{when}", "item": {"id": "item_1", "type": kind, **more}}


def codex_done() -> Line:
    usage = {
        "input_tokens": 400,
        "cached_input_tokens": 100,
        "cache_write_input_tokens": 0,
        "output_tokens": 40,
        "reasoning_output_tokens": 10,
    }
    return {"type": "turn.completed", "usage": usage}


def codex_error(message: str) -> Line:
    return {"type": "error", "message": message}


def codex_failed(message: str) -> Line:
    return {"type": "turn.failed", "error": {"message": message}}


def written(*lines: Line | bytes) -> bytes:
    """The lines as the program prints them; bytes go in as they are."""
    return b"".join(
        line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines
    )
