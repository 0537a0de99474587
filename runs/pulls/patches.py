"""Reads a patch of git: which part belongs to which file, and its lines with their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

_FILE = re.compile(r"^diff --git ", re.MULTILINE)
_HUNK = re.compile(r"^@@ ", re.MULTILINE)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_LETTERS = {
    b"n": b"\n",
    b"t": b"\t",
    b"r": b"\r",
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"v": b"\v",
}
_NAMES = ("+++ b/", "--- a/", '+++ "b/', '--- "a/', "rename to ")
_KINDS = {"+": "plus", "-": "minus", " ": "", "\\": "note"}


@dataclass(frozen=True, slots=True)
class PatchLine:
    """One line of a patch. `kind` is plus, minus, hunk, note (git's own words) or empty."""

    kind: str
    old: int | None
    new: int | None
    text: str


def sections(patch: str) -> Mapping[str, str]:
    """The patch cut into files, by their new names; a part whose name cannot be read is left out.

    A file that became something else, such as a link, has two parts under one name.
    """
    cuts = [*(found.start() for found in _FILE.finditer(patch)), len(patch)]
    found: dict[str, str] = {}
    for start, end in pairwise(cuts):
        text = patch[start:end]
        name = _name(text)
        if name:
            found[name] = found.get(name, "") + text
    return found


def lines(section: str) -> Iterator[PatchLine]:
    """The lines of one file's part, hunk by hunk. Raises ValueError for what is not a patch."""
    try:
        hunks = [hunk for part in _bodies(section) for file in PatchSet(part) for hunk in file]
    except UnidiffParseError as error:
        raise ValueError(str(error)) from error
    for hunk in hunks:
        head = f"@@ {hunk.source_start} → {hunk.target_start} @@ {hunk.section_header}"
        yield PatchLine("hunk", None, None, head.strip())
        for line in hunk:
            kind = _KINDS.get(line.line_type, "")
            text = str(line.value).rstrip("\r\n")
            if kind == "note":
                text = "no newline at the end of the file"
            yield PatchLine(kind, line.source_line_no, line.target_line_no, text)


def line_at(section: str, number: int, *, is_old: bool) -> str | None:
    """The text of a line that a patch shows on one side, None when it does not show it."""
    try:
        for line in lines(section):
            if line.kind in ("", "plus", "minus") and (line.old if is_old else line.new) == number:
                return line.text
    except ValueError:
        return None
    return None


def _bodies(section: str) -> Iterator[str]:
    """The hunks of each part, under plain names: what stands above them is for `_name` alone."""
    cuts = [*(found.start() for found in _FILE.finditer(section)), len(section)]
    for start, end in pairwise([0, *cuts] if cuts[0] else cuts):
        hunk = _HUNK.search(section, start, end)
        if hunk:
            yield f"--- a\n+++ b\n{section[hunk.start() : end]}"


def _name(section: str) -> str:
    """The file's new name, or its old one when it was removed."""
    head = section.partition("\n@@ ")[0].split("\n")
    for mark in _NAMES:
        for line in head[1:]:
            if line.startswith(mark):
                is_side = mark[0] in "+-"
                name = _plain(line.removesuffix("\t")[4:] if is_side else line[10:])
                return name[2:] if is_side else name
    return _same(head[0].removeprefix("diff --git "))


def _same(both: str) -> str:
    """The name in `a/name b/name`, for a file whose name did not change."""
    quoted = _QUOTED.findall(both)
    if quoted:
        return _plain(f'"{quoted[-1]}"')[2:]
    return both[len(both) // 2 + 1 :][2:]


def _plain(name: str) -> str:
    """A name as it is, without git's quotes."""
    if not (name.startswith('"') and name.endswith('"')):
        return name
    return _ESCAPE.sub(_letter, name[1:-1].encode()).decode("utf-8", "backslashreplace")


def _letter(found: re.Match[bytes]) -> bytes:
    said = found[1]
    return bytes([int(said, 8) & 255]) if len(said) == 3 else _LETTERS.get(said, said)
