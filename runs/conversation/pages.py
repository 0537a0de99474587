"""What the page of a conversation shows: one piece of one record, and where the other pieces are."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import Http404
from django.urls import reverse

from runs.conversation import items, rules
from runs.conversation.items import Item
from runs.conversation.reading import Cut, Line, Record, Span
from runs.conversation.rules import Edit, Kind, Message
from runs.core import lenient_json
from runs.core.history_ports import Change
from runs.core.ports import Lab, SeamError
from runs.models import Run
from runs.pulls import diff
from runs.pulls.diff import FileDiff
from runs.transcript import own_record
from runs.transcript.record_rules import OwnRecord
from runs.web import code
from runs.web import words as web_words

HEAD, TAIL = 3000, 1500  # characters of a long output that are shown
WORDS = 20_000
ROOM = 400  # lines of one diff
OPEN_LINES = 40  # a longer diff is folded
SIGNS = 20_000  # of Markdown in one piece: it is slow by its signs, not by its letters
AGENTS = 4  # agents whose own record is read for one page
OF_AGENT = Cut(lines=40, bytes=200_000)
LATE = Cut(
    lines=400, bytes=256 * 1024
)  # how far behind a piece the results of its calls are looked for
TODO_BYTES = 2 * 1024 * 1024
TODO_LINES = 200
_SIGN = re.compile(r"[^\w ]|_")
_MARKS = {"completed": "done", "in_progress": "now"}


@dataclass(frozen=True, slots=True)
class Asked:
    """Which piece is wanted: of which record, before a place, or from one on. Neither: the end."""

    record: str = ""
    before: int | None = None
    start: int | None = None


class Book:
    """The records of one run, one of them open."""

    def __init__(self, lab: Lab, run: Run, name: str = "") -> None:
        """`trouble`: the host that has them did not answer, and so nothing is known of them."""
        self.lab = lab.at(run.host) if run.host else lab
        self.run = run
        self.trouble = ""
        try:
            self.records = own_record.find(self.lab, run)
        except SeamError as error:
            self.trouble = str(error)
            self.records = []
        mains = [one for one in self.records if not one.agent]
        named = next((one for one in self.records if one.name == name), None)
        if name and self.records and named is None:
            raise Http404
        self.own: OwnRecord | None = named or (mains[-1] if mains else None)
        self.mains = mains

    @property
    def record(self) -> Record | None:
        return self.opened(self.own) if self.own else None

    def opened(self, own: OwnRecord) -> Record:
        """A record to read from."""
        return Record(self.lab, own, is_over=self.run.settled_at is not None)

    def agents(self, own: OwnRecord) -> Mapping[str, OwnRecord]:
        """The records of agents of one session, by the call that started each."""
        return {one.call: one for one in self.records if one.call and one.session == own.session}

    def link(self, view: str = "runs:conversation", **query: object) -> str:
        """An address of this record."""
        own = {"record": self.own.name} if self.own else {}
        return f"{reverse(view, args=[self.run.pk])}?{urlencode({**own, **query})}"


def page(book: Book, asked: Asked) -> Mapping[str, Any]:
    """The piece that was asked for, or why there is none."""
    try:
        return _piece(book, asked)
    except SeamError as error:  # it did not answer any more
        book.trouble = str(error)
        return _without(book)


def _without(book: Book) -> Mapping[str, Any]:
    is_elsewhere = book.run.host not in ("", book.lab.host)
    facts = {"run": book.run, "book": book, "own": None, "left": _left(book)}
    return facts | {"is_elsewhere": is_elsewhere, "trouble": book.trouble}


def _piece(book: Book, asked: Asked) -> Mapping[str, Any]:
    record = book.record
    span = _span(record, asked) if record else None
    facts: dict[str, Any] = {"run": book.run, "book": book, "own": book.own}
    if record is None or span is None:
        return _without(book)
    lines = list(span.lines)
    if asked.start is None and span.start > 0:
        lines = lines[items.first_whole(lines) :]
    start = lines[0].at if lines else span.start
    is_end = not record.goes_on(span.end)
    settled = items.settled(lines, span.end) if is_end else span.end
    shown = Shower(book)
    after = late(record, lines, span)
    return facts | {
        "parts": [
            (place, shown.all([one for one in lines if place <= one.at < until], after))
            for place, until in _bounds(start, settled, span.end, is_end=is_end)
        ],
        "is_end": is_end,
        "settled": settled,
        "span": span,
        "start": start,
        "todos": todos(record),
        "first": book.link(start=0) if start > 0 else "",
        "earlier": book.link(before=start) if start > 0 else "",
        "later": book.link(start=span.end) if not is_end else "",
        "newest": book.link() if not is_end else "",
        "sessions": _sessions(book),
        "agents": _agents(book),
        "megabytes": f"{span.size / 1e6:.1f} MB" if span.size >= 100_000 else "",
    }


def late(record: Record, lines: Sequence[Line], span: Span) -> Sequence[Line]:
    """What follows a piece that ends between a call and its result; none for any other piece."""
    is_whole = items.settled(lines, span.end) == span.end
    found = None if is_whole else record.onwards(span.end, LATE)
    return found.lines if found and not found.is_moved else ()


def _span(record: Record, asked: Asked) -> Span | None:
    if asked.start is not None:
        return record.onwards(asked.start)
    return record.back(asked.before)


def _bounds(start: int, settled: int, end: int, *, is_end: bool) -> list[tuple[int, int]]:
    """The parts of a page: what stays as it is, and at the end what may change or be added to."""
    if not is_end:
        return [(start, end)]
    return [(start, settled), (settled, end)] if settled > start else [(start, end)]


def _left(book: Book) -> str:
    """What there is of a run whose record is not there."""
    return book.run.last_words or book.run.last_line


def tells_todos(span: Span) -> bool:
    """Whether these lines may change the list of things to do."""
    return any(
        one.todos is not None
        or one.tool.startswith("Task")
        or (one.kind is Kind.RESULT and one.text.startswith(("#", "Task #")))
        for line in span.lines
        for one in line.messages
    )


def todos(record: Record) -> Sequence[Mapping[str, str]]:
    """The agent's list of things to do as it stands now, as far as it was changed lately."""
    low, end = record.piece(None, TODO_BYTES)
    found = record.find(items.OF_TODOS, end, low, TODO_LINES)
    lines = list(reversed(found.lines))
    listed = items.todos(lines, is_agents=bool(record.own.agent)) or ()
    return [{"text": one.text, "mark": _MARKS.get(one.state, "open")} for one in listed]


