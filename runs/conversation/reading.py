"""Pieces of a record by byte offset: backwards from its end, or onwards from a place. Never the whole.

A place is the offset of a line's first byte. It needs no index, stays true while the record grows,
and is looked at again before it is used: a record that was rewritten has another line there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from runs.conversation import claude_messages, codex_messages, rules
from runs.conversation.rules import LINE_BYTES, Kind, Message, Reader
from runs.core.ports import Lab
from runs.transcript.record_rules import Form, OwnRecord

CHUNK = 256 * 1024
MOST_LINES = 80
MOST_BYTES = 1_500_000
MOST_MESSAGES = 400  # of all lines of one piece: each costs a page about a millisecond
SCANNED = 64 * 1024 * 1024  # how far one question looks for more lines
HEAD = 4096
MOST_SEARCHED = 20_000  # lines that one question looks at, whatever is in them
WINDOW = 4 * 1024 * 1024  # how much a search has in memory

READERS: dict[Form, Reader] = {
    Form.CLAUDE: claude_messages.messages,
    Form.CODEX: codex_messages.messages,
    Form.CODEX_PRINTED: codex_messages.printed,
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line: where it begins, how long it is, and its messages."""

    at: int
    size: int
    messages: Sequence[Message] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """The lines between two places of a record that is `size` bytes long by now.

    `is_moved`: the record was rewritten since, and this is the nearest line.
    """

    start: int = 0
    end: int = 0
    size: int = 0
    lines: Sequence[Line] = field(default_factory=list)
    is_moved: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """How much of a record is wanted."""

    lines: int = MOST_LINES
    bytes: int = MOST_BYTES


