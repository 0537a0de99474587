"""The lines of Claude Code: of its own record, and of what it prints with `--output-format stream-json`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runs.conversation import rules
from runs.conversation.rules import Edit, Kind, Message
from runs.core import lenient_json
from runs.core.lenient_json import Entry
from runs.transcript import claude_lines, rendering

_EDITS = {"Edit", "MultiEdit", "Write", "NotebookEdit"}


def messages(entry: Entry) -> Sequence[Message]:
    """What one line tells; none when it has no type.

    What is said and done stands in a few kinds of lines. All others the program keeps for itself, and
    each version adds some (2.1.332 its requests), so that they are notes without a list of them.
    """
    kind = entry.get("type")
    if not isinstance(kind, str):
        return ()
    make = _MAKERS.get(kind)
    return make(entry) if make is not None else [rules.note(entry)]


def _frame(entry: Entry) -> dict[str, Any]:
    """What every message of a line has in common."""
    parent = lenient_json.word(entry, "parent_tool_use_id")
    if not parent and entry.get("isSidechain") is True:
        parent = lenient_json.word(entry, "agentId") or "sidechain"
    return {"at": rules.moment(entry.get("timestamp")), "parent": parent}


def _assistant(entry: Entry) -> Sequence[Message]:
    frame = _frame(entry)
    is_error = entry.get("isApiErrorMessage") is True or bool(lenient_json.line(entry, "error"))
    ident = lenient_json.word(entry, "message", "id")
    frame |= {
        "message": ident,
        "tokens": claude_lines.tokens_of(lenient_json.at(entry, "message", "usage")),
    }
    found = []
    for part in lenient_json.items(entry, "message", "content"):
        match part.get("type"):
            case "text" if is_error:
                found.append(Message(Kind.ERROR, rules.words(part, "text"), at=frame["at"]))
            case "text":
                found.append(Message(Kind.WORDS, rules.words(part, "text"), **frame))
            case "thinking" | "redacted_thinking":
                found.append(Message(Kind.THOUGHT, rules.words(part, "thinking"), **frame))
            case "tool_use" | "server_tool_use" | "mcp_tool_use":
                found.append(_call(part, frame))
            case _:
                found.append(Message(Kind.UNKNOWN, rules.pretty(part), **frame))
    return [one for one in found if one.text or one.kind is not Kind.WORDS]


def _call(part: Entry, frame: Mapping[str, Any]) -> Message:
    given = part.get("input")
    given = given if isinstance(given, dict) else {}
    tool = lenient_json.line(part, "name", limit=80)
    return Message(
        Kind.CALL,
        tool=tool,
        call=lenient_json.word(part, "id"),
        given=given,
        edits=tuple(_asked(tool, given)),
        todos=rules.todos(given.get("todos"), "content", "status") if tool == "TodoWrite" else None,
        **frame,
    )


def _asked(tool: str, given: Entry) -> list[Edit]:
    """What an edit would change, from what it was given alone."""
    path = rules.words(given, "file_path")
    if tool not in _EDITS or not path:
        return []
    if tool == "Write":
        found = [rules.edit_of(path, "", rules.words(given, "content"), is_new=True)]
    else:
        pairs = lenient_json.items(given, "edits") or [given]
        texts = [(rules.words(one, "old_string"), rules.words(one, "new_string")) for one in pairs]
        found = [rules.edit_of(path, old, new) for old, new in texts]
    return [one for one in found if one is not None]


def _user(entry: Entry) -> Sequence[Message]:
    frame = _frame(entry)
    content = lenient_json.at(entry, "message", "content")
    if isinstance(content, str):
        said = rules.clean(content)
        return _finished(entry, said, frame) or [_told(entry, said, frame)]
    found: list[Message] = []
    for part in lenient_json.items(content):
        match part.get("type"):
            case "text":
                said = rules.words(part, "text")
                found += _finished(entry, said, frame) or [_told(entry, said, frame)]
            case "tool_result":
                found.append(_result(entry, part, frame))
            case "image" | "document":
                found.append(Message(Kind.PROMPT, images=(_image(part),), **frame))
            case _:
                found.append(Message(Kind.UNKNOWN, rules.pretty(part), **frame))
    return found


def _told(entry: Entry, text: str, frame: Mapping[str, Any]) -> Message:
    """Words that the agent was told: by a person or labsite, or by the program itself."""
    if entry.get("isCompactSummary") is True:
        return Message(Kind.BREAK, text, **frame)
    if entry.get("isMeta") is True or text.startswith(("<local-command", "<command-name>")):
        return Message(Kind.NOTE, text, tool="user", **frame)
    return Message(Kind.PROMPT, text, **frame)


_NOTIFICATION = "task-notification"


def _finished(entry: Entry, text: str, frame: Mapping[str, Any]) -> list[Message]:
    """What came back from the background, which the main agent is told as words of its user.

    What else stands there it is told as ever.
    """
    if not text.lstrip().startswith(f"<{_NOTIFICATION}>"):
        return []
    found: list[Message] = []
    for one in text.split(f"<{_NOTIFICATION}>")[1:]:
        inside, end, after = one.rpartition(f"</{_NOTIFICATION}>")
        told, after = (inside, after.strip()) if end else (one, "")
        found.append(
            Message(
                Kind.FINISHED,
                _tagged(told, "result"),
                tool=lenient_json.line(_tagged(told, "summary"), limit=200),
                call=lenient_json.word(_tagged(told, "tool-use-id")),
                is_failed=_is_failed(_tagged(told, "status")),
                **frame,
            )
        )
        found += [_told(entry, after, frame)] if after else []
    return found


def _tagged(text: str, name: str) -> str:
    """What stands between a tag and its end; empty without one."""
    return text.partition(f"<{name}>")[2].partition(f"</{name}>")[0].strip()


def _is_failed(status: str) -> bool | None:
    return status != "completed" if status else None


def _result(entry: Entry, part: Entry, frame: Mapping[str, Any]) -> Message:
    content = part.get("content")
    parts = lenient_json.items(content)
    text = rules.clean(content) if isinstance(content, str) else ""
    texts = [rules.words(one, "text") for one in parts if one.get("type") != "image"]
    told = entry.get("toolUseResult", entry.get("tool_use_result"))
    is_failed = part.get("is_error") is True
    return Message(
        Kind.RESULT,
        text or "\n".join(one for one in texts if one),
        call=lenient_json.word(part, "tool_use_id"),
        images=tuple(_image(one) for one in parts if one.get("type") == "image"),
        edits=tuple(_done(told)),
        exit_code=_exit_code(text) if is_failed else None,
        is_failed=is_failed,
        **frame,
    )


def _done(told: object) -> list[Edit]:
    """What an edit changed, as its result tells it."""
    path = rules.words(told, "filePath")
    if not path:
        return []
    hunks = [_hunk(one) for one in lenient_json.items(told, "structuredPatch")]
    if not hunks and lenient_json.at(told, "type") == "create":
        made = rules.edit_of(path, "", rules.words(told, "content"), is_new=True)
        return [made] if made else []
    return [Edit(path, "".join(hunks))] if hunks else []


def _hunk(found: Entry) -> str:
    old, new, was, now = (
        lenient_json.count(found, name) or 0
        for name in ("oldStart", "newStart", "oldLines", "newLines")
    )
    lines = found.get("lines")
    shown = [rules.clean(one) for one in lines if isinstance(one, str)] if lines else []
    body = "".join(f"{line}\n" for line in shown)
    return f"@@ -{old},{was} +{new},{now} @@\n{body}"


def _exit_code(text: str) -> int | None:
    first = text.partition("\n")[0]
    number = first.removeprefix("Exit code ")
    return int(number) if number != first and number.isdecimal() and len(number) < 5 else None


def _image(part: Entry) -> str:
    """What an image is, in words: it is not shown."""
    kind = lenient_json.line(part, "source", "media_type", limit=40) or "image"
    data = lenient_json.at(part, "source", "data")
    size = f", {len(data) * 3 // 4000} kB" if isinstance(data, str) else ""
    return f"{kind}{size}"


def _system(entry: Entry) -> Sequence[Message]:
    frame = _frame(entry)
    subtype = entry.get("subtype")
    if subtype in ("compact_boundary", "microcompact_boundary"):
        tokens = lenient_json.count(entry, "compactMetadata", "preTokens")
        return [Message(Kind.BREAK, f"{tokens:,} tokens" if tokens else "", **frame)]
    if subtype == "api_retry":
        return [Message(Kind.ERROR, rendering.retry_words(entry), **frame)]
    if subtype == "api_error":
        said = rules.words(entry, "error", "message") or rules.words(entry, "content")
        return [Message(Kind.ERROR, said or rules.pretty(entry.get("error")), **frame)]
    if subtype == "task_notification":
        return [_finished_in_print(entry, frame)]
    return [rules.note(entry)]


def _finished_in_print(entry: Entry, frame: Mapping[str, Any]) -> Message:
    """The same as it is printed: an agent's summary may be its whole report."""
    summary = rules.words(entry, "summary")
    is_report = entry.get("summary_is_report") is True
    return Message(
        Kind.FINISHED,
        summary if is_report else "",
        tool="" if is_report else lenient_json.line(summary, limit=200),
        call=lenient_json.word(entry, "tool_use_id"),
        is_failed=_is_failed(lenient_json.word(entry, "status")),
        **frame,
    )


def _end(entry: Entry) -> Sequence[Message]:
    """The last line of what was printed."""
    error = rendering.claude_error(entry)
    if error is not None:
        return [Message(Kind.ERROR, error)]
    return [rules.note(entry)]


_MAKERS: Mapping[str, Callable[[Entry], Sequence[Message]]] = {
    "assistant": _assistant,
    "user": _user,
    "system": _system,
    "result": _end,
    rendering.STDERR: lambda entry: [Message(Kind.NOTE, rules.words(entry, "text"), tool="stderr")],
    rendering.CUT: lambda _: [Message(Kind.BREAK, "It was too long: a part was left out here.")],
}
