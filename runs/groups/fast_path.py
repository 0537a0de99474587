"""The rule of a monitor's fast path: one check of a signal folder every five seconds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from runs.groups.monitor_rules import Event, Kind
from runs.groups.terms import Options, minutes

CHECK_EVERY = timedelta(seconds=5)
LOG_EVERY = 3


@dataclass(frozen=True, slots=True)
class AllDone:
    """What the sentinel of a signal folder says."""

    total: int
    at: str


class Unreadable(StrEnum):
    """Why a sentinel that is there says nothing."""

    CORRUPTED = "corrupted"


class Next(StrEnum):
    """What comes after a check of the signal folder."""

    WAIT = "wait"
    FINISH = "list the tasks once and end"
    FALL_BACK = "go on by listing"
    TIME_OUT = "list the tasks once and end, timed out"


@dataclass(frozen=True, slots=True)
class Check:
    """What one check came to."""

    next: Next
    events: tuple[Event, ...] = ()


def is_logged(number: int) -> bool:
    """Whether the check of this number, from 1, tells the progress."""
    return number == 1 or (number > 0 and number % LOG_EVERY == 0)


def is_counted(options: Options, number: int, elapsed: timedelta) -> bool:
    """Whether a check has to know how many signals there are; else it looks at one path only."""
    return is_logged(number) or (options.timeout is not None and elapsed > options.timeout)


def check(
    options: Options,
    expected: int,
    number: int,
    sentinel: AllDone | Unreadable | None,
    signals: int | None,
    elapsed: timedelta,
) -> Check:
    """One check of the fast path; `signals` is needed where progress or a timeout is told.

    `number` counts checks from 1; 0 is one that somebody woke, which tells no progress.
    """
    label = options.label
    if isinstance(sentinel, Unreadable):
        return corrupted(options)
    if sentinel is not None:
        said = f"{label}: All {sentinel.total} signals received at {sentinel.at}"
        return Check(Next.FINISH, (Event(Kind.SIGNALS, said),))
    if options.timeout is not None and elapsed > options.timeout:
        said = f"{label}: Timeout after {minutes(options.timeout)} min. "
        text = f"{said}{signals or 0}/{expected} signals received."
        return Check(Next.TIME_OUT, (Event(Kind.TIMEOUT, text),))
    if is_logged(number):
        text = f"{label}: Progress: {signals or 0}/{expected} tasks signaled"
        return Check(Next.WAIT, (Event(Kind.SIGNALS, text),))
    return Check(Next.WAIT)


def corrupted(options: Options) -> Check:
    """What follows from a sentinel that is unreadable, or that the list of tasks contradicts."""
    said = f"{options.label}: .all-done file corrupted, falling back to TaskList polling"
    return Check(Next.FALL_BACK, (Event(Kind.FELL_BACK, said),))


def entering(options: Options, *, is_fast: bool) -> str:
    """What a monitor tells first."""
    if is_fast:
        return f"{options.label}: Signal directory detected — event-driven monitoring (5s interval)"
    every = f"{options.poll.total_seconds():g}"
    return (
        f"{options.label}: No signal directory — falling back to TaskList polling "
        f"({every}s interval)"
    )
