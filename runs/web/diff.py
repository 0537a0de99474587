"""A patch as files and highlighted lines. The page shows what it can of a cut or odd patch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound
from unidiff.errors import UnidiffParseError
from unidiff.patch import Hunk, PatchSet

from runs.domain.ports import Change

LINES = 1500
LONG = 1000

_FILE = re.compile(r"^diff --git ", re.MULTILINE)
_FORMATTER = HtmlFormatter(nowrap=True)
_ROWS = {"+": "plus", "-": "minus", " ": ""}


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a file's diff. `kind` is plus, minus, hunk or empty."""

    kind: str
    old: int | None
    new: int | None
    html: SafeString


@dataclass(frozen=True, slots=True)
class FileDiff:
    """One changed file with its lines, as far as they are shown."""

    change: Change
    lines: Sequence[Line] = field(default_factory=list)
    is_cut: bool = False

    @property
    def tone(self) -> str:
        return {"A": "good", "?": "good", "D": "bad"}.get(self.change.kind, "info")

    @property
    def kind_words(self) -> str:
        words = {"A": "added", "?": "new", "D": "deleted", "M": "changed", "T": "type changed"}
        return words.get(self.change.kind, "changed")


def files(changes: Sequence[Change], patch: str) -> list[FileDiff]:
    """Each changed file with the part of the patch that belongs to it."""
    sections = _sections(patch)
    room = LINES
    found = []
    for change in changes:
        lines = _lines(change.path, sections.get(change.path, ""), room)
        is_cut = len(lines) > room
        found.append(FileDiff(change, lines[:room], is_cut))
        room = max(0, room - len(lines))
    return found


def _sections(patch: str) -> dict[str, str]:
    """The patch cut into files; a file that cannot be read is left out."""
    cuts = [*(found.start() for found in _FILE.finditer(patch)), len(patch)]
    sections = {}
    for start, end in pairwise(cuts):
        text = patch[start:end]
        name = _name(text)
        if name:
            sections[name] = text
    return sections


def _name(section: str) -> str:
    for prefix in ("+++ b/", "--- a/"):
        found = re.search(rf"^{re.escape(prefix)}(.*)$", section, re.MULTILINE)
        if found:
            return found[1].rstrip("\t\r")
    return ""


def _lines(path: str, section: str, room: int) -> list[Line]:
    if not section or room <= 0:
        return []
    try:
        hunks = [hunk for file in PatchSet(section) for hunk in file]
    except UnidiffParseError:
        return [Line("", None, None, escape(line[:LONG])) for line in section.split("\n")[:room]]
    lexer = _lexer(path)
    lines: list[Line] = []
    for hunk in hunks:
        lines += _hunk(hunk, lexer)
        if len(lines) > room:
            break
    return lines


def _hunk(hunk: Hunk, lexer: Lexer) -> list[Line]:
    rows = [line for line in hunk if line.line_type in _ROWS]
    html = _highlighted([str(line.value).rstrip("\r\n")[:LONG] for line in rows], lexer)
    head = f"@@ {hunk.source_start} → {hunk.target_start} @@ {hunk.section_header}"
    return [
        Line("hunk", None, None, escape(head.strip())),
        *(
            Line(_ROWS[row.line_type], row.source_line_no, row.target_line_no, text)
            for row, text in zip(rows, html, strict=True)
        ),
    ]


def _highlighted(lines: Sequence[str], lexer: Lexer) -> list[SafeString]:
    """Each line as HTML. A lexer that changes the number of lines is not used."""
    text = "\n".join(line.replace("\x00", "").replace("\r", "") for line in lines)
    html = highlight(text, lexer, _FORMATTER).removesuffix("\n").split("\n")
    if len(html) != len(lines):
        return [escape(line) for line in lines]
    return [mark_safe(line) for line in html]  # noqa: S308  (escaped by the formatter)


def _lexer(path: str) -> Lexer:
    try:
        lexer: Lexer = get_lexer_for_filename(path, stripnl=False, ensurenl=True)
    except ClassNotFound:
        lexer = TextLexer(stripnl=False, ensurenl=True)
    return lexer
