"""The rule of a composite workflow, row by row (RUNE-58, C-25); nothing here waits for real."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs.groups.terms import MonitorState
from runs.workflows import rules as composing
from runs.workflows.rules import CEILING, Do, Phase, PhaseState, Step

W, R = PhaseState.WAITING, PhaseState.RUNNING
DONE, LATE, ERROR, STOPPED = (
    PhaseState.COMPLETE,
    PhaseState.TIMED_OUT,
    PhaseState.ERROR,
    PhaseState.STOPPED,
)


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


def running(monitor: MonitorState | None = MonitorState.RUNNING, spent: float = 1) -> Phase:
    """A phase whose net is at 35 minutes."""
    return Phase(R, minutes(35), minutes(spent), monitor)


def of(*states: PhaseState) -> list[Phase]:
    return [Phase(state) for state in states]


@pytest.mark.row("RUNE-58", "C-25", level="pure")
@pytest.mark.parametrize(
    ("phases", "spent", "step"),
    [
        pytest.param(of(W, W), 0, Step(Do.BEGIN, 0, R), id="begins with the first"),
        pytest.param(of(DONE, W), 5, Step(Do.BEGIN, 1, R), id="goes on with the next"),
        pytest.param(of(LATE, W), 40, Step(Do.BEGIN, 1, R), id="partial results: goes on"),
        pytest.param(of(DONE, LATE), 40, Step(Do.FINISH), id="all have ended"),
        pytest.param([], 0, Step(Do.FINISH), id="without phases"),
        pytest.param(
            [running(), *of(W)], 1, Step(Do.WAIT), id="waits while its monitor runs in time"
        ),
        pytest.param(
            [running(MonitorState.COMPLETE)], 1, Step(Do.SETTLE, 0, DONE), id="monitor complete"
        ),
        pytest.param(
            [running(MonitorState.TIMED_OUT), *of(W)],
            31,
            Step(Do.SETTLE, 0, LATE),
            id="monitor timed out: partial results",
        ),
        pytest.param(
            [running(MonitorState.ERROR), *of(W)],
            1,
            Step(Do.HOLD, 0, ERROR),
            id="monitor failed: a person",
        ),
        pytest.param(
            [running(MonitorState.STOPPED), *of(W)],
            1,
            Step(Do.HOLD, 0, STOPPED),
            id="monitor stopped by a person",
        ),
        pytest.param([running(None), *of(W)], 1, Step(Do.HOLD, 0, ERROR), id="group deleted"),
        pytest.param([running(spent=34.99)], 35, Step(Do.WAIT), id="just below the net"),
        pytest.param([running(spent=35)], 35, Step(Do.CUT, 0, LATE), id="at the net"),
        pytest.param(
            [running(MonitorState.COMPLETE, 36)],
            36,
            Step(Do.SETTLE, 0, DONE),
            id="complete beats the net",
        ),
        pytest.param([*of(DONE), running()], 89.99, Step(Do.WAIT), id="just below the ceiling"),
        pytest.param([*of(DONE), running()], 90, Step(Do.CEILING, 1, LATE), id="at the ceiling"),
        pytest.param(
            [running(spent=36)], 90, Step(Do.CEILING, 0, LATE), id="the ceiling beats the net"
        ),
        pytest.param(of(DONE, W), 90, Step(Do.CEILING), id="the ceiling between two phases"),
        pytest.param(
            [running(MonitorState.COMPLETE)],
            91,
            Step(Do.SETTLE, 0, DONE),
            id="complete beats the ceiling",
        ),
        pytest.param(of(DONE, DONE), 91, Step(Do.FINISH), id="all done beats the ceiling"),
    ],
)
def test_a_step(phases: list[Phase], spent: float, step: Step) -> None:
    assert composing.step(phases, minutes(spent)) == step


@pytest.mark.row("RUNE-58", level="pure")
def test_phases_that_each_end_in_time_but_sum_to_91_minutes_are_stopped_at_90() -> None:
    lengths = [30, 30, 31]
    states = [W] * len(lengths)
    spent, began, ended_at = 0, 0, None
    while ended_at is None:
        phases = [
            Phase(
                s,
                minutes(35),
                minutes(spent - began if s is R else 0),
                _monitor(s, spent - began, n),
            )
            for s, n in zip(states, lengths, strict=True)
        ]
        done = composing.step(phases, minutes(spent))
        if done.do is Do.WAIT:
            spent += 1
        elif done.do in (Do.BEGIN, Do.SETTLE):
            began = spent if done.do is Do.BEGIN else began
            states[done.at] = done.becomes
        else:
            ended_at = (spent, done.do, done.at)
    assert ended_at == (90, Do.CEILING, 2)
    assert states == [DONE, DONE, R]


def _monitor(state: PhaseState, spent: float, length: float) -> MonitorState | None:
    if state is not R:
        return None
    return MonitorState.COMPLETE if spent >= length else MonitorState.RUNNING


@pytest.mark.row("RUNE-58", level="pure")
@pytest.mark.parametrize(
    ("phases", "spent", "rest"),
    [
        pytest.param([running(spent=5)], 5, 30, id="the net of the phase"),
        pytest.param([*of(DONE), running(spent=5)], 80, 10, id="the ceiling"),
        pytest.param(of(W), 0, 90, id="nothing runs"),
        pytest.param([running(spent=40)], 40, 0, id="never in the past"),
    ],
)
def test_when_it_asks_for_a_step_by_itself(phases, spent, rest) -> None:
    assert composing.rest(phases, minutes(spent), CEILING) == minutes(rest)


@pytest.mark.row("RUNE-58", level="pure")
@pytest.mark.parametrize(
    ("timeout", "net"),
    [
        pytest.param(minutes(30), minutes(35), id="its timeout and room around it"),
        pytest.param(None, minutes(15), id="without a timeout"),
    ],
)
def test_the_net_that_nobody_gave(timeout, net) -> None:
    assert composing.net_of(timeout) == net
