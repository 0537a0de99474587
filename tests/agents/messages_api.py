"""The Anthropic Messages API as Claude Code uses it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

from tests.agents.script import Refuse, Say, Shell, Step, Tool

USAGE = {"input_tokens": 100, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 20}
TOKENS_OUT = 10
_numbers = itertools.count(1)


def is_conversation(body: Mapping[str, Any]) -> bool:
    """Whether it is work, and not a title or a suggestion that Claude Code asks for besides."""
    return bool(body.get("tools")) and "[SUGGESTION MODE" not in _last(body)


def first_words(body: Mapping[str, Any]) -> str:
    """The first message of the conversation, with what Claude Code puts before it."""
    messages = body.get("messages") or [{}]
    return _text(messages[0].get("content"))


def events(step: Step, body: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The answer as server-sent events."""
    message = whole(step, body)
    start = {**message, "content": [], "stop_reason": None, "usage": {**USAGE, "output_tokens": 1}}
    found: list[tuple[str, Mapping[str, Any]]] = [
        ("message_start", {"type": "message_start", "message": start})
    ]
    for index, block in enumerate(message["content"]):
        found += _block(index, block)
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    usage = {"output_tokens": TOKENS_OUT}
    found.append(("message_delta", {"type": "message_delta", "delta": delta, "usage": usage}))
    found.append(("message_stop", {"type": "message_stop"}))
    return found


def whole(step: Step, body: Mapping[str, Any]) -> dict[str, Any]:
    """The answer as one message."""
    number = next(_numbers)
    block, reason = _content(step, number)
    return {
        "id": f"msg_{number:024}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "scripted"),
        "content": [block],
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {**USAGE, "output_tokens": TOKENS_OUT},
    }


def error(step: Refuse) -> Mapping[str, Any]:
    """The body of an error."""
    return {"type": "error", "error": {"type": step.kind, "message": step.message}}


def _content(step: Step, number: int) -> tuple[dict[str, Any], str]:
    match step:
        case Say(text):
            return {"type": "text", "text": text}, "end_turn"
        case Shell(command):
            return _use("Bash", {"command": command, "description": "Work"}, number), "tool_use"
        case Tool(name, given):
            return _use(name, given, number), "tool_use"
    raise AssertionError(step)


def _use(name: str, given: Mapping[str, object], number: int) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number:024}", "name": name, "input": dict(given)}


def _block(index: int, block: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    if block["type"] == "text":
        empty: Mapping[str, Any] = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": block["text"]}
    else:
        empty = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    return [
        (
            "content_block_start",
            {"type": "content_block_start", "index": index, "content_block": empty},
        ),
        ("content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}),
        ("content_block_stop", {"type": "content_block_stop", "index": index}),
    ]


def _last(body: Mapping[str, Any]) -> str:
    messages = body.get("messages") or [{}]
    return _text(messages[-1].get("content"))


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))
