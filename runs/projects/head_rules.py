"""What holds a project up, as its head says on every page: paused, and blocked. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from runs.core.states import ProjectState


class Kind(StrEnum):
    """Paused: work that goes on by itself waits for a person. Blocked: nothing can start at all."""

    PAUSED = "paused"
    BLOCKED = "blocked"


class Remedy(StrEnum):
    """What a person can do about it."""

    RESET = "reset"
    RESUME = "resume"
    TRY_AGAIN = "try again"
    SET_CHECKS = "set checks"
    NONE = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a project. `failed_at`: when the run ended that made the streak full."""

    state: str
    is_auto: bool
    streak: int
    is_streak_full: bool
    failed_at: datetime | None = None
    failed_issue: str = ""
    failed_run: int | None = None
    is_stalled: bool = False
    stalled_since: datetime | None = None
    has_tracker: bool = True
    hold: str = ""
    missing_agent: str = ""
    logged_out_agent: str = ""
    limit: str = ""
    checks: str = ""


@dataclass(frozen=True, slots=True)
class HeldUp:
    """One thing that holds a project up: since when, by whom, why, and what can be pressed."""

    kind: Kind
    why: str
    remedy: Remedy = Remedy.NONE
    since: datetime | None = None
    by: str = ""
    run: int | None = None


def held_up(facts: Facts) -> Sequence[HeldUp]:
    """Everything that holds a project up, what waits for a press first.

    A project that is not cloned says so itself, and all slots being taken is no block: it passes.
    """
    if facts.state != ProjectState.READY:
        return ()
    return [*_paused(facts), *(HeldUp(Kind.BLOCKED, *one) for one in _blocked(facts))]


def _paused(facts: Facts) -> list[HeldUp]:
    found = []
    if facts.is_streak_full:
        last = f", the last one on issue {facts.failed_issue}" if facts.failed_issue else ""
        effect = "nothing starts by itself" if facts.is_auto else "nothing would start by itself"
        why = f"{facts.streak} runs in a row failed{last}, so {effect}. A start by hand works."
        found.append(
            HeldUp(
                Kind.PAUSED, why, Remedy.RESET, facts.failed_at, by="labsite", run=facts.failed_run
            )
        )
    if facts.is_stalled and facts.is_auto:
        why = "The tracker gave no answer three times in a row, so nothing new starts by itself."
        found.append(
            HeldUp(Kind.PAUSED, why, Remedy.RESUME, facts.stalled_since, by="labsite"),
        )
    return found


def _blocked(facts: Facts) -> list[tuple[str, Remedy]]:
    """A sentence for each reason, with what can be pressed. What no start can do without comes first."""
    found: list[tuple[str, Remedy]] = []
    if not facts.has_tracker:
        found.append(("It has no tracker that labsite can read.", Remedy.NONE))
    if facts.missing_agent:
        found.append((f"{facts.missing_agent} is not installed on this machine.", Remedy.NONE))
    elif facts.logged_out_agent:
        found.append((f"{facts.logged_out_agent} is logged out.", Remedy.NONE))
    if facts.hold:
        found.append((facts.hold, Remedy.TRY_AGAIN))
    if facts.limit:
        found.append((facts.limit, Remedy.NONE))
    if facts.checks:
        found.append((facts.checks, Remedy.SET_CHECKS))
    return found
