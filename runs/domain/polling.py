"""When the ready queue of a tracker is asked for that has to be waited for. A pure rule.

Hooks and people wake, polling guarantees: where every hook gets lost, an issue is found half an
hour later and nothing else goes wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

HOOKS_COUNT_FOR = timedelta(days=7)
TRUSTED_FOR = timedelta(minutes=30)
AT_ONCE = timedelta(seconds=5)

BY_HOOK = "its webhook tells of changes and nothing is waiting"
BY_QUOTA = "little is left of what the forge allows in this hour"


@dataclass(frozen=True, slots=True)
class PollFacts:
    """What is known of one project.

    `interval` is that of the launch pass, `pace` what the quota allows, `asked_at` and `seen_at`
    are the last question and the last answer, `issues_hooked_at` when a hook told of issues last: one
    that only sends pushes would let a label wait. `has_work` is None when nobody counted.
    """

    interval: timedelta
    pace: timedelta
    asked_at: datetime | None = None
    seen_at: datetime | None = None
    hooked_at: datetime | None = None
    issues_hooked_at: datetime | None = None
    kicked_at: datetime | None = None
    has_live: bool = False
    has_work: bool | None = None


@dataclass(frozen=True, slots=True)
class Cadence:
    """How often it is asked, and why so seldom; no reason: as often as everything."""

    every: timedelta
    why: str = ""


def do_hooks_work(hooked_at: datetime | None, now: datetime) -> bool:
    """Whether a webhook came lately; one that comes no more is soon not relied on."""
    return hooked_at is not None and now - hooked_at < HOOKS_COUNT_FOR


def cadence(facts: PollFacts, now: datetime) -> Cadence:
    """How often the queue is asked for as things stand."""
    is_quiet = facts.has_work is False and not facts.has_live and facts.seen_at is not None
    if is_quiet and do_hooks_work(facts.issues_hooked_at, now):
        return Cadence(max(TRUSTED_FOR, facts.pace), BY_HOOK)
    if facts.pace > facts.interval:
        return Cadence(facts.pace, BY_QUOTA)
    return Cadence(facts.interval)


def is_due(facts: PollFacts, now: datetime) -> bool:
    """Whether to ask now: never asked, woken since, or it is time again.

    Passes come at their own interval, so half of one counts as a whole. A clock that was set back
    keeps nobody waiting. Hooks that come in heaps wake only every few seconds.
    """
    if facts.asked_at is None or facts.asked_at > now:
        return True
    ago = now - facts.asked_at
    if facts.kicked_at is not None and facts.kicked_at > facts.asked_at:
        return True
    if facts.hooked_at is not None and facts.hooked_at > facts.asked_at and ago >= AT_ONCE:
        return True
    return ago >= cadence(facts, now).every - facts.interval / 2