FULL = Cut()


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found, last first, and the place before which it has not looked."""

    lines: Sequence[Line]
    low: int


class Record:
    """One record of a run. `is_over`: nothing more is written, so its last line counts as it is."""

    def __init__(self, lab: Lab, record: OwnRecord, *, is_over: bool = False) -> None:
        self.own = record
        self._lab = lab
        self._is_over = is_over
        self._reader = READERS[record.form]

    def size(self) -> int | None:
        """How long it is; None when it is gone."""
        found = self._lab.records.read(self.own, 0, 0)
        return found.size if found else None

    def back(self, before: int | None = None, cut: Cut = FULL) -> Span | None:
        """The last lines before a place or the end; None when the record is gone."""
        size = self.size()
        if size is None:
            return None
        end = size if before is None or before > size else max(0, before)
        is_moved = before is not None and before > size
        end = end if self._is_over and end == size else self._line_start(end)
        starts, low = self._starts(end, cut)
        span = self._span([*reversed(starts), end] if starts else [low, end], size)
        lines = list(reversed(_few(list(reversed(span.lines)))))
        start = lines[0].at if lines else span.start
        return Span(start, span.end, size, lines, is_moved)

    def onwards(self, start: int, cut: Cut = FULL) -> Span | None:
        """The lines from a place on; None when the record is gone.

        A place inside of a line, or behind the end, is in a record that was rewritten.
        """
        size = self.size()
        if size is None:
            return None
        if start > size:
            found = self.back(None, cut)
            return found and Span(found.start, found.end, size, found.lines, is_moved=True)
        begin = self._line_start(start)
        marks, is_end = self._ends(begin, cut)
        if self._is_over and is_end and marks[-1] < size and len(marks) <= cut.lines:
            marks.append(size)
        span = self._span(marks, size)
        lines = _few(span.lines)
        end = lines[-1].at + lines[-1].size if lines else span.end
        return Span(begin, end, size, lines, is_moved=begin != start)

    def goes_on(self, place: int) -> bool:
        """Whether another line follows; one that is still being written does not count yet."""
        size = self.size() or 0
        if self._is_over:
            return place < size
        return place < size and len(self._ends(place, Cut(1, 1))[0]) > 1

    def find(
        self,
        needles: Sequence[bytes],
        before: int,
        low: int,
        most: int,
        is_wanted: Callable[[Line], bool] = lambda _: True,
    ) -> Found:
        """Lines between two places, last first, that hold one of these in small letters and are wanted.

        `low` is where a line begins. Answers with at most `most` lines, and says how far it came.
        """
        place, lines, left = before, list[Line](), MOST_SEARCHED
        while place > low and left and len(lines) < most:
            begin = max(low, place - WINDOW)
            data = self.raw(begin, place - begin)
            if len(data) < place - begin:
                break
            cut = data.find(b"\n") + 1 if begin > low else 0
            # How many lines there are hangs on no needle, so that it spells out no secret.
            count = data.count(b"\n", cut)
            if count > left:
                cut = _last_lines(data, left)
                low = begin + cut
            left -= count
            if cut or begin == low:
                found = (self._read(begin + at, raw) for at, raw in matching(data, cut, needles))
                wanted = (line for line in found if line.messages and is_wanted(line))
                lines += itertools.islice(wanted, most - len(lines))
            place = begin + cut if cut < len(data) else begin
        return Found(lines, lines[-1].at if len(lines) >= most else place)

    def piece(self, before: int | None, length: int) -> tuple[int, int]:
        """The places between which about this many bytes lie before a place, or the end."""
        size = self.size() or 0
        end = size if before is None else min(before, size)
        return self._line_start(end - length) if end > length else 0, end

    def raw(self, start: int, limit: int) -> bytes:
        """Bytes as they are, neither read nor masked."""
        found = self._lab.records.read(self.own, start, limit)
        return found.data if found else b""

    def _line_start(self, place: int) -> int:
        """The beginning of the line in which a place is."""
        low = max(0, place - SCANNED)
        while place > low:
            begin = max(low, place - CHUNK)
            chunk = self.raw(begin, place - begin)
            found = chunk.rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            if len(chunk) < place - begin:
                break
            place = begin
        return place

    def _starts(self, end: int, cut: Cut) -> tuple[list[int], int]:
        """Where the last lines before `end` begin, last first, and how far was looked."""
        starts: list[int] = []
        used, upper, low = 0, end, max(0, end - max(SCANNED, cut.bytes))
        place = end
        while place > low:
            begin = max(low, place - CHUNK)
            chunk = self.raw(begin, place - begin)
            if len(chunk) < place - begin:
                break
            last = len(chunk) - (1 if place == end and chunk.endswith(b"\n") else 0)
            while (found := chunk.rfind(b"\n", 0, last)) >= 0:
                at, last = begin + found + 1, found
                used += _cost(upper - at)
                if starts and (len(starts) >= cut.lines or used > cut.bytes):
                    return starts, begin
                starts.append(at)
                upper = at
            place = begin
        if (
            place == 0
            and len(starts) < cut.lines
            and (not starts or used + _cost(upper) <= cut.bytes)
        ):
            starts += [0] if upper > 0 else []
        return starts, place

    def _ends(self, start: int, cut: Cut) -> tuple[list[int], bool]:
        """The place and behind each line that follows it, and whether the record's end was met.

        The end of the first line is looked for however far it is: nothing else leads behind it.
        """
        marks, used, place = [start], 0, start
        while len(marks) == 1 or place - start < max(SCANNED, cut.bytes):
            chunk = self.raw(place, CHUNK)
            if not chunk:
                return marks, True
            found = chunk.find(b"\n")
            while found >= 0:
                at = place + found + 1
                used += _cost(at - marks[-1])
                if len(marks) > 1 and (len(marks) > cut.lines or used > cut.bytes):
                    return marks, False
                marks.append(at)
                found = chunk.find(b"\n", found + 1)
            place += len(chunk)
        return marks, False

    def _span(self, marks: Sequence[int], size: int) -> Span:
        lines = [self._line(a, b) for a, b in itertools.pairwise(marks) if b > a]
        return Span(marks[0], marks[-1], size, lines)

    def _line(self, at: int, end: int) -> Line:
        if end - at > LINE_BYTES:
            return Line(at, end - at, [self._long(at, end - at)])
        return self._read(at, self.raw(at, end - at))

    def _read(self, at: int, raw: bytes) -> Line:
        """A line out of its bytes; without messages while it is still being written."""
        if not self._is_over and not raw.endswith(b"\n"):
            return Line(at, len(raw))
        return Line(at, len(raw), rules.read(raw, self._reader, self._lab.mask))

    def _long(self, at: int, size: int) -> Message:
        """In the place of a line that is too long: how it begins."""
        begun = rules.clean(self.raw(at, HEAD).decode("utf-8", "replace"))
        words = self._lab.mask(begun)[: HEAD // 2]
        title = f"a line of {size / 1e6:.1f} MB"
        return Message(Kind.UNKNOWN, f"{words} …", tool=title)


def _last_lines(data: bytes, most: int) -> int:
    """Where the last lines begin, as many as are wanted."""
    at = len(data)
    for _ in range(most + 1):
        at = data.rfind(b"\n", 0, at)
    return at + 1


def _few(lines: Sequence[Line]) -> Sequence[Line]:
    """The first of these lines that do not have too many messages together, at least one."""
    counts = itertools.accumulate(len(one.messages) for one in lines)
    return lines[: max(1, sum(count <= MOST_MESSAGES for count in counts))]


def _cost(size: int) -> int:
    """How much of a line of this size is read."""
    return size if size <= LINE_BYTES else HEAD


def matching(data: bytes, start: int, needles: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
    """The lines from a place on that hold one of these, last first, and where each begins."""
    small = data.lower()
    end = len(small)
    last = {needle: small.rfind(needle, start) for needle in needles}
    while (at := max(last.values(), default=-1)) >= 0:
        begin = max(start, small.rfind(b"\n", 0, at) + 1)
        end = small.find(b"\n", at, end) + 1 or end
        yield begin, data[begin:end]
        end = begin
        # Each is looked for only above the place where it was found last.
        for needle, found in last.items():
            if found >= begin:
                last[needle] = small.rfind(needle, start, begin)
