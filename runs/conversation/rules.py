"""The messages of a conversation, whichever program keeps it. Pure; nothing in here raises.

An agent wrote the lines, so that every field is untrusted: a text is only ever shown, an id only
compared. What is not known is a message too, so that a newer version of a program loses nothing:
a part of what was said is shown as it is, a kind of line that says nothing here is a note.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from runs.core import lenient_json
from runs.core.lenient_json import Entry
from runs.transcript.token_usage import Tokens

# A longer line is not read: it holds an image or a file that nobody reads on a page.
LINE_BYTES = 2_000_000
LEFT_OUT = "labsite.left_out"  # in the place of what a copy does not keep
MESSAGES = 199  # of one line; programs write one, or a few
PATCH_LINES = 4000
AROUND = 2  # lines that stand above and below a change
_COLOURS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_DEPTH = 40
# Half a letter, the beginning of a colour, and marks that turn or hide text, as they are or escaped.
_ODD = re.compile(
    rf"\\u(?:[dD][89a-fA-F]|001[bB]|061[cC]|180[eE]|20[026]|[fF][eE][fF][fF]|[fF]{{3}}[9abAB])|[{lenient_json.MARKS}]"
)
_ODD_ESCAPES = re.compile(_ODD.pattern.rpartition("|")[0])


class Kind(StrEnum):
    """What a message is."""

    PROMPT = "prompt"  # what the agent was told
    WORDS = "words"
    THOUGHT = "thought"
    CALL = "call"  # of a tool
    RESULT = "result"  # what the tool gave back
    ERROR = "error"  # of the service or the program
    BREAK = "break"  # the conversation was summed up, and goes on from there
    FINISHED = "finished"  # what worked in the background came back
    USAGE = "usage"  # the tokens of what stands before it
    NOTE = "note"  # what the program keeps for itself
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Edit:
    """One file that was changed: its path, and hunks as in a patch."""

    path: str
    hunks: str
    is_new: bool = False
    is_gone: bool = False

    @property
    def added(self) -> int:
        return sum(line.startswith("+") for line in self.hunks.split("\n"))

    @property
    def removed(self) -> int:
        return sum(line.startswith("-") for line in self.hunks.split("\n"))


@dataclass(frozen=True, slots=True)
class Todo:
    """One entry of the agent's own list. `state`: pending, in_progress, completed."""

    text: str
    state: str


@dataclass(frozen=True, slots=True)
class Message:
    """One thing that was said or done.

    `call` joins the call of a tool with its result. `parent`: it is of an agent that was started by
    this one, under that call, or under a name of its own where the call is not told. `exit_code`, `is_failed`, `tokens`: None when not told. `message`
    is the answer of the model to which it belongs; the tokens are those of that whole answer.
    """

    kind: Kind
    text: str = ""
    at: datetime | None = None
    tool: str = ""
    call: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)
    edits: tuple[Edit, ...] = ()
    todos: tuple[Todo, ...] | None = None
    images: tuple[str, ...] = ()
    exit_code: int | None = None
    is_failed: bool | None = None
    parent: str = ""
    message: str = ""
    tokens: Tokens | None = None


Reader = Callable[[Entry], Sequence[Message]]


def read(raw: bytes, of: Reader, mask: Callable[[str], str]) -> Sequence[Message]:
    """The messages of one line, without secrets; never raises, and never none for a line with text."""
    entry = parsed(raw, mask)
    if entry is not None and entry.get("type") == LEFT_OUT:
        size = lenient_json.count(entry, "bytes") or 0
        return [Message(Kind.UNKNOWN, "It was not kept.", tool=f"{size / 1e6:.1f} MB")]
    if entry is None:
        words = mask(clean(raw[:LINE_BYTES].decode("utf-8", "replace")))
        return [Message(Kind.UNKNOWN, words)] if words.strip() else []
    try:
        found = of(entry)
    except (RecursionError, ValueError, TypeError, OverflowError):
        found = ()
    return _bounded(found) or [unknown(entry)]


def _bounded(found: Sequence[Message]) -> Sequence[Message]:
    """The first messages of a line, and how many more it has."""
    if len(found) <= MESSAGES:
        return found
    left = f"{len(found) - MESSAGES:,} more messages stand on this line and are not shown."
    return [*found[:MESSAGES], Message(Kind.UNKNOWN, left, found[0].at, tool="a long line")]


def parsed(raw: bytes, mask: Callable[[str], str]) -> Entry | None:
    """The JSON object of a line, with every secret in it hidden; None for anything else."""
    if len(raw) > LINE_BYTES or not raw.lstrip().startswith(b"{"):
        return None
    text = raw.decode("utf-8", "replace")
    try:
        found, inner = _with_arguments(_loaded(text))
        # It holds a secret, half a letter that no answer can carry, or a colour or a mark, without
        # which a secret may stand there: each value is looked at.
        if any(mask(one) is not one or _is_odd(one) for one in (text, *inner)):
            found = _masked(found, lambda one: mask(clean(one)), 0)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _loaded(text: str) -> Any:
    """A JSON value without the numbers that no answer can carry. Raises ValueError, RecursionError."""
    return json.loads(text, parse_constant=lambda _: None, parse_float=_number)


def _with_arguments(found: Any) -> tuple[Any, list[str]]:
    """The same with the arguments of Codex's call as the object that they are, and the texts in which
    they came: these have escapes of their own."""
    payload, read = lenient_json.at(found, "payload"), []
    for name in ("arguments", "input"):
        said = lenient_json.at(payload, name)
        if isinstance(said, str) and said.startswith("{"):
            with contextlib.suppress(ValueError, RecursionError):
                payload[name] = _loaded(said)
                read.append(said)
    return found, read


