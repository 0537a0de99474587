"""The one rule of the reaper: which outcome, if any, the facts about a run prove (LAB-19)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from runs.core.states import Outcome, RunState, Trouble

Verdict = Outcome | Literal[RunState.HELD]


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What was seen of a run. None means "could not tell" and never ends anything.

    `is_done`: the done signal of the run's tracker is there (C-07): an open or merged pull request
    has exactly the run's branch as its head, or its commits prove the delivery (evidence.py).
    `alive`: the session exists and its program runs. `age` and `budget`: wall time, without the
    time in which it was held. `was_interrupted`: a person aborted its watch session, so that its
    end is no death (MALA-W-50). `trouble`: the account's trouble in which the program ended, or the
    last turn of one that waits for a next word now.
    """

    is_done: bool | None
    alive: bool | None
    age: timedelta
    budget: timedelta
    was_interrupted: bool = False
    trouble: Trouble = Trouble.NONE


def verdict(facts: RunFacts) -> Verdict | None:
    """The outcome that the facts prove, or None while the run goes on (LAB-14, 15, 20 to 26).

    Delivered work is a success whatever came after it. A run whose agent was turned away for its
    account's sake has no outcome: it is held until the account can be used again.
    """
    if facts.alive is None or facts.is_done is None:
        return None
    if facts.is_done:
        return Outcome.SUCCEEDED
    if facts.trouble is not Trouble.NONE and not facts.was_interrupted:
        return RunState.HELD
    if not facts.alive:
        return Outcome.INTERRUPTED if facts.was_interrupted else Outcome.DIED
    if facts.age >= facts.budget:
        return Outcome.TIMED_OUT
    return None
