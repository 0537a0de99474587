"""A conversation as JSON and as Markdown, record after record, with little of it in memory at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from markdown_it import MarkdownIt

from runs.conversation import items
from runs.conversation.pages import Book
from runs.conversation.reading import Cut, Line, Record
from runs.conversation.rules import Kind, Message
from runs.transcript.record_rules import OwnRecord

AT_ONCE = Cut(lines=200, bytes=1_000_000)
MARKDOWN = 100_000  # a longer text is not read as Markdown
_TICKS = re.compile(r"`{3,}")
# As CommonMark reads a paragraph: a sign behind a backslash, a span of code, ticks that begin none, and
# what may begin HTML.
_SPAN = re.compile(
    r"\\[\\`]|(?P<ticks>`++)[^`]++(?:(?!(?P=ticks)(?!`))`++[^`]++)*+(?P=ticks)(?!`)|`++|<"
)
_BLOCKS = MarkdownIt("commonmark", {"html": False}).disable("inline")


def entry(own: OwnRecord, line: Line, part: int) -> dict[str, Any]:
    """One message as programs read it. `at` and `part` are its place in its record."""
    one = line.messages[part]
    tokens = one.tokens
    used = {"in": tokens.into, "cached": tokens.cached, "out": tokens.out} if tokens else None
    return {
        "record": own.name,
        "agent": own.agent,
        "at": line.at,
        "part": part,
        "kind": one.kind.value,
        "time": one.at.isoformat() if one.at else None,
        "text": one.text,
        "tool": one.tool,
        "call": one.call,
        "parent": own.call or one.parent,
        "answer": one.message,
        "input": dict(one.given),
        "edits": [{"path": edit.path, "hunks": edit.hunks} for edit in one.edits],
        "todos": [{"text": todo.text, "state": todo.state} for todo in one.todos or ()],
        "images": list(one.images),
        "exit_code": one.exit_code,
        "is_failed": one.is_failed,
        "tokens": used,
    }


def lines(record: Record) -> Iterator[Line]:
    """All lines of a record, piece by piece; the end of one that was rewritten meanwhile is its end."""
    place = 0
    while (span := record.onwards(place, AT_ONCE)) is not None and span.lines:
        if span.is_moved:
            return
        yield from span.lines
        place = span.end


def as_json(book: Book) -> Iterator[str]:
    """One JSON object, in pieces."""
    run = book.run
    head = {"run": run.pk, "project": run.project.name, "issue": run.issue_key}
    yield f'{json.dumps(head)[:-1]}, "messages": ['
    comma = "\n"
    for own in book.records:
        for line in lines(book.opened(own)):
            for part in range(len(line.messages)):
                yield comma + json.dumps(entry(own, line, part), ensure_ascii=False)
                comma = ",\n"
    yield "\n]}\n"


def as_markdown(book: Book) -> Iterator[str]:
    """The same for people; what the program keeps for itself is left out."""
    run = book.run
    yield f"# Conversation of {run.project.name} #{run.issue_key}\n"
    if not book.records:
        yield "\nThe agent's own record is not there.\n"
    for own in book.records:
        yield f"\n## {f'Subagent {own.agent}' if own.agent else f'Session {own.session}'}\n"
        for line in lines(book.opened(own)):
            for message in line.messages:
                yield from _markdown(message)


_HEADS = {
    Kind.PROMPT: "Prompt",
    Kind.WORDS: "Agent",
    Kind.THOUGHT: "Thinking",
    Kind.ERROR: "Error",
    Kind.BREAK: "Context compacted",
    Kind.FINISHED: "Finished in the background",
    Kind.UNKNOWN: "Unknown entry",
}


def _markdown(message: Message) -> Iterator[str]:
    if message.kind in (Kind.NOTE, Kind.USAGE) or (
        message.kind is Kind.THOUGHT and not message.text
    ):
        return
    when = f" · {message.at:%Y-%m-%d %H:%M:%S}" if message.at else ""
    if message.kind is Kind.CALL:
        yield f"\n### {_escaped(message.tool)}{when}\n"
        command, given = items.input_of(message)
        if command or given:
            yield _fenced(command or given, "sh" if command else "json")
        yield from _edits(message)
        yield "".join(
            f"- [{'x' if t.state == 'completed' else ' '}] {_escaped(' '.join(t.text.split()))}\n"
            for t in message.todos or ()
        )
        return
    if message.kind is Kind.RESULT:
        code = f" (exit {message.exit_code})" if message.exit_code else ""
        yield f"\nOutput{code}:\n"
        yield _fenced(message.text)
        return
    what = f": {_escaped(message.tool)}" if message.kind is Kind.FINISHED and message.tool else ""
    yield f"\n### {_HEADS[message.kind]}{what}{when}\n\n"
    if message.kind is Kind.FINISHED and not message.text:
        return
    is_prose = message.kind in (Kind.WORDS, Kind.PROMPT, Kind.THOUGHT, Kind.FINISHED)
    is_short = len(message.text) <= MARKDOWN
    yield _prose(message.text) if is_prose and is_short else _fenced(message.text)


def _edits(message: Message) -> Iterator[str]:
    for edit in message.edits:
        yield _fenced(f"--- {edit.path}\n+++ {edit.path}\n{edit.hunks}", "diff")


def _fenced(text: str, language: str = "") -> str:
    """A block that no text in it can end."""
    longest = max(map(len, _TICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"\n{fence}{language}\n{text.rstrip()}\n{fence}\n"


def _prose(text: str) -> str:
    """Markdown without HTML outside of code, in which no block of code stays open."""
    lines, end = text.split("\n"), ""
    is_code: set[int] = set()
    shown = [_escaped(line) for line in lines]
    for one in _BLOCKS.parse(text):
        if one.type == "fence" and one.level == 0 and one.map:
            is_code |= {*range(*one.map)}
            end = _end_of(one.markup, lines[one.map[0] + 1 : one.map[1]])
        elif one.type == "inline" and one.map:  # a span of code ends within its paragraph
            paragraph = "\n".join(lines[slice(*one.map)])
            shown[slice(*one.map)] = _inline(paragraph).split("\n")
    return (
        "\n".join(lines[n] if n in is_code else line for n, line in enumerate(shown)) + end + "\n"
    )


def _end_of(fence: str, lines: Sequence[str]) -> str:
    """What ends a block of code that has these lines; empty where it is ended."""
    last = lines[-1].strip() if lines else ""
    is_ended = last.startswith(fence) and not last.strip(fence[0])
    return "" if is_ended else f"\n{fence}"


def _inline(paragraph: str) -> str:
    """A paragraph in which no HTML begins; its spans of code stay as they are.

    One of several lines does not: HTML at the beginning of a line ends a paragraph with its spans.
    """

    def shown(found: re.Match[str]) -> str:
        return found[0] if found["ticks"] and "\n" not in found[0] else _escaped(found[0])

    return _SPAN.sub(shown, paragraph)


def _escaped(text: str) -> str:
    """A text in which no HTML begins."""
    return text.replace("<", "&lt;")
