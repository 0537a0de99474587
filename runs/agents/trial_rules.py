"""Trying an agent: the steps of a trial, and how each stands by what was seen so far. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

TRIAL_FOR = timedelta(minutes=3)
QUEUED_FOR = timedelta(minutes=1)
CLOSING = timedelta(seconds=60)
LOST_AFTER = timedelta(minutes=1)
NOTE_CHARACTERS = 400


class TrialState(StrEnum):
    """Where a trial stands. *Waiting*: the worker has not taken it yet."""

    WAITING = "waiting"
    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"
    STOPPED = "stopped"

    @property
    def is_over(self) -> bool:
        return self not in OPEN


OPEN = (TrialState.WAITING, TrialState.RUNNING)


class Step(StrEnum):
    """What a trial tries, in order."""

    FOUND = "found"
    VERSION = "version"
    LOGIN = "login"
    STARTED = "started"
    TASK = "task"
    LABCTL = "labctl"
    PUSHED = "pushed"
    PULL = "pull"
    HOOKS = "hooks"
    ENDED = "ended"


LABELS: Mapping[Step, str] = {
    Step.FOUND: "Program found",
    Step.VERSION: "Version",
    Step.LOGIN: "Logged in",
    Step.STARTED: "Started without a question",
    Step.TASK: "Saw its task",
    Step.LABCTL: "Ran labctl",
    Step.PUSHED: "Pushed its branch",
    Step.PULL: "Opened a pull request",
    Step.HOOKS: "Hooks heard",
    Step.ENDED: "Ended",
}


class StepState(StrEnum):
    """How a step stands. *Unknown*: it was asked, and nobody could tell. *Skipped*: it never came to it."""

    WAITING = "waiting"
    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "could not tell"
    SKIPPED = "not tried"
    NOT_MEANT = "not for this program"


@dataclass(frozen=True, slots=True)
class Tried:
    """One step, how it stands, and what explains it."""

    step: Step
    state: StepState = StepState.WAITING
    note: str = ""

    @property
    def label(self) -> str:
        return LABELS[self.step]


@dataclass(frozen=True, slots=True)
class TrialFacts:
    """What is known of a program that was started. None: could not tell, or it has none.

    `heard`: its hooks told anything; `began`: they told that it was given its task; `turn_over`:
    they told that it has nothing more to do; `refused`: in whose words its model provider said no.
    """

    is_one_shot: bool
    has_hooks: bool
    alive: bool | None = None
    exit_status: int | None = None
    asked: Sequence[str] = ()
    is_pushed: bool | None = None
    has_pull: bool = False
    since_pull: timedelta = timedelta(0)
    heard: bool = False
    began: bool = False
    turn_over: bool = False
    refused: str = ""
    is_late: bool = False
    last_line: str = ""


def steps_of(facts: TrialFacts) -> list[Tried]:
    """How the steps from the start on stand. Those that can still come are waiting."""
    over = is_over(facts)
    return [
        _started(facts, over),
        _seen(Step.TASK, facts.began or bool(facts.asked) or facts.has_pull, over, facts),
        _seen(Step.LABCTL, bool(facts.asked), over, facts),
        _seen(Step.PUSHED, bool(facts.is_pushed), over, facts),
        _seen(Step.PULL, facts.has_pull, over, facts),
        _hooks(facts, over),
        _ended(facts, over),
    ]


def started_version(steps: Sequence[Tried]) -> str:
    """Return which version a trial started that stood like this; empty where it did not come so far."""
    by_name = {one.step: one for one in steps}
    started, version = by_name.get(Step.STARTED), by_name.get(Step.VERSION)
    was_started = started is not None and started.state in (StepState.PASSED, StepState.FAILED)
    return version.note if was_started and version is not None else ""


def is_over(facts: TrialFacts) -> bool:
    """Whether nothing more has to be waited for."""
    if facts.alive is False or facts.is_late:
        return True
    if facts.has_pull and facts.since_pull >= CLOSING:
        return True
    if facts.is_one_shot:
        return False
    return facts.turn_over or (facts.has_pull and not facts.has_hooks)


def verdict(steps: Sequence[Tried]) -> TrialState:
    """How a trial ended whose steps stand like this."""
    bad = any(one.state in (StepState.FAILED, StepState.WAITING) for one in steps)
    return TrialState.FAILED if bad else TrialState.PASSED


def first() -> list[Tried]:
    """All steps before anything was tried."""
    return [Tried(step) for step in Step]


def with_steps(steps: Sequence[Tried], changed: Sequence[Tried]) -> list[Tried]:
    """The same steps with those that changed."""
    news = {one.step: one for one in changed}
    return [news.get(one.step, one) for one in steps]


def given_up(steps: Sequence[Tried]) -> list[Tried]:
    """The same when the trial ends before them: what was waited for was not tried."""
    return [
        Tried(one.step, StepState.SKIPPED) if one.state is StepState.WAITING else one
        for one in steps
    ]


def stored(steps: Sequence[Tried]) -> list[dict[str, str]]:
    """Steps as a row keeps them."""
    return [
        {"step": one.step, "state": one.state, "note": one.note[:NOTE_CHARACTERS]} for one in steps
    ]


def read(rows: Sequence[Mapping[str, Any]]) -> list[Tried]:
    """Steps that a row kept."""
    return [Tried(Step(one["step"]), StepState(one["state"]), one["note"]) for one in rows]


def _did_anything(facts: TrialFacts) -> bool:
    return bool(facts.began or facts.asked or facts.is_pushed or facts.has_pull)


def _started(facts: TrialFacts, over: bool) -> Tried:
    if _did_anything(facts):
        return Tried(Step.STARTED, StepState.PASSED)
    if not over:
        return Tried(Step.STARTED)
    if facts.alive is False:
        how = f" with status {facts.exit_status}" if facts.exit_status is not None else ""
        words = f": {facts.last_line}" if facts.last_line else "."
        return Tried(Step.STARTED, StepState.FAILED, f"It ended{how} before it did anything{words}")
    note = (
        "It runs and did nothing. It may be waiting for an answer; the screen shows its last lines."
    )
    return Tried(Step.STARTED, StepState.FAILED, note)


def _seen(step: Step, is_seen: bool, over: bool, facts: TrialFacts) -> Tried:
    if is_seen:
        return Tried(step, StepState.PASSED)
    if not over:
        return Tried(step)
    if not _did_anything(facts):
        return Tried(step, StepState.SKIPPED)
    return Tried(step, StepState.FAILED, facts.refused or "It did not come so far.")


def _hooks(facts: TrialFacts, over: bool) -> Tried:
    if not facts.has_hooks:
        return Tried(Step.HOOKS, StepState.NOT_MEANT)
    if facts.heard:
        return Tried(Step.HOOKS, StepState.PASSED)
    if not over:
        return Tried(Step.HOOKS)
    return Tried(Step.HOOKS, StepState.FAILED, "Its hooks told nothing, so errors are seen late.")


def _ended(facts: TrialFacts, over: bool) -> Tried:
    if not over:
        return Tried(Step.ENDED)
    if facts.alive is False:
        return _ended_by_itself(facts)
    if facts.is_one_shot:
        note = "It should end by itself when it is done, and did not."
        return Tried(Step.ENDED, StepState.FAILED, note)
    if not facts.has_pull:
        note = facts.refused or "It stays open without a pull request; labsite ended it."
        return Tried(Step.ENDED, StepState.FAILED, note)
    if facts.has_hooks and not facts.turn_over:
        note = "It did not say that it was done within a minute; labsite ended it."
        return Tried(Step.ENDED, StepState.UNKNOWN, note)
    return Tried(Step.ENDED, StepState.PASSED, "It stays open as it should; labsite ended it.")


def _ended_by_itself(facts: TrialFacts) -> Tried:
    if facts.exit_status == 0:
        return Tried(Step.ENDED, StepState.PASSED, "by itself")
    if facts.exit_status is None:
        return Tried(Step.ENDED, StepState.UNKNOWN, "It ended, and nobody knows how.")
    return Tried(Step.ENDED, StepState.FAILED, f"with status {facts.exit_status}")