def _is_odd(text: str) -> bool:
    return (_ODD_ESCAPES if text.isascii() else _ODD).search(text) is not None


def _number(text: str) -> float | None:
    found = float(text)
    return found if math.isfinite(found) else None


def _masked(value: Any, mask: Callable[[str], str], depth: int) -> Any:
    if isinstance(value, str):
        return mask(value)
    if depth > _DEPTH:
        return None
    if isinstance(value, list):
        return [_masked(one, mask, depth + 1) for one in value]
    if isinstance(value, dict):
        return {mask(str(k)): _masked(one, mask, depth + 1) for k, one in value.items()}
    return value


def unknown(entry: Entry, kind: Kind = Kind.UNKNOWN) -> Message:
    """A line as it is, under the program's own names for it."""
    names = [lenient_json.line(entry, name, limit=60) for name in ("type", "subtype")]
    inner = lenient_json.line(entry, "payload", "type", limit=60)
    title = " · ".join(name for name in (*names, inner) if name)
    return Message(kind, pretty(entry), moment(entry.get("timestamp")), tool=title)


def note(entry: Entry) -> Message:
    """The same for what the program keeps for itself."""
    return unknown(entry, Kind.NOTE)


def pretty(value: object) -> str:
    """A value as JSON that a person can read."""
    try:
        return clean(json.dumps(value, indent=2, ensure_ascii=False))
    except (ValueError, RecursionError, TypeError):
        return ""


def clean(text: str) -> str:
    """A text without colours and control characters."""
    return lenient_json.text(_COLOURS.sub("", text))


def words(value: Any, *path: str) -> str:
    """A text of an entry, clean; empty for anything else."""
    found = lenient_json.at(value, *path)
    return clean(found) if isinstance(found, str) else ""


def moment(value: object) -> datetime | None:
    """A time as JSON has it; None for anything else."""
    if not isinstance(value, str) or not 10 <= len(value) <= 40:
        return None
    try:
        when = datetime.fromisoformat(value)
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return when if when.year in lenient_json.YEARS else None


def edit_of(path: str, old: str, new: str, *, is_new: bool = False) -> Edit | None:
    """The edit that turns one text into another; None when nothing changes.

    One hunk with all between their same beginning and end: it is made of every line that is read,
    also where nobody looks at it, and a shorter one would take seconds for a text of 30 kB.
    """
    before, after = (
        text.removesuffix("\n").split("\n")[:PATCH_LINES] if text else [] for text in (old, new)
    )
    if not path or (before == after and not is_new):
        return None
    head = _same(before, after)
    tail = _same(before[head:][::-1], after[head:][::-1])
    gone, come = before[head : len(before) - tail], after[head : len(after) - tail]
    start = max(0, head - AROUND)
    above, below = before[start:head], before[len(before) - tail :][:AROUND]
    sizes = [len(above) + len(part) + len(below) for part in (gone, come)]
    was, now = (f"{start + 1 if size else 0},{size}" for size in sizes)
    signed = [(" ", above), ("-", gone), ("+", come), (" ", below)]
    lines = [f"@@ -{was} +{now} @@", *(sign + line for sign, part in signed for line in part)]
    return Edit(path, "\n".join(lines) + "\n", is_new=is_new)


def _same(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines two texts share at their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def todos(found: object, text: str, state: str) -> tuple[Todo, ...] | None:
    """A list of things to do under its program's own names; None when it is none."""
    if not isinstance(found, list):
        return None
    listed = [(words(one, text), words(one, state)) for one in lenient_json.items(found)]
    return tuple(Todo(said, how) for said, how in listed if said)[:200]


@dataclass(frozen=True, slots=True)
class Tool:
    """A call of a tool with its result, as one thing; without `result` it still runs."""

    call: Message
    result: Message | None = None

    @property
    def edits(self) -> tuple[Edit, ...]:
        """What it changed, as the result tells it; what it was asked to change until then."""
        failed = self.result is not None and self.result.is_failed
        told = self.result.edits if self.result else ()
        return told or (() if failed else self.call.edits)


def merged(results: Sequence[Message]) -> Message | None:
    """The result that several lines tell of one call: the one with a status tells its words too."""
    if not results:
        return None
    is_told = [one for one in results if one.edits or one.exit_code is not None]
    told = is_told or [results[-1]]
    edits = next((one.edits for one in results if one.edits), ())
    images = next((one.images for one in results if one.images), ())
    failed = next((one.is_failed for one in results if one.is_failed is not None), None)
    code = next((one.exit_code for one in results if one.exit_code is not None), None)
    return replace(told[0], edits=edits, images=images, is_failed=failed, exit_code=code)


_FIRST = ("command", "cmd", "file_path", "path", "notebook_path", "pattern", "url", "query")
_SECOND = ("description", "subject", "skill", "prompt", "text", "input")


def headline(call: Message, worktree: str, edits: Sequence[Edit] = ()) -> str:
    """What a call does, on one line: its command, its file, what it looks for, what it changed."""
    here = f"{worktree}/" if worktree else ""
    for name in (*_FIRST, *_SECOND):
        said = call.given.get(name)
        if name == "input" and edits:
            break
        if isinstance(said, list):
            said = " ".join(str(one) for one in said)
        line = lenient_json.line(said, limit=200)
        if line:
            return line.removeprefix(here)
    return ", ".join(edit.path.removeprefix(here) for edit in edits or call.edits)[:200]


def plain(messages: Sequence[Message]) -> Iterator[str]:
    """Every text of these messages that a search looks at."""
    for one in messages:
        if one.kind not in (Kind.NOTE, Kind.USAGE):
            yield one.text
            if one.kind is Kind.FINISHED:  # its summary, where the others have the name of a tool
                yield one.tool
            yield from (str(value) for value in one.given.values() if isinstance(value, str))