def _sessions(book: Book) -> Sequence[Mapping[str, object]]:
    """The other sessions of the run: one that was held goes on in its own, or in another one."""
    if len(book.mains) < 2:
        return ()
    base = reverse("runs:conversation", args=[book.run.pk])
    return [
        {"number": number, "url": f"{base}?record={one.name}", "is_here": one == book.own}
        for number, one in enumerate(book.mains, 1)
    ]


def _agents(book: Book) -> Sequence[Mapping[str, object]]:
    """The agents that it started, when their call is not known or on another page."""
    base = reverse("runs:conversation", args=[book.run.pk])
    found = [one for one in book.records if one.agent]
    return [
        {"name": one.agent[:8], "url": f"{base}?record={one.name}", "is_here": one == book.own}
        for one in found
    ]


class Shower:
    """Entries as their templates want them."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._agents = book.agents(book.own) if book.own and not book.own.agent else {}
        self._is_agents = bool(book.own and book.own.agent)
        self._left = AGENTS
        self._signs = SIGNS

    def all(self, lines: Sequence[Line], late: Sequence[Line] = ()) -> list[Mapping[str, Any]]:
        """The entries of these lines, with the results that come late."""
        return [self._one(item) for item in items.of(lines, late)]

    def _one(self, item: Item, *, is_inner: bool = False) -> Mapping[str, Any]:
        message = item.message
        facts: dict[str, Any] = {
            "item": item,
            "link": f"{self._book.link(start=item.at)}#{item.ident}",
            "tokens": tokens_words(item),
            "is_aside": bool(message.parent) and not is_inner and not self._is_agents,
            "template": f"{_TEMPLATES.get(item.kind, 'conversation/_quiet')}.html",
        }
        if item.kind == "note":
            notes = [self._note(place) for place in item.notes]
            return facts | {"notes": notes}
        if item.tool is None:
            limit = WORDS if message.kind in _LONG else HEAD
            text = self._text("text", message.text, item.at, item.part, limit)
            return facts | text | {"is_plain": self._is_plain(item, text["text"])}
        return facts | self._tool(item)

    def _is_plain(self, item: Item, text: str) -> bool:
        """Whether the Markdown of this text is more than one page has room for."""
        if item.kind not in ("words", "prompt", "thought", "finished"):
            return True
        self._signs -= sum(1 for _ in _SIGN.finditer(text))
        return self._signs < 0

    def _note(self, place: tuple[int, int, Message]) -> Mapping[str, Any]:
        at, part, message = place
        return {"title": message.tool, **self._text("text", message.text, at, part, HEAD)}

    def _tool(self, item: Item) -> dict[str, Any]:
        tool, call = item.tool, item.message
        assert tool is not None  # noqa: S101  (tells mypy)
        command, given = items.input_of(call)
        at, part = item.output
        output = tool.result.text if tool.result else ""
        number = item.at * 10 + item.part
        files = [_file(one, number * 10 + n, self._book.run) for n, one in enumerate(tool.edits)]
        is_patch = bool(files) and call.given.keys() == {"input"}  # the diff tells it better
        inner = [self._one(one, is_inner=True) for one in item.inner]
        agent = self._agents.get(call.call)
        if agent is not None and not inner:
            inner = self._of_agent(agent)
        return {
            "headline": rules.headline(call, self._book.run.worktree, tool.edits),
            "status": _status(item, is_over=self._book.run.settled_at is not None),
            "took": web_words.duration(item.took) if item.took else "",
            "files": files,
            "todos": [(one.text, _MARKS.get(one.state, "open")) for one in call.todos or ()],
            "inner": inner,
            "agent_url": self._link_of(agent) if agent else "",
            **self._text("command", command, item.at, item.part, HEAD),
            **self._text("given", "" if is_patch else given, item.at, item.part, HEAD),
            **self._text("output", "" if files and not _failed(item) else output, at, part, HEAD),
        }

    def _of_agent(self, agent: OwnRecord) -> list[Mapping[str, Any]]:
        """The last things that an agent did, under the call that started it."""
        if self._left <= 0:
            return []
        self._left -= 1
        book = copy.copy(self._book)
        book.own = agent
        span = book.opened(agent).back(None, OF_AGENT)
        return Shower(book).all(span.lines) if span else []

    def _link_of(self, agent: OwnRecord) -> str:
        return f"{reverse('runs:conversation', args=[self._book.run.pk])}?record={agent.name}"

    def _text(self, name: str, text: str, at: int, part: int, limit: int) -> dict[str, Any]:
        """A text as far as it is shown, how much is left out, and where the whole of it is."""
        if len(text) <= limit + TAIL:
            return {name: text, f"{name}_rest": ""}
        url = self._book.link("runs:conversation-text", at=at, part=part, what=name)
        shown = {"head": text[:limit], "tail": text[-TAIL:], "url": url}
        return {name: text[:limit], f"{name}_rest": shown | {"count": len(text) - limit - TAIL}}


class EditDiff(FileDiff):
    """A file is changed many times in one conversation, so its name alone tells no two apart."""

    @property
    def label(self) -> str:
        return f"{code.plain(self.change.path)}, edit {self.number}"


_LONG = (Kind.WORDS, Kind.PROMPT, Kind.FINISHED)
_TEMPLATES = {
    "tool": "conversation/_tool",
    "words": "conversation/_words",
    "prompt": "conversation/_words",
    "thought": "conversation/_thought",
    "error": "conversation/_line",
    "break": "conversation/_line",
    "finished": "conversation/_finished",
    "note": "conversation/_notes",
}


def _file(edit: Edit, number: int, run: Run) -> FileDiff:
    kind = "A" if edit.is_new else "D" if edit.is_gone else "M"
    path = edit.path.removeprefix(f"{run.worktree}/")
    made = diff.file(Change(path, kind, edit.added, edit.removed), edit.hunks, number, room=ROOM)
    is_small = edit.added + edit.removed <= OPEN_LINES
    return EditDiff(made.change, made.lines, made.is_cut, number, is_open=is_small)


def _failed(item: Item) -> bool:
    return bool(item.tool and item.tool.result and item.tool.result.is_failed)


def _status(item: Item, *, is_over: bool) -> Mapping[str, str]:
    """How a call went, where that is worth a word."""
    result = item.tool.result if item.tool else None
    if result is None:
        return {"words": "no result" if is_over else "no result yet", "tone": ""}
    if result.exit_code not in (None, 0):
        return {"words": f"exit {result.exit_code}", "tone": "bad"}
    return {"words": "failed", "tone": "bad"} if result.is_failed else {"words": "", "tone": ""}


def tokens_words(item: Item) -> str:
    """The tokens of an answer, short."""
    used = item.tokens
    if used is None:
        return ""
    return f"{used.into:,} in · {used.out:,} out"


def part_of(book: Book, at: int, part: int) -> Message:
    """One message by its place. Raises Http404."""
    record = book.record
    span = record.onwards(at, Cut(1, 1)) if record and 0 <= at <= lenient_json.MOST else None
    if span is None or span.is_moved or not span.lines or part >= len(span.lines[0].messages):
        raise Http404
    return span.lines[0].messages[part]


def whole(message: Message, what: str) -> str:
    """The text of a message, uncut."""
    command, given = items.input_of(message)
    return {"command": command, "given": given}.get(what) or message.text or given
