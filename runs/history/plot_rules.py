"""Scales, bars and paths of plots, from numbers alone. A plot is 1000 wide and 100 high."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from statistics import median

WIDTH, HEIGHT = 1000.0, 100.0
NARROWEST = 2.0  # a run of a minute is seen in a plot of a day


Time = tuple[datetime, datetime | None]


@dataclass(frozen=True, slots=True)
class Span:
    """Something that lasted, and when it waited. `end` None: it goes on.

    `slot` 0: it had one that nobody knows any more.
    """

    slot: int
    begin: datetime
    end: datetime | None
    tone: str
    name: str
    key: int = 0
    waits: Sequence[tuple[datetime, datetime | None]] = ()


@dataclass(frozen=True, slots=True)
class Bar:
    """A box of a plot."""

    x: float
    y: float
    width: float
    height: float
    tone: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Lane:
    """What one slot did."""

    slot: int
    bars: Sequence[Bar]
    waits: Sequence[Bar]

    @property
    def name(self) -> str:
        return f"Slot {self.slot or 'not known'}"


@dataclass(frozen=True, slots=True)
class Week:
    """The runs that ended in the week from a Monday. None where there is nothing to tell."""

    monday: date
    runs: int = 0
    good: int = 0
    minutes: float | None = None

    @property
    def percent(self) -> int | None:
        return share(self.good, self.runs) if self.runs else None


def share(part: int, whole: int) -> int:
    """Whole per cent; only all of them are 100."""
    return 100 * part // whole


def ceiling(most: float) -> float:
    """The least of 1, 2, 5, 10, 20 and so on that holds all values."""
    if most <= 0:
        return 1.0
    step = 10.0 ** math.floor(math.log10(most))
    return next((step * by for by in (1, 2, 5) if step * by >= most), step * 10)


def across(when: datetime, begin: datetime, end: datetime) -> float:
    """Where a moment stands; what is outside stands at the edge."""
    share = (when - begin) / (end - begin)
    return round(WIDTH * min(1.0, max(0.0, share)), 1)


def up(value: float, top: float) -> float:
    """How high a value stands, from the upper edge."""
    return round(HEIGHT * (1 - min(1.0, max(0.0, value / top if top else 0.0))), 1)


def path(points: Iterable[tuple[float, float] | None]) -> str:
    """A line through points; it is broken where one is missing."""
    said, is_drawing = [], False
    for point in points:
        if point is not None:
            said.append(f"{'L' if is_drawing else 'M'}{point[0]:g} {point[1]:g}")
        is_drawing = point is not None
    return "".join(said)


def times(
    told: Iterable[tuple[str, datetime]], begins: Collection[str], ends: Collection[str]
) -> list[Time]:
    """From each beginning to the next end; the last one may have none."""
    found: list[Time] = []
    for kind, at in told:
        is_open = bool(found) and found[-1][1] is None
        if kind in begins and not is_open:
            found.append((at, None))
        elif kind in ends and is_open:
            found[-1] = (found[-1][0], at)
    return found


def without(begin: datetime, end: datetime | None, rests: Iterable[Time]) -> list[Time]:
    """What is left of a time without its rests, in order; at least one piece unless it rests still."""
    found: list[Time] = []
    for since, until in rests:
        if since > begin:
            found.append((begin, since))
        if until is None:
            return found
        begin = max(begin, until)
    return [*found, (begin, end)] if not found or end is None or begin < end else found


def lanes(spans: Sequence[Span], begin: datetime, end: datetime) -> list[Lane]:
    """The spans of each slot side by side, the first slot on top, and below those of none."""
    made = []
    for slot in sorted({one.slot for one in spans}, key=lambda slot: (not slot, slot)):
        own = [one for one in spans if one.slot == slot]
        bars = [_bar(one.begin, one.end, begin, end, one.tone, one.name) for one in own]
        waits = [_bar(*wait, begin, end) for one in own for wait in one.waits]
        made.append(Lane(slot, bars, waits))
    return made


def in_use(spans: Sequence[Span], begin: datetime, end: datetime) -> list[tuple[datetime, int]]:
    """How many spans there were, from each moment at which that changed."""
    moves = [(max(one.begin, begin), 1) for one in spans]
    moves += [(one.end, -1) for one in spans if one.end is not None and one.end < end]
    found, now = [(begin, 0)], 0
    for when, move in sorted(moves):
        now += move
        if found[-1][0] == when:
            found.pop()
        found.append((when, now))
    return found


def stairs(
    steps: Sequence[tuple[datetime, float | None]], top: float, begin: datetime, end: datetime
) -> str:
    """The path of numbers that stay until the next one. None: not known until the next one."""
    points: list[tuple[float, float] | None] = []
    for when, number in steps:
        x = across(when, begin, end)
        if points and points[-1] is not None:
            points.append((x, points[-1][1]))
        points.append(None if number is None else (x, up(number, top)))
    if points and points[-1] is not None:
        points.append((WIDTH, points[-1][1]))
    return path(points)


def columns(values: Sequence[float], top: float, tone: str = "") -> list[Bar]:
    """A bar for each value, side by side."""
    width = WIDTH / max(1, len(values))
    return [
        Bar(round(n * width + width * 0.15, 1), up(value, top), round(width * 0.7, 1),
            round(HEIGHT - up(value, top), 1), tone)
        for n, value in enumerate(values)
    ]  # fmt: skip


def weeks(
    ended: Iterable[tuple[datetime, bool, int | None]], today: date, count: int
) -> list[Week]:
    """The last weeks, the running one last: how many ended, how many well, how long they took."""
    last = today - timedelta(days=today.weekday())
    mondays = [last - timedelta(weeks=n) for n in reversed(range(count))]
    found: dict[date, list[tuple[bool, int | None]]] = {monday: [] for monday in mondays}
    for when, is_good, seconds in ended:
        day = when.date()
        of_week = found.get(day - timedelta(days=day.weekday()))
        if of_week is not None:
            of_week.append((is_good, seconds))
    return [_week(monday, rows) for monday, rows in found.items()]


def _week(monday: date, rows: Sequence[tuple[bool, int | None]]) -> Week:
    lengths = [seconds / 60 for _, seconds in rows if seconds is not None]
    minutes = round(median(lengths), 1) if lengths else None
    return Week(monday, len(rows), sum(is_good for is_good, _ in rows), minutes)


def _bar(
    since: datetime,
    until: datetime | None,
    begin: datetime,
    end: datetime,
    tone: str = "",
    name: str = "",
) -> Bar:
    x, to = across(since, begin, end), across(until or end, begin, end)
    width = max(NARROWEST, round(to - x, 1))
    return Bar(min(x, WIDTH - width), 15, width, 70, tone, name)
