"""The rule of a composite workflow: phases one after the other under one ceiling.

No total is passed down: a phase's monitor has a timeout of its own, a safety net lies around the
phase, and the ceiling around everything. Time is what has passed, as in the rule of a pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from runs.groups.terms import MonitorState

CEILING = timedelta(minutes=90)
# A net leaves room for what comes before and after the watching.
MARGIN = timedelta(minutes=5)
NET_WITHOUT_TIMEOUT = timedelta(minutes=15)
ZERO = timedelta(0)


class WorkflowState(StrEnum):
    """How a workflow stands. A held one waits for a person; the first two are no end."""

    RUNNING = "running"
    HELD = "held"
    COMPLETE = "complete"
    TIMED_OUT = "timed out"
    STOPPED = "stopped"


class PhaseState(StrEnum):
    """How a phase stands. After an error or a stop a person may start it again."""

    WAITING = "waiting"
    RUNNING = "running"
    COMPLETE = "complete"
    TIMED_OUT = "timed out"
    ERROR = "error"
    STOPPED = "stopped"


class Do(StrEnum):
    """What a workflow asks for next."""

    WAIT = "wait"
    BEGIN = "start the monitor of the phase"
    SETTLE = "take the result of its monitor, which has ended"
    CUT = "stop its monitor at the safety net and take what there is"
    HOLD = "wait for a person"
    CEILING = "stop everything and take what there is"
    FINISH = "end it"


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase as it is seen. `monitor` None: gone, with its group."""

    state: PhaseState = PhaseState.WAITING
    net: timedelta = NET_WITHOUT_TIMEOUT
    elapsed: timedelta = ZERO
    monitor: MonitorState | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """What to do, with which phase, and what that phase becomes."""

    do: Do
    at: int | None = None
    becomes: PhaseState | None = None


_ENDS = {
    MonitorState.COMPLETE: PhaseState.COMPLETE,
    MonitorState.TIMED_OUT: PhaseState.TIMED_OUT,
}
_HELD = {MonitorState.STOPPED: PhaseState.STOPPED}


def step(phases: Sequence[Phase], elapsed: timedelta, ceiling: timedelta = CEILING) -> Step:
    """What comes next. What ended in time counts, even when it is seen late."""
    now = next((n for n, one in enumerate(phases) if one.state is PhaseState.RUNNING), None)
    if now is not None and phases[now].monitor is not MonitorState.RUNNING:
        return _ended(now, phases[now].monitor)
    nxt = next((n for n, one in enumerate(phases) if one.state is PhaseState.WAITING), None)
    if now is None and nxt is None:
        return Step(Do.FINISH)
    if elapsed >= ceiling:
        return Step(Do.CEILING, now, PhaseState.TIMED_OUT if now is not None else None)
    if now is None:
        return Step(Do.BEGIN, nxt, PhaseState.RUNNING)
    if phases[now].elapsed >= phases[now].net:
        return Step(Do.CUT, now, PhaseState.TIMED_OUT)
    return Step(Do.WAIT)


def _ended(at: int, monitor: MonitorState | None) -> Step:
    """A result is taken, partial or not. Without one nothing goes on by itself."""
    if monitor is not None and monitor in _ENDS:
        return Step(Do.SETTLE, at, _ENDS[monitor])
    held = _HELD.get(monitor, PhaseState.ERROR) if monitor is not None else PhaseState.ERROR
    return Step(Do.HOLD, at, held)


def rest(phases: Sequence[Phase], elapsed: timedelta, ceiling: timedelta = CEILING) -> timedelta:
    """How long until its ceiling or a net asks for a step, if no monitor ends before."""
    running = [one.net - one.elapsed for one in phases if one.state is PhaseState.RUNNING]
    return max(ZERO, min([ceiling - elapsed, *running]))


def net_of(timeout: timedelta | None) -> timedelta:
    """The safety net around a phase for which nobody gave another."""
    return NET_WITHOUT_TIMEOUT if timeout is None else timeout + MARGIN
