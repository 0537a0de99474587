"""Code as HTML: one language, line by line, with nothing in it that could deceive the reader."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from django.utils.safestring import SafeString, mark_safe

if TYPE_CHECKING:
    from pygments.lexer import Lexer

LONG = 1000

# Controls, and what reorders or hides its neighbours: shown by its number and never as it is.
_ODD = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
)

# Without the brackets of what `visible` makes of odd characters.
_QUOTED = re.compile(r"`([^`<>\n]{1,300})`")

_CLASSES: dict[Any, str] = {}
_UNCOLOURED = frozenset({"n", "p", "w", "nx", "x"})

Span = tuple[int, int]


def visible(text: str) -> SafeString:
    """Text on one line as HTML, with each odd character as its number."""
    odd = _ODD.sub(lambda found: f'<span class="odd">{_number(found)}</span>', html.escape(text))
    return mark_safe(odd)  # noqa: S308  (escaped, and numbers)


def sentence(text: str) -> SafeString:
    """The same, with what stands in backticks as code."""
    return mark_safe(_QUOTED.sub(r"<code>\1</code>", visible(text)))  # noqa: S308  (escaped)


def plain(text: str) -> str:
    """The same as plain text, for where there can be no HTML."""
    return _ODD.sub(lambda found: f"⟨{_number(found)}⟩", text)


def lines(texts: Sequence[str], path: str, marks: Mapping[int, Span]) -> list[SafeString]:
    """Lines of one file as HTML in its language; `marks` is the part of a line that stands out.

    A language whose reader changes the text is not used, and very long lines are cut.
    """
    cut = [text[:LONG] for text in texts]
    code = "\n".join(cut) + "\n"
    rows = list(_tokens(_lexer(path), code)) if code.strip() else []
    if len(rows) != len(cut) or any("".join(w for _, w in r) != t for r, t in zip(rows, cut)):  # noqa: B905  (as long)
        rows = [[("", text)] for text in cut]
    return [
        mark_safe(_line(row, cut[n], marks.get(n)) + _rest(texts[n]))  # noqa: S308  (escaped by _line)
        for n, row in enumerate(rows)
    ]


def _tokens(lexer: Lexer, code: str) -> Iterator[list[tuple[str, str]]]:
    """The words of each line with the class of their kind; neighbours of one class are one word."""
    row: list[tuple[str, str]] = []
    for kind, value in lexer.get_tokens(code):
        name = _CLASSES.get(kind)
        if name is None:
            name = _CLASSES[kind] = _class(kind)
        if "\n" not in value:
            row.append((name, value))
            continue
        first, *more = value.split("\n")
        row.append((name, first))
        for part in more:
            yield row
            row = [(name, part)]


def _class(kind: Any) -> str:
    """The class of a kind of word; '' for those that have the colour of plain text."""
    from pygments.token import STANDARD_TYPES

    while kind not in STANDARD_TYPES:
        kind = kind.parent
    name = STANDARD_TYPES[kind]
    return "" if name in _UNCOLOURED else name


def _line(row: Sequence[tuple[str, str]], text: str, mark: Span | None) -> str:
    shown = visible if _ODD.search(text) else html.escape
    found, at = [], 0
    for name, word in row:
        for part, is_marked in _parts(word, at, mark) if mark else ((word, False),):
            said = f'<span class="{name}">{shown(part)}</span>' if name and part else shown(part)
            found.append(f"<mark>{said}</mark>" if is_marked else said)
        at += len(word)
    return "".join(found)


def _parts(word: str, at: int, mark: Span) -> Iterator[tuple[str, bool]]:
    """A word cut where the mark begins and ends."""
    if not word:
        return
    start, end = mark
    if start >= end or end <= at or start >= at + len(word):
        yield word, False
        return
    cuts = sorted({0, len(word), *(min(max(edge - at, 0), len(word)) for edge in (start, end))})
    for left, right in pairwise(cuts):
        yield word[left:right], start - at <= left < end - at


def _rest(text: str) -> str:
    more = len(text) - LONG
    return f'<span class="cut">… {more:,} more characters</span>' if more > 0 else ""


def _number(found: re.Match[str]) -> str:
    return f"U+{ord(found[0]):04X}"


def _lexer(path: str) -> Lexer:
    from pygments.lexers import TextLexer, get_lexer_for_filename
    from pygments.util import ClassNotFound

    try:
        lexer: Lexer = get_lexer_for_filename(path, stripnl=False, ensurenl=False)
    except ClassNotFound:
        lexer = TextLexer(stripnl=False, ensurenl=False)
    return lexer
