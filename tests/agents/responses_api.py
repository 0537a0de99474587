"""The OpenAI Responses API as Codex uses it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

from tests.agents.script import Refuse, Say, Shell, Step

USAGE = {
    "input_tokens": 120,
    "input_tokens_details": {"cached_tokens": 20},
    "output_tokens": 10,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 130,
}
_numbers = itertools.count(1)


def is_conversation(body: Mapping[str, Any]) -> bool:
    """Whether it is work; Codex asks for nothing else."""
    return bool(body.get("tools"))


def first_words(body: Mapping[str, Any]) -> str:
    """All that users said: the task comes after what Codex puts before it."""
    return "\n".join(
        str(part.get("text", ""))
        for item in body.get("input") or []
        if isinstance(item, dict) and item.get("role") == "user"
        for part in item.get("content") or []
        if isinstance(part, dict)
    )


def events(step: Step, body: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The answer as server-sent events."""
    answer = whole(step, body)
    item = answer["output"][0]
    open_answer = {**answer, "status": "in_progress", "output": [], "usage": None}
    found = [
        {"type": "response.created", "response": open_answer},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": answer},
    ]
    return [(str(one["type"]), {**one, "sequence_number": n}) for n, one in enumerate(found)]


def whole(step: Step, body: Mapping[str, Any]) -> dict[str, Any]:
    """The answer as one response."""
    number = next(_numbers)
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": body.get("model", "scripted"),
        "output": [_item(step, body, number)],
        "usage": USAGE,
    }


def error(step: Refuse) -> Mapping[str, Any]:
    """The body of an error."""
    return {"error": {"type": step.kind, "code": step.kind, "message": step.message}}


def _item(step: Step, body: Mapping[str, Any], number: int) -> dict[str, Any]:
    if isinstance(step, Say):
        content = [{"type": "output_text", "text": step.text, "annotations": []}]
        return {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
    if isinstance(step, Shell):
        name, given = _call(step.command, body)
        if step.reason:
            wanted = {"sandbox_permissions": "require_escalated", "justification": step.reason}
            given = {**given, **wanted}
        return {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": f"call_{number}",
            "name": name,
            "arguments": json.dumps(given),
            "status": "completed",
        }
    raise AssertionError(step)


def _call(command: str, body: Mapping[str, Any]) -> tuple[str, Mapping[str, object]]:
    """The shell tool that was offered, which differs from model to model."""
    names = {str(tool.get("name")) for tool in body.get("tools") or []}
    if "exec_command" in names:
        return "exec_command", {"cmd": command, "yield_time_ms": 30_000}
    if "shell_command" in names:
        return "shell_command", {"command": command}
    return "shell", {"command": ["bash", "-lc", command]}
