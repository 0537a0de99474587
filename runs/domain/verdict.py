"""The one rule of the reaper: which outcome, if any, the facts about a run prove (LAB-19)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from runs.domain.states import Outcome


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What was seen of a run. None means "could not tell" and never ends anything.

    `has_pull`: an open or merged pull request has exactly the run's branch as its head.
    `alive`: the session exists and its program runs. `age` and `budget`: wall time.
    """

    has_pull: bool | None
    alive: bool | None
    age: timedelta
    budget: timedelta


def verdict(facts: RunFacts) -> Outcome | None:
    """The outcome that the facts prove, or None while the run goes on (LAB-14, 15, 20 to 26)."""
    if facts.alive is None or facts.has_pull is None:
        return None
    if facts.has_pull:
        return Outcome.SUCCEEDED
    if not facts.alive:
        return Outcome.DIED
    if facts.age >= facts.budget:
        return Outcome.TIMED_OUT
    return None
