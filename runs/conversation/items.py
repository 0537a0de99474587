"""What a page shows of some lines: calls joined with their results, quiet lines together. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from runs.conversation import rules
from runs.conversation.reading import Line
from runs.conversation.rules import Kind, Message, Todo, Tool
from runs.transcript.token_usage import Tokens

MOST_OPEN = 20  # calls without a result that a live page looks after
_SHOWN_ALONE = ("command", "cmd")


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of the page: a message, a tool with what came back, or quiet lines together.

    `at` and `part` are its place: the line's first byte, and which of its messages.
    """

    at: int
    part: int
    message: Message
    tool: Tool | None = None
    output: tuple[int, int] = (0, 0)
    notes: tuple[tuple[int, int, Message], ...] = ()
    tokens: Tokens | None = None
    inner: Sequence[Item] = field(default_factory=list)

    @property
    def ident(self) -> str:
        """Its id on the page."""
        return f"m{self.at}-{self.part}"

    @property
    def kind(self) -> str:
        """Which template shows it."""
        return "tool" if self.tool else self.message.kind.value

    @property
    def when(self) -> datetime | None:
        return self.message.at

    @property
    def is_running(self) -> bool:
        return self.tool is not None and self.tool.result is None

    @property
    def took(self) -> timedelta | None:
        """How long a tool worked, where both times are told and it was noticeable."""
        if self.tool is None or self.tool.result is None:
            return None
        began, ended = self.tool.call.at, self.tool.result.at
        spent = ended - began if began and ended else None
        return spent if spent and spent >= timedelta(seconds=1) else None


Place = tuple[int, int]
Placed = tuple[int, int, Message]


def places(lines: Sequence[Line]) -> Iterator[Placed]:
    """Each message with its place."""
    for line in lines:
        for part, message in enumerate(line.messages):
            yield line.at, part, message


def of(lines: Sequence[Line], late: Sequence[Line] = ()) -> list[Item]:
    """The entries of these lines. What an agent did that a call started stands under that call.

    `late`: lines that follow, in which the results of calls are looked for.
    """
    placed = list(places(lines))
    joined = _Joined(placed)
    for one in placed:
        joined.add(one)
    for one in places(late):
        joined.add_late(one)
    return _items(joined.own, joined)


class _Joined:
    """Messages by where they are shown: on their own, as a call's result, or under a call.

    A call is known by its place: its id was written by an agent, and may stand for several or be empty.
    """

    def __init__(self, placed: Sequence[Placed]) -> None:
        self.own: list[Placed] = []
        self.results: dict[Place, list[Placed]] = {}
        self.inner: dict[Place, list[Placed]] = {}
        self._newest: dict[str, Placed] = {}  # the calls so far, by their ids
        self._roots: dict[str, Place] = {}  # those of them that stand on their own
        calls = [one for _, _, one in placed if one.kind is Kind.CALL and one.call]
        self._parents = {one.call: one.parent for one in reversed(calls)}

    def add(self, placed: Placed) -> None:
        """Put the next message where it belongs; a call that is told again is there already."""
        at, part, message = placed
        # Without an id, what stands on one line belongs together.
        name = message.call or f"line {at}"
        call = self._newest.get(name)
        if message.kind is Kind.RESULT and call is not None:
            self.results.setdefault(call[:2], []).append(placed)
            return
        if message.kind is Kind.CALL:
            if call is not None and message.call and call[2].given == message.given:
                return
            self._newest[name] = placed
        root = self._roots.get(self._outermost(message.parent))
        if root is not None:
            self.inner.setdefault(root, []).append(placed)
            return
        self.own.append(placed)
        if message.kind is Kind.CALL and message.call:
            self._roots[message.call] = (at, part)

    def add_late(self, placed: Placed) -> None:
        """Take of a message that follows only what it tells of the calls that are here."""
        message = placed[2]
        call = self._newest.get(message.call)
        if call is None:
            return
        if message.kind is Kind.RESULT:
            self.results.setdefault(call[:2], []).append(placed)
        elif message.kind is Kind.CALL and message.given != call[2].given:
            del self._newest[message.call]  # another call with the same id

    def _outermost(self, parent: str) -> str:
        """The first of the calls above a message; empty when one of them is its own ancestor."""
        seen: set[str] = set()
        while self._parents.get(parent) in self._parents:
            if parent in seen:
                return ""
            seen.add(parent)
            parent = self._parents[parent]
        return parent


def _items(placed: Sequence[Placed], joined: _Joined) -> list[Item]:
    found: list[Item] = []
    answer = ""
    for at, part, message in placed:
        if message.kind is Kind.USAGE:
            _give_tokens(found, message)
            continue
        if message.kind is Kind.NOTE:
            _add_note(found, (at, part, message))
            continue
        # Each part of one answer tells the tokens of the whole: they stand at its first.
        tokens = message.tokens if not message.message or message.message != answer else None
        answer = message.message or answer
        item = Item(at, part, message, tokens=tokens)
        found.append(_with_result(item, joined) if message.kind is Kind.CALL else item)
    return found


