"""What a tick does with unfinished starts, pushed branches and sessions that are nobody's. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from runs.core import naming
from runs.core.budgets import ZERO
from runs.core.ports import Sighting
from trackers.keys import KeyRule

QUEUE_LOSS = timedelta(seconds=5)


class Recovery(StrEnum):
    """The next step of an unfinished start."""

    WAIT = "wait"
    ASK_AGAIN = "ask again"
    GOES_ON = "goes on"
    ROLL_BACK = "roll back"


@dataclass(frozen=True, slots=True)
class StartFacts:
    """What is known of a run in *starting*. None means "could not tell".

    `waited` is the time since it was asked for, negative when the clock was set back.
    `has_session`: a session with this run's mark is there, alive or ended. `has_exit`: its
    launcher wrote down how the agent ended.
    """

    has_launcher: bool
    waited: timedelta
    launcher_lives: bool | None
    is_overdue: bool
    has_session: bool | None
    has_exit: bool


def recovery(facts: StartFacts) -> Recovery:
    """Finish or roll back a start whose process is gone or whose time is up (design.md 4.6).

    Asking again is harmless, since only one launcher can take the row. An agent that ran is the
    judge's business, even when it has ended meanwhile.
    """
    if not facts.has_launcher:
        is_lost = facts.waited > QUEUE_LOSS or facts.waited < ZERO
        return Recovery.ASK_AGAIN if is_lost else Recovery.WAIT
    if facts.has_session is None:
        return Recovery.WAIT
    if facts.launcher_lives is not False and not facts.is_overdue:
        return Recovery.WAIT
    return Recovery.GOES_ON if facts.has_session or facts.has_exit else Recovery.ROLL_BACK


@dataclass(frozen=True, slots=True)
class BranchFacts:
    """Where a run's branch stands: on origin now, as fetched before the run, here, and its fork point."""

    pushed: str
    known: str | None
    head: str | None
    fork_point: str


def is_left_over(facts: BranchFacts) -> bool:
    """Whether origin's branch is an earlier run's: known before we asked, and nothing done here."""
    if facts.pushed == facts.fork_point:
        return False
    return facts.pushed == facts.known and facts.head == facts.fork_point


@dataclass(frozen=True, slots=True)
class PullFacts:
    """What is known of a pull request of a run's branch.

    `age_before`: how long before the run was asked for it was made, by the tracker's clock; negative
    after that, None where the tracker does not tell. `slack`: how far that clock may be off.
    `is_merged`: or it is open. `has_moved`: its head is a commit that this run's branch got after
    its fork point; None: could not tell.
    """

    age_before: timedelta | None
    slack: timedelta
    is_merged: bool
    has_moved: bool | None


def is_of_this_run(facts: PullFacts) -> bool | None:
    """Whether a pull request is this run's delivery and not what an earlier run of the issue left.

    One that was made after the run began is. An older one only if its head has moved to a commit of
    this run. None: could not tell.
    """
    if facts.age_before is None or facts.age_before <= ZERO:
        return True
    if facts.is_merged and facts.age_before > facts.slack:
        return False
    return facts.has_moved


def adoptable(
    sightings: Mapping[str, Sighting], held: Collection[str], rules: Mapping[str, KeyRule]
) -> dict[str, naming.RunName]:
    """Live sessions with the name of a run that no known run holds.

    `held` are the sessions of all active and unsettled runs; `rules` says of each project that is
    known, by its session name part, what its keys look like.
    """
    return {
        name: parsed
        for name, seen in sorted(sightings.items())
        if seen.alive
        and name not in held
        and (keys := rules.get(naming.session_project(name) or ""))
        and (parsed := naming.parse_session(name, keys))
    }


def maybe_adoptable(
    sightings: Mapping[str, Sighting], held: Collection[str], project: str = ""
) -> frozenset[str]:
    """The projects, by their session name part, of which a session may be adopted.

    Almost always none, so that nothing has to be known of projects. With `project` only that one.
    """
    parts = (
        naming.session_project(name)
        for name, seen in sightings.items()
        if seen.alive and name not in held and naming.may_be_run(name)
    )
    return frozenset(part for part in parts if part and project in ("", part))
