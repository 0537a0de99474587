"""Screens of a session one after the other: what changed between two, how often one is taken, and
how a recording of them is written down and read.

A recording is lines of JSON. A whole screen is `{"k": kind, "n": number, "at": seconds, "size":
[columns, rows], "lines": [...]}`, what changed since the line before `{"at": seconds, "d": changes,
"lost": lines}`. Pure, standard library only: the recorder inside a session uses it too.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

FILES = ("screen-a.jsonl", "screen-b.jsonl", "screen-c.jsonl")
PIPE = "pane"  # through it comes what the program prints, as a sign that its screen has changed
# Why a whole screen was written: at the beginning, after a time that nobody saw, since the size has
# changed, or so that reading may begin there.
FIRST, GAP, SIZE, KEY = "first", "gap", "size", "key"
KEY_BYTES = 100_000
LINE_BYTES = 2_000_000
MOST_COMPARED = 400  # changed lines that are compared one by one
ALIKE = 8  # lines in a row by which it is seen how far all of them went up

LEAST, MOST, QUIET = 0.5, 2.0, 3
_COLOURS = re.compile(r"\x1b\[([0-9;:]*)m")

Change = tuple[int, int, list[str]]


def changes(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """What makes the new lines of the old ones, in this order: at a line, remove so many, put these."""
    low, most = 0, min(len(old), len(new))
    while low < most and old[low] == new[low]:
        low += 1
    end = 0
    while end < most - low and old[-1 - end] == new[-1 - end]:
        end += 1
    left, right = old[low : len(old) - end], new[low : len(new) - end]
    if not left and not right:
        return []
    if left and right and len(left) + len(right) > MOST_COMPARED:
        return _far_apart(low, left, right)
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    return [
        (low + to, at_end - at, list(right[to:to_end]))
        for what, at, at_end, to, to_end in matcher.get_opcodes()
        if what != "equal"
    ]


def _far_apart(low: int, left: Sequence[str], right: Sequence[str]) -> list[Change]:
    """The same for many lines: those that went off the top are found, and of what follows the lines
    in the same place; the rest counts as changed."""
    head = list(right[:ALIKE])
    for gone, line in enumerate(left):
        if line == right[0] and list(left[gone : gone + ALIKE]) == head:
            removed: list[Change] = [(low, gone, [])] if gone else []
            kept = left[gone:]
            same = 0
            while same < min(len(kept), len(right)) and kept[same] == right[same]:
                same += 1
            rest = (low + same, len(kept) - same, list(right[same:]))
            return [*removed, rest] if rest[1] or rest[2] else removed
    return [(low, len(left), list(right))]


def changed(lines: Sequence[str], by: Sequence[Sequence[Any]]) -> list[str]:
    """The lines after these changes; what does not fit is as if it stood at the end."""
    found = list(lines)
    for at, removed, put in by:
        found[at : at + removed] = put
    return found


def pause(number: int, before: float) -> float:
    """Seconds until the next screen is taken, after one in which so many lines had changed.

    A spinner changes some lines all the time: it is looked at ever less often, up to every 2 s.
    """
    return min(MOST, before * 1.5) if number <= QUIET else LEAST


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a recording; `whole` says why it is a whole screen, and is empty for a change.

    `lost`: lines that went past between two frames and that nobody saw.
    """

    at: float
    whole: str = ""
    number: int = 0
    size: tuple[int, int] = (0, 0)
    lines: Sequence[str] = ()
    by: Sequence[Change] = ()
    lost: int = 0

    def written(self) -> bytes:
        """The line as it stands in a recording."""
        shown: dict[str, Any] = {"at": round(self.at, 3)}
        if self.whole:
            size, lines = list(self.size), list(self.lines)
            shown = {"k": self.whole, "n": self.number, **shown, "size": size, "lines": lines}
        else:
            shown["d"] = self.by
            if self.lost:
                shown["lost"] = self.lost
        return json.dumps(shown, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def is_whole(line: bytes) -> bool:
    """Whether a line of a recording is a whole screen; cheap."""
    return line.startswith(b'{"k":')


def read(line: bytes) -> Frame | None:
    """A line of a recording. None for anything else: agents may write to the file too."""
    if len(line) > LINE_BYTES:
        return None
    try:
        told = json.loads(line)
        at = float(told["at"])
        if "k" in told:
            columns, rows = told["size"]
            lines = [str(one) for one in told["lines"]]
            size = (_number(columns), _number(rows))
            return Frame(at, str(told["k"]), _number(told["n"]), size, lines)
        by = [(_number(a), _number(b), [str(one) for one in put]) for a, b, put in told["d"]]
        return Frame(at, by=by, lost=_number(told.get("lost", 0)))
    except (ValueError, TypeError, KeyError, RecursionError, AttributeError):
        return None


def _number(value: object) -> int:
    if type(value) is not int or not 0 <= value < 1 << 31:
        raise ValueError("not a number of a recording")
    return value


def told(data: bytes) -> Iterator[Frame]:
    """All frames of a piece of a recording; what is none is passed over."""
    for line in data.split(b"\n"):
        found = read(line) if line else None
        if found is not None:
            yield found


@dataclass(slots=True)
class Screen:
    """The screen of a recording as its frames are applied, one after the other."""

    size: tuple[int, int] = (0, 0)
    lines: list[str] = field(default_factory=list)

    def apply(self, frame: Frame) -> list[str]:
        """Show a frame; the lines that went off the top by it."""
        if frame.whole:
            self.size, self.lines = frame.size, list(frame.lines)
            return []
        lines = changed(self.lines, frame.by)
        room = max(1, self.size[1])
        self.lines = lines[-room:]
        return lines[:-room]


def coloured(text: str) -> list[str]:
    """The lines of a screen, each with the colours that are in force where it begins."""
    found, open_ = [], dict[str, str]()
    for line in text.split("\n"):
        begin = f"\x1b[{';'.join(open_.values())}m" if open_ else ""
        found.append(begin + line)
        for match in _COLOURS.finditer(line):
            _switch(open_, match[1].split(";"))
    return found


_ENDS = {"22": ("1", "2"), "21": ("1",), "25": ("5", "6"), "39": ("fg",), "49": ("bg",)} | {
    str(20 + n): (str(n),) for n in (3, 4, 7, 8, 9)
}
_KINDS = (
    {"38": "fg", "48": "bg", "58": "line"}
    | {str(n): "fg" for n in (*range(30, 38), *range(90, 98))}
    | {str(n): "bg" for n in (*range(40, 48), *range(100, 108))}
    | {str(n): str(n) for n in range(1, 10)}
)
_TAKES = {"5": 3, "2": 5}


def _switch(open_: dict[str, str], codes: list[str]) -> None:
    """What is in force after these codes; a later one of the same kind takes the place of it."""
    at = 0
    while at < len(codes):
        code, size = codes[at].partition(":")[0], 1
        if codes[at] in ("38", "48", "58"):
            size = _TAKES.get(codes[at + 1] if at + 1 < len(codes) else "", 1)
        if code in ("", "0"):
            open_.clear()
        elif code in _KINDS:
            open_[_KINDS[code]] = ";".join(codes[at : at + size])
        for name in _ENDS.get(code, ()):
            open_.pop(name, None)
        at += size
