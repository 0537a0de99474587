"""When a tracker that has to be waited for is asked for ready issues and pull requests. Pure rules.

Hooks and people wake, polling guarantees: where every hook gets lost, an issue is found half an
hour later and nothing else goes wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

HOOKS_COUNT_FOR = timedelta(days=7)
TRUSTED_FOR = timedelta(minutes=30)
RUN_TRUSTED_FOR = timedelta(minutes=5)
UNASKED_FOR = timedelta(minutes=5)
UNWANTED_FOR = timedelta(minutes=10)
AT_ONCE = timedelta(seconds=5)
# A forge may tell of a pull request a moment before its list shows it.
LISTED_AFTER = timedelta(seconds=20)
# An open page says that it is there once a minute.
WATCHED_FOR = timedelta(seconds=75)
WATCHED_EVERY = timedelta(seconds=45)
# How often labsite asks about one project's repository in an hour before it slows down.
BUDGET = 400
SLOWED_TO = timedelta(minutes=5)

BY_HOOK = "its webhook tells of changes and nothing is waiting"
BY_FULL = "the maximum number of runs is active"
BY_BUDGET = f"its budget of {BUDGET} requests an hour is used up"
BY_QUOTA = "little is left of what the forge allows in this hour"


@dataclass(frozen=True, slots=True)
class PollFacts:
    """What is known of one project.

    `interval` is that of the launch pass, `pace` what the quota allows, `asked_at` and `seen_at`
    are the last question and the last answer, `issues_hooked_at` when a hook told of issues last: one
    that only sends pushes would let a label wait. `has_work` is None when nobody counted: issues
    that could start, or that wait for others. `is_full`: it runs as much as it may. `watched_at` is
    when a page of it was open last. `is_over`: as many requests as its budget allows were made.
    `is_wanted`: something starts by itself there; else its queue is read for its page alone.
    """

    interval: timedelta
    pace: timedelta
    asked_at: datetime | None = None
    seen_at: datetime | None = None
    hooked_at: datetime | None = None
    issues_hooked_at: datetime | None = None
    kicked_at: datetime | None = None
    watched_at: datetime | None = None
    is_full: bool = False
    is_over: bool = False
    is_wanted: bool = True
    has_work: bool | None = None


@dataclass(frozen=True, slots=True)
class PullFacts:
    """What is known of one project's pull requests; the times as in `PollFacts`.

    `has_open`: one of ours was open at the last look. `is_live`: a run of it is at work.
    """

    interval: timedelta
    asked_at: datetime | None = None
    hooked_at: datetime | None = None
    kicked_at: datetime | None = None
    watched_at: datetime | None = None
    has_open: bool = False
    is_live: bool = False


@dataclass(frozen=True, slots=True)
class Cadence:
    """How often it is asked, and why so seldom; no reason: as often as everything."""

    every: timedelta
    why: str = ""


def do_hooks_work(hooked_at: datetime | None, now: datetime) -> bool:
    """Whether a webhook came lately; one that comes no more is soon not relied on."""
    return hooked_at is not None and now - hooked_at < HOOKS_COUNT_FOR


def is_watched(watched_at: datetime | None, now: datetime) -> bool:
    """Whether somebody has a page of the project open."""
    return watched_at is not None and watched_at <= now < watched_at + WATCHED_FOR


def cadence(facts: PollFacts, now: datetime) -> Cadence:
    """How often the queue is asked for as things stand.

    Blocked issues count as work: what frees them may be out of the webhook's sight, in another
    repository. While nothing more may start it is asked seldom, with a webhook or without.
    """
    is_quiet = facts.seen_at is not None and (facts.has_work is False or facts.is_full)
    usual = Cadence(facts.interval)
    if is_quiet and do_hooks_work(facts.issues_hooked_at, now):
        usual = Cadence(TRUSTED_FOR, BY_HOOK if facts.has_work is False else BY_FULL)
    elif is_quiet and facts.is_full:
        usual = Cadence(max(UNASKED_FOR, facts.interval), BY_FULL)
    elif not facts.is_wanted:
        usual = Cadence(max(UNWANTED_FOR, facts.interval))
    if usual.every > WATCHED_EVERY and is_watched(facts.watched_at, now):
        usual = Cadence(max(WATCHED_EVERY, facts.interval))
    if facts.is_over and usual.every < SLOWED_TO:
        usual = Cadence(SLOWED_TO, BY_BUDGET)
    if facts.pace > usual.every:
        return Cadence(facts.pace, usual.why or BY_QUOTA)
    return usual


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


def pulls_every(facts: PullFacts, now: datetime) -> timedelta:
    """How often pull requests are asked for as things stand.

    A run that is at work is the judge's, which asks at each look unless a webhook tells of them.
    """
    if is_watched(facts.watched_at, now):
        return facts.interval
    if do_hooks_work(facts.hooked_at, now):
        return RUN_TRUSTED_FOR if facts.is_live else TRUSTED_FOR
    if facts.is_live:
        return timedelta(0)
    return facts.interval if facts.has_open else UNASKED_FOR


def are_pulls_due(facts: PullFacts, now: datetime) -> bool:
    """Whether to ask for pull requests now; at once after a delivery about one, and once more then."""
    if facts.asked_at is None or facts.asked_at > now:
        return True
    ago = now - facts.asked_at
    if facts.kicked_at is not None and facts.kicked_at > facts.asked_at:
        return True
    if facts.hooked_at is not None and facts.hooked_at > facts.asked_at - LISTED_AFTER:
        return ago >= (AT_ONCE if facts.hooked_at > facts.asked_at else LISTED_AFTER)
    slack = 2 if is_watched(facts.watched_at, now) else 4
    return ago >= pulls_every(facts, now) - facts.interval / slack
