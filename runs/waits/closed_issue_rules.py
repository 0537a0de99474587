"""When the issues of working runs are asked for, and what a closed one means for its run. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from runs.core.states import ClosedIssue

ASKED_EVERY = timedelta(minutes=15)  # each time costs a forge two requests
WITH_HOOK = timedelta(hours=1)  # a delivery may get lost


@dataclass(frozen=True, slots=True)
class AskFacts:
    """When a project's tracker was last asked, and when a webhook last told of its issues."""

    is_local: bool
    asked_at: datetime | None
    hooked_at: datetime | None


def is_due(facts: AskFacts, now: datetime) -> bool:
    """Return whether to ask which issues of working runs are open; a local tracker in every look.

    A webhook tells of each change; without one a forge is asked seldom, for the sake of its quota.
    """
    if facts.is_local or facts.asked_at is None:
        return True
    if facts.hooked_at is None:
        return now - facts.asked_at >= ASKED_EVERY
    return facts.hooked_at > facts.asked_at or now - facts.asked_at >= WITH_HOOK


def is_asked(choice: ClosedIssue, closed_at: datetime | None, allowed_by: str) -> bool:
    """Return whether a person has still to say if a working run goes on, whose issue is closed."""
    return choice is ClosedIssue.ASK and closed_at is not None and not allowed_by


class Step(Enum):
    """What is done about a working run."""

    NOTHING = "nothing"
    TELL = "tell that its issue was closed"
    TELL_OPEN = "tell that it is open again"
    STOP = "stop it"


@dataclass(frozen=True, slots=True)
class ClosedFacts:
    """What is known of the issue of a working run. `is_open` is None when it could not be told.

    `closed_at` is when it was first seen closed. `pulls_at` is when its pull requests were asked for
    last: a delivery that closed the issue would have ended the run by then.
    """

    is_open: bool | None
    closed_at: datetime | None
    pulls_at: datetime | None
    choice: ClosedIssue


def next_step(facts: ClosedFacts) -> Step:
    """Return the next step: told at once, stopped only when it is no delivery of the run itself."""
    if facts.is_open is None:
        return Step.NOTHING
    if facts.is_open:
        return Step.TELL_OPEN if facts.closed_at is not None else Step.NOTHING
    if facts.closed_at is None:
        return Step.TELL
    is_settled = facts.pulls_at is not None and facts.pulls_at > facts.closed_at
    return Step.STOP if facts.choice is ClosedIssue.STOP and is_settled else Step.NOTHING