def _with_result(item: Item, joined: _Joined) -> Item:
    call, place = item.message, (item.at, item.part)
    told = joined.results.get(place, ())
    result = rules.merged([one for _, _, one in told])
    below = _items(joined.inner.get(place, ()), joined)
    # The place of the words that are shown, so that the whole of them can be asked for.
    shown = next(((a, p) for a, p, one in told if result and one.text == result.text), (0, 0))
    return replace(item, tool=Tool(call, result), output=shown, inner=below)


def _give_tokens(found: list[Item], usage: Message) -> None:
    """What is told after an answer belongs to it: to the last thing that the model said or did."""
    for number in range(len(found) - 1, -1, -1):
        if found[number].message.kind in (Kind.WORDS, Kind.CALL, Kind.THOUGHT):
            if found[number].tokens is None:
                found[number] = replace(found[number], tokens=usage.tokens)
            return


def _add_note(found: list[Item], place: Placed) -> None:
    at, part, message = place
    if found and found[-1].notes:
        found[-1] = replace(found[-1], notes=(*found[-1].notes, place))
    else:
        found.append(Item(at, part, message, notes=(place,)))


def first_whole(lines: Sequence[Line]) -> int:
    """How many of the first lines only answer calls that stand before them: not begun with those."""
    calls: set[str] = set()
    for number, line in enumerate(lines):
        kinds = {one.kind for one in line.messages}
        calls |= {one.call for one in line.messages if one.kind is Kind.CALL}
        if not kinds <= {Kind.RESULT, Kind.USAGE, Kind.NOTE}:
            return number
        if any(one.kind is Kind.RESULT and one.call in calls for one in line.messages):
            return number
    return 0


def settled(lines: Sequence[Line], end: int) -> int:
    """The place before which nothing changes any more: the first call that still runs, or the end."""
    waiting: dict[str, int] = {}
    for at, _, message in places(lines):
        if message.kind is Kind.CALL and message.call:
            waiting.setdefault(message.call, at)
        elif message.kind is Kind.RESULT:
            waiting.pop(message.call, None)
    if not waiting or len(waiting) > MOST_OPEN:
        return end
    return min(waiting.values())


def input_of(call: Message) -> tuple[str, str]:
    """What a tool was given: a command as it is, and the rest as JSON."""
    given = dict(call.given)
    for name in _SHOWN_ALONE:
        command = given.pop(name, None)
        if command is not None:
            given.pop("description", None)
            words = command if isinstance(command, str) else " ".join(map(str, command))
            return rules.clean(words), rules.pretty(given) if given else ""
    if call.edits or call.todos is not None:
        return "", ""
    if given.keys() == {"input"}:  # a text and not an object was given
        return "", rules.words(given, "input") or rules.pretty(given["input"])
    return "", rules.pretty(given) if given else ""


# What a line has in it that may change the list, in small letters.
OF_TODOS = (
    *(b'"todowrite"', b'"taskcreate"', b'"taskupdate"', b'"update_plan"', b'"todo_list"'),
    *(b'"task #', b'"content":"#', b"no such tool available: task"),
)
_LISTED = re.compile(r"^#(\d{1,5}) \[(\w+)\] (.+)$", re.MULTILINE)
_MADE = re.compile(r"^Task #(\d{1,5}) created")


def todos(lines: Sequence[Line], *, is_agents: bool = False) -> tuple[Todo, ...] | None:
    """The agent's list of things to do as these lines leave it; None when they tell of none.

    What an agent did that it started is passed over, but in that agent's own record. A list comes whole,
    or one entry at a time: made with a text, then changed under its number. A change that was refused
    is none: Claude Code 2.1.332 gives its newest models no such tool.
    """
    found: dict[str, Todo] | None = None
    made: dict[str, str] = {}
    placed = [message for _, _, message in places(lines)]
    refused = {one.call for one in placed if one.kind is Kind.RESULT and one.is_failed}
    for message in placed:
        if (message.parent and not is_agents) or (message.call and message.call in refused):
            continue
        if message.todos is not None:
            found = {str(number): todo for number, todo in enumerate(message.todos, 1)}
        elif message.tool == "TaskCreate":
            made[message.call] = rules.words(message.given, "subject")
        elif message.tool == "TaskUpdate":
            found = _changed(found or {}, message)
        elif message.kind is Kind.RESULT:
            found = _told(found, message.text, made.pop(message.call, ""))
    return tuple(found.values()) if found is not None else None


def _told(found: dict[str, Todo] | None, text: str, made: str) -> dict[str, Todo] | None:
    """The list after what a tool gave back: one entry more, or all of them."""
    number = _MADE.match(text)
    if made and number:
        return {**(found or {}), number[1]: Todo(made, "pending")}
    listed = _LISTED.findall(text) if text.startswith("#") else ()
    return {name: Todo(words, state) for name, state, words in listed} or found


def _changed(found: Mapping[str, Todo], message: Message) -> dict[str, Todo]:
    number, state = str(message.given.get("taskId", "")), rules.words(message.given, "status")
    if not number or state == "deleted":
        return {name: todo for name, todo in found.items() if name != number}
    before = found.get(number, Todo(f"Task {number}", "pending"))
    text = rules.words(message.given, "subject") or before.text
    return {**found, number: Todo(text, state or before.state)}
