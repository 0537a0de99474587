"""The recording of a run's screen, read back: its parts, one screen of it, as text, as asciicast."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from runs.core.ports import Lab
from runs.core.recent import Recent
from runs.models import Run
from runs.transcript import frames
from runs.transcript.frames import Frame, Screen
from runs.web import terminal

MOST_BYTES = 600_000_000  # of one file, whatever an agent may have made of it
_AT = re.compile(rb'"at":([0-9]+(?:\.[0-9]+)?)')


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a recording that begins with a whole screen: where it is, and from when to when."""

    file: str
    start: int
    end: int
    at: float
    until: float
    whole: str
    number: int


@dataclass(frozen=True, slots=True)
class Hole:
    """A time of which nothing is known: nobody recorded, or what was recorded was cut."""

    at: datetime
    until: datetime
    is_cut: bool


@dataclass(frozen=True, slots=True)
class Recording:
    """Parts in their order, at least one."""

    parts: Sequence[Part]

    @property
    def began(self) -> datetime:
        return moment(self.parts[0].at)

    @property
    def ended(self) -> datetime:
        return moment(self.parts[-1].until)

    @property
    def seconds(self) -> float:
        return self.parts[-1].until - self.parts[0].at

    @property
    def holes(self) -> list[Hole]:
        pairs = zip(self.parts, self.parts[1:], strict=False)
        return [
            Hole(moment(before.until), moment(part.at), part.whole != frames.GAP)
            for before, part in pairs
            if is_hole(before, part)
        ]

    def part_at(self, at: float) -> int:
        """The number of the part that shows a moment; of one before the beginning the first."""
        return max(0, bisect_right([part.at for part in self.parts], at) - 1)


def is_hole(before: Part, part: Part) -> bool:
    """Whether something is missing between two parts."""
    return part.whole == frames.GAP or part.number > before.number + 1


def moment(at: float) -> datetime:
    return datetime.fromtimestamp(min(max(at, 0.0), 4e9), UTC)


_INDEX: Recent[Sequence[Part]] = Recent(50_000, len)


def of(lab: Lab, run: Run) -> Recording | None:
    """The recording as far as it is there; None where none is. No query."""
    lab = lab.at(run.host)
    folder = lab.paths.run_folder(run.pk)
    found: list[Part] = []
    for name in frames.FILES:
        facts = lab.sessions.output(folder, 0, 0, name)
        if facts is not None and facts.size:
            key = (run.host, str(folder), name, facts.size, facts.written_at)
            found += _INDEX.get(key, lambda name=name: _parts(lab, run, name))  # type: ignore[misc]
    found.sort(key=lambda part: (part.number, part.start))
    return Recording(found) if found else None


def _parts(lab: Lab, run: Run, name: str) -> Sequence[Part]:
    piece = lab.sessions.output(lab.paths.run_folder(run.pk), 0, MOST_BYTES, name)
    found: list[Part] = []
    begun: Frame | None = None
    start = place = 0
    last = 0.0
    for line in piece.data.splitlines(keepends=True) if piece else ():
        whole = frames.read(line) if frames.is_whole(line) else None
        if whole is not None:
            if begun is not None:
                found.append(_part(name, start, place, begun, last))
            begun, start, last = whole, place, whole.at
        elif at := _AT.search(line[:40]):
            last = max(last, float(at[1]))
        place += len(line)
    if begun is not None:
        found.append(_part(name, start, place, begun, last))
    return found


def _part(name: str, start: int, end: int, begun: Frame, last: float) -> Part:
    return Part(name, start, end, begun.at, max(begun.at, last), begun.whole, begun.number)


def frames_of(lab: Lab, run: Run, part: Part) -> Iterator[Frame]:
    """The frames of a part, without secrets."""
    size = part.end - part.start
    piece = lab.at(run.host).sessions.output(
        lab.paths.run_folder(run.pk), part.start, size, part.file
    )
    for line in piece.data.split(b"\n") if piece else ():
        frame = frames.read(line) if line else None
        if frame is not None:
            yield _masked(frame, lab.mask)


def _masked(frame: Frame, mask: Callable[[str], str]) -> Frame:
    by = [(at, gone, _masked_lines(put, mask)) for at, gone, put in frame.by]
    lines = _masked_lines(frame.lines, mask)
    return Frame(frame.at, frame.whole, frame.number, frame.size, lines, by, frame.lost)


