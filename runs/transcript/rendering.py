"""JSON lines of a one-shot agent as a person reads them. One way to show them, live and afterwards.

Standard library only: the launcher of a session uses it too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from runs.core import lenient_json
from runs.core.lenient_json import Entry

OWN = "labsite."
STDERR = f"{OWN}stderr"
CUT = f"{OWN}cut"

_COLOURS = {"says": "", "does": "36", "gets": "2", "note": "2", "warns": "33", "fails": "31"}
_FIRST, _LAST = 3, 6
_WIDE = 400
_INPUTS = ("command", "file_path", "path", "pattern", "url", "query", "description", "prompt")

Shown = list[tuple[str, str]]


def shown(entry: Entry) -> Shown:
    """The lines for one entry, each with what it is: says, does, gets, note, warns or fails."""
    kind = entry.get("type")
    make = _MAKERS.get(kind) if isinstance(kind, str) else None
    return make(entry) if make else []


def last(entry: Entry) -> str:
    """The last line that an entry shows, for a row; empty when it shows nothing."""
    for _, text in reversed(shown(entry)):
        for found in reversed(text.splitlines()):
            if any(map(str.isalnum, found)):
                return lenient_json.line(found)
    return ""


def is_note(entry: Entry) -> bool:
    """Whether an entry shows only what the program says of itself, such as that it is done."""
    return all(style == "note" for style, _ in shown(entry))


def render(entry: Entry) -> str:
    """An entry with terminal colours, each line ended; empty when it shows nothing."""
    return "".join(_coloured(style, text) for style, text in shown(entry))


def render_all(raw: bytes) -> str:
    """A whole record, or the end of one; what is no JSON object is shown as it is."""
    found = []
    for piece in raw.split(b"\n"):
        entry = lenient_json.entry(piece)
        found.append(render(entry) if entry is not None else plain(piece))
    return "".join(found)


def plain(raw: bytes) -> str:
    """A line that is no JSON object: as it is when it is text, nothing for a broken object."""
    if raw.lstrip().startswith((b"{", b"[")):
        return ""
    text = lenient_json.text(raw[: lenient_json.TEXT_LIMIT].decode("utf-8", "replace")).rstrip()
    return f"{text}\n" if text else ""


def _coloured(style: str, text: str) -> str:
    code = _COLOURS[style]
    lines = text.strip("\n").split("\n")
    return "".join(f"\x1b[{code}m{line}\x1b[0m\n" if code else f"{line}\n" for line in lines)


def _some(text: str) -> str:
    """The first lines of what a tool gave back, and the last ones: a failure is told at the end."""
    lines = [line[:_WIDE] for line in text.strip().splitlines() if line.strip()]
    left_out = len(lines) - _FIRST - _LAST
    if left_out > 1:
        lines[_FIRST:-_LAST] = [f"… {left_out} more lines …"]
    return "\n".join(f"  {line}" for line in lines)


def _some_of(style: str, text: str) -> Shown:
    found = _some(text)
    return [(style, found)] if found else []


def _claude_system(entry: Entry) -> Shown:
    if entry.get("subtype") == "init":
        words = [
            lenient_json.line(entry, "model"),
            f"session {lenient_json.word(entry, 'session_id')}",
        ]
        return [("note", " · ".join(word for word in words if word))]
    if entry.get("subtype") == "api_retry":
        return [("warns", f"! {retry_words(entry)}")]
    return []


def retry_words(entry: Entry) -> str:
    """What Claude Code says of a call that it tries again: why, which try, of how many."""
    why = (
        lenient_json.line(entry, "error", limit=60).replace("_", " ")
        or "the service did not answer"
    )
    status, now, most = (
        lenient_json.count(entry, name) for name in ("error_status", "attempt", "max_retries")
    )
    code = f" ({status})" if status else ""
    tries = f", try {now}" if now is not None else ""
    return f"{why}{code}{tries}{f' of {most}' if tries and most is not None else ''}"


def _claude_assistant(entry: Entry) -> Shown:
    found: Shown = []
    for part in lenient_json.items(entry, "message", "content"):
        said = lenient_json.text(part, "text") if part.get("type") == "text" else ""
        if said.strip():
            found.append(("says", said))
        elif part.get("type") == "tool_use":
            found.append(
                ("does", f"▸ {lenient_json.line(part, 'name', limit=80)}{_input_of(part)}")
            )
    return found


def _input_of(part: Entry) -> str:
    for name in _INPUTS:
        said = lenient_json.line(part, "input", name, limit=_WIDE)
        if said:
            return f": {said}"
    return ""


def _claude_user(entry: Entry) -> Shown:
    found: Shown = []
    for part in lenient_json.items(entry, "message", "content"):
        if part.get("type") == "tool_result":
            style = "fails" if part.get("is_error") is True else "gets"
            found += _some_of(style, _content(part.get("content")))
    return found


def _content(content: Any) -> str:
    if isinstance(content, str):
        return lenient_json.text(content)
    return "\n".join(lenient_json.text(one, "text") for one in lenient_json.items(content))


def _claude_result(entry: Entry) -> Shown:
    error = claude_error(entry)
    if error is not None:
        return [("fails", f"■ ended with an error: {error}")]
    turns = lenient_json.count(entry, "num_turns")
    return [("note", f"■ done{f' after {turns} turns' if turns is not None else ''}")]


def claude_error(entry: Entry) -> str | None:
    """What went wrong as a result line tells it; None for a success.

    The subtype alone is not believed: a refused call comes as `success` with `is_error`.
    """
    subtype = lenient_json.word(entry, "subtype")
    if entry.get("is_error") is not True and not subtype.startswith("error"):
        return None
    listed = entry.get("errors")
    said = [lenient_json.line(one) for one in listed] if isinstance(listed, list) else []
    words = "; ".join(one for one in said if one) or lenient_json.text(entry, "result")
    return lenient_json.line(words) or subtype.replace("_", " ") or "no reason was given"


def _codex_thread(entry: Entry) -> Shown:
    return [("note", f"session {lenient_json.word(entry, 'thread_id')}")]


def _codex_started(entry: Entry) -> Shown:
    item = entry.get("item")
    kind = lenient_json.at(item, "type")
    if kind == "command_execution":
        return [("does", f"▸ {lenient_json.line(item, 'command', limit=_WIDE)}")]
    if kind == "mcp_tool_call":
        return [
            (
                "does",
                f"▸ {lenient_json.line(item, 'server', limit=60)}.{lenient_json.line(item, 'tool')}",
            )
        ]
    if kind == "web_search":
        return [("does", f"▸ search: {lenient_json.line(item, 'query')}")]
    return []


def _codex_completed(entry: Entry) -> Shown:
    item = entry.get("item")
    kind = lenient_json.at(item, "type")
    if kind == "agent_message":
        return [("says", lenient_json.text(item, "text"))]
    if kind == "command_execution":
        failed = lenient_json.at(item, "exit_code") not in (0, None)
        return _some_of("fails" if failed else "gets", lenient_json.text(item, "aggregated_output"))
    if kind == "file_change":
        paths = [lenient_json.line(one, "path") for one in lenient_json.items(item, "changes")]
        return [("does", f"▸ changed {', '.join(paths[:8])}")]
    if kind == "error":
        return [("warns", f"! {lenient_json.line(item, 'message')}")]
    return []


def _codex_error(entry: Entry) -> Shown:
    return [("fails", f"! {codex_error(entry)}")]


def codex_error(entry: Entry) -> str:
    """What went wrong, of an `error` or a `turn.failed` line.

    The service's own answer often comes as JSON inside the text; then its message is taken.
    """
    said = lenient_json.text(entry, "message") or lenient_json.text(entry, "error", "message")
    start = said.find("{")
    inner = lenient_json.entry(said[start:].encode()) if start >= 0 else None
    told = lenient_json.line(inner, "error", "message") or lenient_json.line(inner, "message")
    before = lenient_json.line(said[:start]) if told else ""
    return lenient_json.line(f"{before} {told}" if told else said) or "no reason was given"


_MAKERS: Mapping[str, Callable[[Entry], Shown]] = {
    "system": _claude_system,
    "assistant": _claude_assistant,
    "user": _claude_user,
    "result": _claude_result,
    "thread.started": _codex_thread,
    "item.started": _codex_started,
    "item.completed": _codex_completed,
    "turn.completed": lambda _: [("note", "■ done")],
    "turn.failed": lambda entry: [("fails", f"■ ended with an error: {codex_error(entry)}")],
    "error": _codex_error,
    STDERR: lambda entry: _some_of("warns", lenient_json.text(entry, "text")),
    CUT: lambda _: [("warns", "… from here on only the end is in the record: it was too long")],
}
