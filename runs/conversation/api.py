"""The conversation of a run over the API, a piece of one record at a time."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest
from ninja import Query, Schema
from pydantic import BaseModel, Field

from runs.api import replies
from runs.api.asked import NO_NUL, RunId, absent
from runs.api.router import Router
from runs.conversation import export
from runs.conversation.pages import Book
from runs.conversation.reading import Cut
from runs.conversation.rules import Kind
from runs.core.lenient_json import MOST
from runs.core.ports import SeamError
from runs.lifecycle.api import run_of
from runs.wiring import lab
from trackers.base import NotFound

router = Router(tags=["Runs"])
BYTES = 1_500_000


class Wanted(BaseModel):
    """Which piece: from a place on, or the last before one. Without either, from the beginning.

    `record` is one of `records`; without it, the newest session. `limit` counts lines of the record.
    """

    record: str = Field("", max_length=200, pattern=NO_NUL)
    cursor: int = Field(0, ge=0, le=MOST)
    before: int | None = absent(ge=0, le=MOST)
    limit: int = Field(50, ge=1, le=200)


class TalkRecord(Schema):
    """One record: a session's, or with `agent` that of a subagent, which the tool call `call` started."""

    name: str
    session: str
    agent: str
    call: str


class TalkEdit(Schema):
    """A file that a tool changed, with the hunks of a unified diff."""

    path: str
    hunks: str


class TalkTodo(Schema):
    """An entry of the agent's to-do list."""

    text: str
    state: str


class TalkMessage(Schema):
    """One message. `at` and `part` are its place; `call` joins a tool's call and its result.

    `tokens` (`in`, of which `cached`, and `out`) are those of the whole `answer` that it is part of.
    """

    record: str
    agent: str
    at: int
    part: int
    kind: Kind
    time: datetime | None
    text: str
    tool: str
    call: str
    parent: str
    answer: str
    input: dict[str, Any]
    edits: list[TalkEdit]
    todos: list[TalkTodo]
    images: list[str]
    exit_code: int | None
    is_failed: bool | None
    tokens: dict[str, int] | None


class Talk(Schema):
    """A piece of a conversation. `next`: the cursor of what follows, null at the end for now.

    `start` and `end` are the places of this piece in a record of `size` bytes; ask with
    `before=start` for what stands before it, and with `cursor=end` again while the run works.
    `is_moved`: the agent rewrote the record, and this is the nearest place in it.
    """

    records: list[TalkRecord]
    record: str
    items: list[TalkMessage]
    next: int | None
    start: int
    end: int
    size: int
    is_moved: bool


@router.get(
    "/{int:run_id}/conversation", response=replies.look(Talk), summary="Read a conversation"
)
def run_conversation(request: HttpRequest, run_id: RunId, wanted: Query[Wanted]) -> Talk:
    """What a run's agent was told, said and did, out of its own record, without secrets.

    404 where there is no record: only Claude Code and Codex keep one.
    """
    try:
        book = Book(lab(), run_of(run_id), wanted.record)
    except Http404 as error:
        raise NotFound(f"Run {run_id} has no record {wanted.record}.") from error
    if book.trouble:
        raise SeamError(f"The conversation could not be read: {book.trouble}.")
    record, own, cut = book.record, book.own, Cut(wanted.limit, BYTES)
    span = None
    if record is not None:
        is_back = wanted.before is not None
        span = record.back(wanted.before, cut) if is_back else record.onwards(wanted.cursor, cut)
    if record is None or own is None or span is None:
        raise NotFound(f"Run {run_id} has no record of a conversation.")
    entries = [
        export.entry(own, line, part) for line in span.lines for part in range(len(line.messages))
    ]
    return Talk(
        records=[
            TalkRecord(name=one.name, session=one.session, agent=one.agent, call=one.call)
            for one in book.records
        ],
        record=own.name,
        items=[TalkMessage(**one) for one in entries],
        next=span.end if record.goes_on(span.end) else None,
        start=span.start,
        end=span.end,
        size=span.size,
        is_moved=span.is_moved,
    )
