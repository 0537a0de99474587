"""What is done next with a job, from what is known of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

ZERO = timedelta(0)


@dataclass(frozen=True, slots=True)
class Limits:
    """How patient a kind of job is.

    `stale`: an owner that is silent for so long has lost it. `most_losses`: so many end it.
    `again_after`: the wait after the first trouble, doubled each time up to `longest_wait`;
    `most_troubles` in a row end it, None never. `time_to_leave`: how long a job waits for a silent
    owner that lives to notice its loss. `forgives_living`: an owner that lives never ends it, and
    this process knows by itself which jobs its threads work on.
    """

    stale: timedelta = timedelta(minutes=10)
    most_losses: int = 3
    again_after: timedelta = timedelta(seconds=30)
    longest_wait: timedelta = timedelta(minutes=10)
    most_troubles: int | None = None
    time_to_leave: timedelta = timedelta(seconds=30)
    forgives_living: bool = False


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What is known of an unfinished job.

    `owner_alive`: None when it could not be told. `is_worked_on_here`: whether a thread of this very
    process works on it; None when that says nothing. `silence`: since the last heartbeat, None
    when there was none. `time_left` until its deadline; None without one.
    """

    is_owned: bool
    owner_alive: bool | None = None
    is_worked_on_here: bool | None = None
    silence: timedelta | None = None
    is_due: bool = True
    time_left: timedelta | None = None
    losses: int = 0
    troubles: int = 0


class Next(Enum):
    """What is done next with a job."""

    LEAVE = "leave"
    ENQUEUE = "enqueue"
    RETRY_NOW = "release it and retry now"
    RETRY_LATER = "release it and retry later"
    GIVE_UP = "give up"


def next_step(facts: JobFacts, limits: Limits) -> Next:
    """Return what is done next with a job that is still wanted."""
    if facts.time_left is not None and facts.time_left <= ZERO:
        return Next.GIVE_UP
    if facts.is_owned:
        return Next.LEAVE if is_worked_on(facts, limits) else _after_loss(facts, limits)
    if limits.most_troubles is not None and facts.troubles >= limits.most_troubles:
        return Next.GIVE_UP
    return Next.ENQUEUE if facts.is_due else Next.LEAVE


def is_worked_on(facts: JobFacts, limits: Limits) -> bool:
    """Return whether somebody has to be taken to be at work on a job."""
    if not facts.is_owned:
        return False
    if facts.is_worked_on_here is not None:
        return facts.is_worked_on_here
    is_silent = facts.silence is not None and facts.silence >= limits.stale
    return facts.owner_alive is not False and not is_silent


def _after_loss(facts: JobFacts, limits: Limits) -> Next:
    is_forgiven = limits.forgives_living and facts.owner_alive is True
    if facts.losses + 1 >= limits.most_losses and not is_forgiven:
        return Next.GIVE_UP
    # An owner that was only silent first has to leave what its successor would work in.
    may_be_there = facts.owner_alive is not False and limits.time_to_leave > ZERO
    return Next.RETRY_LATER if may_be_there else Next.RETRY_NOW


def wait_after(troubles: int, limits: Limits) -> timedelta:
    """Return how long a job waits after so many troubles in a row, from 1 on."""
    return min(limits.again_after * (1 << min(max(troubles - 1, 0), 10)), limits.longest_wait)
