"""Looks for words in a record, a bounded piece of it at a time, from its end."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
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
    needles = tuple({_needle(words), _needle(words.lower()), _needle(words, ascii_only=True)})
    low, place = record.piece(before, AT_ONCE)
    hits: list[Hit] = []
    # How far it comes hangs on what is shown alone, and not on what is hidden of it.
    while place > low and len(hits) < MOST:
        found = record.find(needles, place, low, MOST)
        if found.low >= place:
            break
        place = found.low
        hits += [hit for line in found.lines for hit in _hits(book, line, words)]
    if not place:
        return Hits(words, hits)
    further = book.link("runs:conversation-search", q=words, before=place)
    return Hits(words, hits, further, f"{place / 1e6:.1f} MB")


def _needle(words: str, *, ascii_only: bool = False) -> bytes:
    """The words as they stand in a line of JSON, in small letters as far as those are ASCII."""
    return json.dumps(words, ensure_ascii=ascii_only)[1:-1].encode("utf-8", "replace").lower()


def _hits(book: Book, line: Line, words: str) -> list[Hit]:
    found = []
    for part, message in enumerate(line.messages):
        for text in rules.plain([message]):
            place = text.lower().find(words.lower())
            if place >= 0:
                url = f"{book.link(start=line.at)}#m{line.at}-{part}"
                found.append(Hit(url, message, _what(message), _around(text, place, len(words))))
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
    }
    return message.tool if message.kind is Kind.CALL else names.get(message.kind, "Entry")


def _around(text: str, place: int, length: int) -> SafeString:
    """The words with what stands around them, on one line."""
    start, end = max(0, place - AROUND), place + length + AROUND
    parts: list[Any] = [text[start:place], text[place : place + length], text[place + length : end]]
    before, it, after = (escape(re.sub(r"\s+", " ", part)) for part in parts)
    head, tail = "…" if start else "", "…" if end < len(text) else ""
    return mark_safe(f"{head}{before}<mark>{it}</mark>{after}{tail}")  # noqa: S308  (escaped)
