"""Looks for words in a record, a bounded piece of it at a time, from its end."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from runs.conversation import rules
from runs.conversation.pages import Book
from runs.conversation.reading import Line
from runs.conversation.rules import Kind, Message

AT_ONCE = 16 * 1024 * 1024
MOST = 50
AROUND = 90
_PLAIN = re.compile(r"[!#-\[\]-~]+")  # ASCII without what JSON escapes


@dataclass(frozen=True, slots=True)
class Hit:
    """A message with the words in it, and what stands around them."""

    url: str
    message: Message
    what: str
    html: SafeString


@dataclass(frozen=True, slots=True)
class Hits:
    """What one piece gave. `further`: where the rest of it is searched; empty when there is none."""

    words: str
    hits: list[Hit] = field(default_factory=list)
    further: str = ""
    left: str = ""


def search(book: Book, words: str, before: int | None) -> Hits:
    """The newest messages with these words, small and capital letters alike.

    A line is found by its bytes and believed by what of it is shown: a secret is found by nobody.
    """
    words = " ".join(words.split())
    record = book.record
    if record is None or not words:
        return Hits(words)
    pattern = re.compile(r"\s+".join(map(re.escape, words.split())), re.IGNORECASE)
    low, place = record.piece(before, AT_ONCE)
    # How far it comes hangs on what is shown alone, and not on what is hidden of it.
    found = record.find(
        _needles(words), place, low, MOST, lambda line: bool(_hits(book, line, pattern))
    )
    place = found.low
    hits = [hit for line in found.lines for hit in _hits(book, line, pattern)]
    if not place:
        return Hits(words, hits)
    further = book.link("runs:conversation-search", q=words, before=place)
    return Hits(words, hits, further, f"{place / 1e6:.1f} MB")


def _needles(words: str) -> Sequence[bytes]:
    """What a line with these words has in it, in small letters as far as those are ASCII.

    The longest part that stands in every line of JSON as it is; where there is none, the longest
    word in any case, with its letters as they are and as numbers.
    """
    plain = max(_PLAIN.findall(words), key=len, default="")
    if plain:
        return [plain.lower().encode()]
    word = max(words.split(), key=len)
    cases = {word, word.lower(), word.upper(), word.capitalize()}
    texts = {json.dumps(one, ensure_ascii=is_ascii) for one in cases for is_ascii in (True, False)}
    return sorted(text[1:-1].encode("utf-8", "replace").lower() for text in texts)


def _hits(book: Book, line: Line, pattern: re.Pattern[str]) -> list[Hit]:
    found = []
    for part, message in enumerate(line.messages):
        for text in rules.plain([message]):
            match = pattern.search(text)
            if match is not None:
                url = f"{book.link(start=line.at)}#m{line.at}-{part}"
                found.append(Hit(url, message, _what(message), _around(text, *match.span())))
                break
    return found


def _what(message: Message) -> str:
    names: Mapping[Kind, str] = {
        Kind.PROMPT: "Prompt",
        Kind.WORDS: "Agent",
        Kind.THOUGHT: "Thinking",
        Kind.RESULT: "Output",
        Kind.ERROR: "Error",
        Kind.BREAK: "Context compacted",
        Kind.FINISHED: "Finished in the background",
    }
    return message.tool if message.kind is Kind.CALL else names.get(message.kind, "Entry")


def _around(text: str, first: int, last: int) -> SafeString:
    """The words with what stands around them, on one line."""
    start, end = max(0, first - AROUND), last + AROUND
    parts: list[Any] = [text[start:first], text[first:last], text[last:end]]
    before, it, after = (escape(re.sub(r"\s+", " ", part)) for part in parts)
    head, tail = "…" if start else "", "…" if end < len(text) else ""
    return mark_safe(f"{head}{before}<mark>{it}</mark>{after}{tail}")  # noqa: S308  (escaped)
