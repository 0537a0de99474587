"""The lines of Codex: of its own record (a rollout), and of what `codex exec --json` prints."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from runs.conversation import rules
from runs.conversation.rules import Edit, Kind, Message
from runs.core import lenient_json
from runs.core.lenient_json import Entry
from runs.transcript import rendering
from runs.transcript.usage_rules import codex_tokens

# Its head lines. Each can be read in one way only: with two, a long output takes for ever.
_HEAD = re.compile(r"\A(?:[A-Z][A-Za-z ]+:[^\n]*\n|Process exited[^\n:]*\n)*?Output:\n")
_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,5})$", re.MULTILINE)
# What stands in the place of a user's words but comes from the program.
_OWN = ("<environment_context>", "<user_instructions>", "# AGENTS.md", "<turn_aborted>", "<skill")


def messages(entry: Entry) -> Sequence[Message]:
    """What one line of its own record tells; none when its type is not known."""
    payload, at = entry.get("payload"), rules.moment(entry.get("timestamp"))
    kind = entry.get("type")
    if not isinstance(payload, dict):
        return ()
    if kind == "response_item":
        make = _ITEMS.get(str(payload.get("type")))
        return [replace(one, at=at) for one in make(payload)] if make else ()
    if kind == "event_msg":
        make = _EVENTS.get(str(payload.get("type")))
        return [replace(one, at=at) for one in make(payload)] if make else [rules.note(entry)]
    if kind == "compacted":
        return [Message(Kind.BREAK, rules.words(payload, "message"), at)]
    if kind == "token_usage_record":
        tokens = codex_tokens(payload.get("usage"))
        return [Message(Kind.USAGE, at=at, tokens=tokens)] if tokens else [rules.note(entry)]
    # What was said and done stands in the lines above; each version has some more for itself.
    return [rules.note(entry)] if isinstance(kind, str) else ()


def _message(item: Entry) -> Sequence[Message]:
    text = "\n\n".join(rules.words(one, "text") for one in lenient_json.items(item, "content"))
    images = tuple(
        "image" for one in lenient_json.items(item, "content") if one.get("type") == "input_image"
    )
    role = item.get("role")
    if role == "assistant":
        return [Message(Kind.WORDS, text)]
    if role == "user" and not text.lstrip().startswith(_OWN):
        return [Message(Kind.PROMPT, text, images=images)]
    return [Message(Kind.NOTE, text, tool=lenient_json.line(item, "role", limit=40))]


def _reasoning(item: Entry) -> Sequence[Message]:
    """What it thought, as far as that is told: often it is there in secret letters alone."""
    parts = [*lenient_json.items(item, "summary"), *lenient_json.items(item, "content")]
    return [Message(Kind.THOUGHT, "\n\n".join(rules.words(one, "text") for one in parts))]


def _function_call(item: Entry) -> Sequence[Message]:
    raw = item.get("arguments", item.get("input"))
    given = _given(raw)
    tool = lenient_json.line(item, "name", limit=80)
    plan = rules.todos(given.get("plan"), "step", "status") if tool == "update_plan" else None
    call = lenient_json.word(item, "call_id") or lenient_json.word(item, "id")
    return [Message(Kind.CALL, tool=tool, call=call, given=given, todos=plan)]


def _given(raw: object) -> Entry:
    """The arguments of a call: an object, which `rules.parsed` read where it came in a text, or a text."""
    return raw if isinstance(raw, dict) else {"input": raw} if isinstance(raw, str) else {}


def _shell_call(item: Entry) -> Sequence[Message]:
    action = item.get("action")
    call = lenient_json.word(item, "call_id") or lenient_json.word(item, "id")
    given = action if isinstance(action, dict) else {}
    return [Message(Kind.CALL, tool="shell", call=call, given=given)]


def _search_call(item: Entry) -> Sequence[Message]:
    action = item.get("action")
    call = lenient_json.word(item, "id")
    given = action if isinstance(action, dict) else {}
    made = Message(Kind.CALL, tool="web_search", call=call, given=given)
    return [made, Message(Kind.RESULT, call=call, is_failed=False)]


def _output(item: Entry) -> Sequence[Message]:
    output = item.get("output")
    text = rules.words(item, "output") or rules.words(output, "content")
    if not text and isinstance(output, list):
        text = "\n".join(rules.words(one, "text") for one in lenient_json.items(output))
    status = _EXIT.search(text[:400])
    code = int(status[1]) if status else None
    shown = _HEAD.sub("", text)
    failed = None if code is None else code != 0
    call = lenient_json.word(item, "call_id")
    return [Message(Kind.RESULT, shown, call=call, exit_code=code, is_failed=failed)]


def _completed(payload: Entry) -> Sequence[Message]:
    """What was done is told once more with its status; what was said is told already."""
    item = payload.get("item")
    kind, call = lenient_json.at(item, "type"), lenient_json.word(item, "id")
    if kind == "CommandExecution":
        code = _status(item)
        text = rules.words(item, "aggregated_output")
        failed = None if code is None else code != 0
        return [Message(Kind.RESULT, text, call=call, exit_code=code, is_failed=failed)]
    if kind == "FileChange":
        failed = lenient_json.at(item, "status") not in ("completed", None)
        text = rules.words(item, "stdout") + rules.words(item, "stderr")
        edits = tuple(_changed(lenient_json.at(item, "changes")))
        return [Message(Kind.RESULT, text, call=call, edits=edits, is_failed=failed)]
    if kind == "ContextCompaction":
        return [Message(Kind.BREAK)]
    return [rules.note({"type": "event_msg", "payload": payload})]


def _status(item: object) -> int | None:
    found = lenient_json.at(item, "exit_code")
    return found if type(found) is int and abs(found) < 2**31 else None


def _changed(changes: object) -> list[Edit]:
    """The files of one change, by path."""
    found: list[Edit | None] = []
    for path, how in changes.items() if isinstance(changes, dict) else ():
        name, kind = lenient_json.line(path, limit=1000), lenient_json.at(how, "type")
        if kind == "update":
            found.append(Edit(name, rules.words(how, "unified_diff")))
        elif kind == "add":
            found.append(rules.edit_of(name, "", rules.words(how, "content"), is_new=True))
        elif kind == "delete":
            gone = rules.edit_of(name, rules.words(how, "content"), "")
            found.append(replace(gone, is_gone=True) if gone else None)
    return [one for one in found if one is not None]


def _failed(payload: Entry) -> Sequence[Message]:
    said = rules.words(payload, "message") or rules.words(payload, "reason")
    return [Message(Kind.ERROR, said or lenient_json.line(payload, "type").replace("_", " "))]


def _broken(_: Entry) -> Sequence[Message]:
    return [Message(Kind.BREAK)]


Maker = Callable[[Entry], Sequence[Message]]
_ITEMS: Mapping[str, Maker] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _function_call,
    "custom_tool_call": _function_call,
    "mcp_tool_call": _function_call,
    "local_shell_call": _shell_call,
    "web_search_call": _search_call,
    "function_call_output": _output,
    "custom_tool_call_output": _output,
    "mcp_tool_call_output": _output,
    "compaction": _broken,
}
_EVENTS: Mapping[str, Maker] = {
    "item_completed": _completed,
    "error": _failed,
    "stream_error": _failed,
    "turn_aborted": _failed,
    "context_compacted": _broken,
}


def printed(entry: Entry) -> Sequence[Message]:
    """What one line that `codex exec --json` prints tells; none when its type is not known."""
    kind = entry.get("type")
    if kind in ("item.started", "item.updated", "item.completed"):
        return _printed_item(str(kind), entry)
    if kind in ("error", "turn.failed"):
        return [Message(Kind.ERROR, rendering.codex_error(entry))]
    if kind == rendering.STDERR:
        return [Message(Kind.NOTE, rules.words(entry, "text"), tool="stderr")]
    if kind == rendering.CUT:
        return [Message(Kind.BREAK, "It was too long: a part was left out here.")]
    if kind == "turn.completed":
        tokens = codex_tokens(entry.get("usage"))
        return [Message(Kind.USAGE, tokens=tokens)] if tokens else [rules.note(entry)]
    return [rules.note(entry)] if isinstance(kind, str) else ()


def _printed_item(kind: str, entry: Entry) -> Sequence[Message]:
    item = entry.get("item")
    what, call = lenient_json.at(item, "type"), lenient_json.word(item, "id")
    make = _PRINTED.get(str(what))
    if make is None or not isinstance(item, dict):
        return ()
    return make(item, call, kind)


def _printed_words(item: Entry, _call: str, kind: str) -> Sequence[Message]:
    of = {"reasoning": Kind.THOUGHT, "error": Kind.ERROR}.get(str(item.get("type")), Kind.WORDS)
    text = rules.words(item, "text") or rules.words(item, "message")
    return [Message(of, text)] if kind == "item.completed" else [Message(Kind.NOTE, text)]


def _printed_call(item: Entry, call: str, kind: str) -> Sequence[Message]:
    """A call and its result; what has no beginning of its own is told whole at its end."""
    has_begun = item.get("type") in ("command_execution", "mcp_tool_call", "file_change")
    made = Message(Kind.CALL, tool=_tool(item), call=call, given=_asked(item))
    if kind != "item.completed":
        is_call = has_begun and kind == "item.started"
        return [made] if is_call else [rules.note({"type": kind, "item": item})]
    code = _status(item)
    failed = item.get("status") == "failed" if code is None else code != 0
    text = rules.words(item, "aggregated_output") or rules.pretty(item.get("result") or "")
    result = Message(
        Kind.RESULT, text.strip('"'), call=call, exit_code=code, is_failed=bool(failed)
    )
    return [result] if has_begun else [made, result]


def _tool(item: Entry) -> str:
    if item.get("type") == "mcp_tool_call":
        names = (lenient_json.line(item, name, limit=60) for name in ("server", "tool"))
        return ".".join(name for name in names if name)
    return {"command_execution": "shell"}.get(str(item.get("type")), str(item.get("type")))


def _asked(item: Entry) -> Entry:
    if item.get("type") == "file_change":
        paths = [lenient_json.line(one, "path") for one in lenient_json.items(item, "changes")]
        return {"path": ", ".join(paths)}
    names = ("command", "query", "arguments")
    return {name: item[name] for name in names if item.get(name) is not None}


def _printed_plan(item: Entry, call: str, _kind: str) -> Sequence[Message]:
    listed: Any = [
        {"step": one.get("text"), "status": "completed" if one.get("completed") else "pending"}
        for one in lenient_json.items(item, "items")
    ]
    plan = rules.todos(listed, "step", "status")
    return [Message(Kind.CALL, tool="update_plan", call=call, todos=plan)]


_PRINTED: Mapping[str, Callable[[Entry, str, str], Sequence[Message]]] = {
    "agent_message": _printed_words,
    "reasoning": _printed_words,
    "error": _printed_words,
    "command_execution": _printed_call,
    "mcp_tool_call": _printed_call,
    "file_change": _printed_call,
    "web_search": _printed_call,
    "todo_list": _printed_plan,
}