def _masked_lines(lines: Sequence[str], mask: Callable[[str], str]) -> list[str]:
    """Together, since a secret may be broken over lines; their number stays."""
    text = "\n".join(lines)
    told = mask(text)
    if told is text:
        return list(lines)
    found = told.split("\n")
    return found if len(found) == len(lines) else [mask(line) for line in lines]


def screen_at(lab: Lab, run: Run, recording: Recording, at: float) -> Screen:
    """The screen as it was at a moment."""
    screen = Screen()
    for frame in frames_of(lab, run, recording.parts[recording.part_at(at)]):
        if not frame.whole and frame.at > at:
            break
        screen.apply(frame)
    return screen


def shown(lab: Lab, run: Run, recording: Recording, at: float) -> dict[str, Any]:
    """The part that shows a moment as a player wants it, each line as HTML."""
    number = recording.part_at(at)
    part = recording.parts[number]
    after = recording.parts[number + 1] if number + 1 < len(recording.parts) else None
    told = list(frames_of(lab, run, part))
    return {
        "at": part.at,
        "until": part.until,
        "next": after.at if after else None,
        "hole": ("gap" if after.whole == frames.GAP else "cut")
        if after and is_hole(part, after)
        else "",
        "lines": terminal.lines(told[0].lines) if told else [],
        "rows": told[0].size[1] if told else 0,
        "frames": [
            [one.at, [[at, gone, terminal.lines(put)] for at, gone, put in one.by]]
            for one in told[1:]
            if not one.whole
        ],
    }


def as_text(lab: Lab, run: Run, recording: Recording) -> Iterator[str]:
    """What went off the top of the screen, line by line, and the screen at the end of each stretch."""
    screen, before = Screen(), None
    yield f"# Screen of run {run.pk}, {recording.began:%Y-%m-%d %H:%M:%S} UTC\n"
    for part in recording.parts:
        if before is not None and is_hole(before, part):
            yield _text(screen.lines)
            why = "not recorded" if part.whole == frames.GAP else "cut, the recording was too long"
            yield f"\n# {moment(before.until):%H:%M:%S} to {moment(part.at):%H:%M:%S}: {why}\n"
        before = part
        for frame in frames_of(lab, run, part):
            if frame.lost:
                yield f"# {frame.lost} lines went past unseen\n"
            gone = screen.apply(frame)
            if gone:
                yield _text(gone)
    yield _text(screen.lines)


def _text(lines: Sequence[str]) -> str:
    return "\n".join([*(terminal.plain(line) for line in lines), ""])


def as_cast(
    lab: Lab, run: Run, recording: Recording, marks: Sequence[tuple[float, str]]
) -> Iterator[str]:
    """An asciicast, version 2: each change as the rows that are drawn anew; `marks` are events.

    Nothing but colours and places of the cursor is in it, so that no terminal obeys the agent.
    """
    screen, began, size = Screen(), recording.parts[0].at, (0, 0)
    waiting = sorted(marks)
    for part in recording.parts:
        for frame in frames_of(lab, run, part):
            before = screen.lines
            screen.apply(frame)
            if not size[0]:
                size = screen.size
                yield _header(run, began, size)
            at = max(0.0, frame.at - began)
            while waiting and waiting[0][0] <= frame.at:
                yield _event(max(0.0, waiting[0][0] - began), "m", waiting.pop(0)[1])
            if screen.size != size:
                size, before = screen.size, []
                yield _event(at, "r", f"{size[0]}x{size[1]}")
            drawn = _drawn(before, screen.lines)
            if drawn:
                yield _event(at, "o", drawn)


def _header(run: Run, began: float, size: tuple[int, int]) -> str:
    told = {
        "version": 2,
        "width": size[0],
        "height": size[1],
        "timestamp": int(began),
        "title": f"{run.project.name} #{run.issue_key}, run {run.pk}",
    }
    return json.dumps(told) + "\n"


def _event(at: float, code: str, data: str) -> str:
    return json.dumps([round(at, 3), code, data], ensure_ascii=False) + "\n"


def _drawn(before: Sequence[str], now: Sequence[str]) -> str:
    """The rows that differ, each drawn in its place."""
    found = ["\x1b[2J"] if not before else []
    for row in range(max(len(before), len(now))):
        old = before[row] if row < len(before) else ""
        new = now[row] if row < len(now) else ""
        if old != new:
            found.append(f"\x1b[{row + 1};1H\x1b[0m{terminal.coloured(new)}\x1b[0m\x1b[K")
    return "".join(found)
