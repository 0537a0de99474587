"""What of a run is told as its story, and what is folded between. Pure.

Facts come from the timeline and from the agent's own record, on one clock. An agent wrote the latter,
so that its texts are only ever shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from runs.core.states import GOOD, NEUTRAL, NoticeKind, Outcome

COMMIT, BRANCH = "commit ", "Branch "
COMMAND_CHARACTERS = 2000
LEAST = timedelta(seconds=1)  # a shorter time between two events is not told


class Source(StrEnum):
    """Where a fact is known from."""

    TIMELINE = "timeline"
    EDIT = "edit"
    TESTS = "tests"
    UNREAD = "unread"  # so many facts of which only their number is known


class Leads(StrEnum):
    """The tab in which an event has its place."""

    NOWHERE = ""
    CONVERSATION = "conversation"
    TERMINAL = "terminal"
    CHANGES = "changes"
    CHECKS = "checks"
    PULL = "pull"


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that happened. `passed`: how tests ended; `place`: its address in the conversation."""

    at: datetime
    source: Source
    kind: str = ""
    text: str = ""
    by: str = ""
    outcome: str = ""
    place: str = ""
    passed: bool | None = None
    ident: int = 0
    count: int = 1


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the story. `after`: since the one before; `folded`: what happened in between."""

    fact: Fact
    name: str
    tone: str = ""
    leads: Leads = Leads.NOWHERE
    times: int = 1
    after: timedelta | None = None
    folded: Sequence[Fact] = ()

    @property
    def hidden(self) -> int:
        """How many facts are folded before it."""
        return sum(one.count for one in self.folded)


@dataclass(frozen=True, slots=True)
class Story:
    """All events in order, and what happened after the last one."""

    events: Sequence[Event] = ()
    rest: Sequence[Fact] = ()

    @property
    def hidden(self) -> int:
        """How many facts came after the last event."""
        return sum(one.count for one in self.rest)


@dataclass(slots=True)
class _Told:
    """What was told so far, as far as later facts depend on it."""

    has_edit: bool = False
    tests: bool | None = None
    is_waiting: bool = False
    last: str = ""


_ALWAYS: Mapping[str, tuple[str, str, Leads]] = {
    NoticeKind.RUN_STARTING: ("Started", "", Leads.NOWHERE),
    NoticeKind.RUN_ADOPTED: ("Adopted", "live", Leads.TERMINAL),
    NoticeKind.RUN_STARTED: ("Agent started", "live", Leads.TERMINAL),
    NoticeKind.RUN_WAITS: ("Waited for you", "warn", Leads.CONVERSATION),
    NoticeKind.RUN_ISSUE_CLOSED: ("Issue closed", "warn", Leads.NOWHERE),
    NoticeKind.RUN_ANSWERED: ("Answered", "live", Leads.CONVERSATION),
    NoticeKind.RUN_INTERRUPTED: ("Interrupted", "warn", Leads.CONVERSATION),
    NoticeKind.RUN_TROUBLED: ("Held up", "warn", Leads.CONVERSATION),
    NoticeKind.RUN_HELD: ("Held", "warn", Leads.NOWHERE),
    NoticeKind.RUN_RESUMED: ("Resumed", "live", Leads.TERMINAL),
    NoticeKind.RUN_NEARS_LIMIT: ("Near a limit", "warn", Leads.NOWHERE),
    NoticeKind.RUN_CHECKING: ("Checks began", "live", Leads.CHECKS),
    NoticeKind.RUN_REENTERED: ("Back to the agent", "live", Leads.CONVERSATION),
    NoticeKind.GATE_PASSED: ("Checks passed", "good", Leads.CHECKS),
    NoticeKind.GATE_FAILED: ("Checks failed", "bad", Leads.CHECKS),
    NoticeKind.CHECKS_CHANGED: ("Changed its checks", "warn", Leads.CHECKS),
    NoticeKind.LOOP_GUIDED: ("Guidance", "", Leads.NOWHERE),
    NoticeKind.PULL_OPENED: ("Pull request", "good", Leads.PULL),
    NoticeKind.PULL_MERGED: ("Merged", "good", Leads.PULL),
    NoticeKind.ISSUE_CLOSED: ("Issue closed", "good", Leads.NOWHERE),
    NoticeKind.VALIDATION_PASSED: ("Run level passed", "good", Leads.CHECKS),
    NoticeKind.VALIDATION_FAILED: ("Run level failed", "bad", Leads.CHECKS),
    NoticeKind.RUN_WARNED: ("Warning", "warn", Leads.NOWHERE),
    NoticeKind.WORK_DISCARDED: ("Discarded", "warn", Leads.NOWHERE),
    NoticeKind.WORK_RESTORED: ("Restored", "good", Leads.NOWHERE),
}
TOLD = (*_ALWAYS, NoticeKind.RUN_GOES_ON, NoticeKind.RUN_ENDED)
_CALM = (*NEUTRAL, Outcome.LIMIT_REACHED)
# Of these the last one in a row stands for all of them; the others are folded before it.
_ROWS = ("Committed", "Held up", "Waited for you")


# What the timeline tells begins with the name of the event already.
_REPEATED = ("Started", "Agent started", "Answered", "Guidance", "Interrupted", "Pull request")


def tell(facts: Sequence[Fact]) -> Story:
    """The story of a run out of everything that is known of it, in any order."""
    events: list[Event] = []
    between: list[Fact] = []
    told = _Told()
    for fact in sorted(facts, key=lambda one: (one.at, one.source != Source.TIMELINE, one.ident)):
        event = _event(fact, told)
        if event is None:
            between.append(fact)
        elif events and event.name in _ROWS and told.last == event.name:
            before = events.pop()
            facts_between = [*before.folded, before.fact, *between]
            times = before.times + 1
            events.append(replace(event, times=times, after=before.after, folded=facts_between))
            between = []
        else:
            after = fact.at - events[-1].fact.at if events else None
            if after is not None and after < LEAST:
                after = None
            events.append(replace(event, after=after, folded=between))
            between = []
        if event is not None:
            told.last = event.name
    return Story(events, between)


def thin(facts: Sequence[Fact], most: int) -> list[Fact]:
    """Facts of one record in its order, without the oldest of what is no event, beyond `most`.

    Of those that are left out their number stays. Of events the newest `most`, and the first one.
    """
    told = _Told()
    turns = [number for number, fact in enumerate(facts) if _event(fact, told) is not None]
    kept = {*turns[:1], *turns[-most:]}
    others = [number for number, fact in enumerate(facts) if fact.source is not Source.UNREAD]
    kept.update([number for number in others if number not in kept][-most:])
    thinned: list[Fact] = []
    for number, fact in enumerate(facts):
        if number in kept:
            thinned.append(fact)
        elif thinned and thinned[-1].source is Source.UNREAD:
            thinned[-1] = replace(thinned[-1], count=thinned[-1].count + fact.count)
        else:
            thinned.append(Fact(fact.at, Source.UNREAD, count=fact.count))
    return thinned


def is_test(command: str) -> bool:
    """Whether a command line runs tests, by the names of the programs that everybody uses.

    An agent wrote it, of any length: its beginning is looked at, in time that grows with it at most.
    """
    return _TESTS.search(command[:COMMAND_CHARACTERS]) is not None


_TESTS = re.compile(
    r"(?:^|[\s;&|(/'\"])(?:pytest|py\.test|tox|nox|ctest|rspec|phpunit|jest|vitest|mocha|bats"
    r"|(?:npm|pnpm|yarn|bun|deno|cargo|go|dotnet|mvn|gradle|\./gradlew|mix|swift|bazel|make|just|rake)"
    r"(?:\s+-\S+){0,9}(?:\s+run)?\s+(?:test|check|verify)"
    r"|python[\d.]*\s+-m\s+(?:pytest|unittest)|manage\.py\s+test)\b"
)


def _event(fact: Fact, told: _Told) -> Event | None:
    """The event that a fact is, None where it is folded."""
    match fact.source:
        case Source.EDIT:
            return _first_edit(fact, told)
        case Source.TESTS:
            return _tests(fact, told)
        case Source.TIMELINE:
            return _of_timeline(fact, told)
        case _:
            return None


def _first_edit(fact: Fact, told: _Told) -> Event | None:
    if told.has_edit:
        return None
    told.has_edit = True
    return Event(fact, "First edit", "", Leads.CONVERSATION)


def _tests(fact: Fact, told: _Told) -> Event | None:
    """Tests are told when they turn red or green; an end that is not known turns nothing."""
    if fact.passed is None or fact.passed == told.tests:
        return None
    told.tests = fact.passed
    name, tone = ("Tests green", "good") if fact.passed else ("Tests red", "bad")
    return Event(fact, name, tone, Leads.CONVERSATION)


def _of_timeline(fact: Fact, told: _Told) -> Event | None:
    was_waiting = told.is_waiting
    if fact.kind in (NoticeKind.RUN_WAITS, NoticeKind.RUN_TROUBLED):
        told.is_waiting = True
    if fact.kind in _ALWAYS:
        name, tone, leads = _ALWAYS[fact.kind]
        if name in _REPEATED and fact.text.lower().startswith(name.lower()):
            fact = replace(fact, text=fact.text[len(name) :].lstrip(": "))
        return Event(fact, name, tone, leads)
    found = _STEPS.get(fact.kind)
    if found is not None:
        return found(fact)
    if fact.kind == NoticeKind.RUN_GOES_ON:
        told.is_waiting = False
        is_told = was_waiting and told.last != "Answered"
        return Event(fact, "Went on", "live", Leads.CONVERSATION) if is_told else None
    return None


def _step(fact: Fact) -> Event | None:
    if fact.text.startswith(BRANCH):
        return Event(fact, "Claimed", "good")
    if fact.text.startswith(COMMIT):
        cut = replace(fact, text=fact.text.removeprefix(COMMIT))
        return Event(cut, "Committed", "good", Leads.CHANGES)
    return None


def _ended(fact: Fact) -> Event:
    words = Outcome(fact.outcome).words if fact.outcome in set(Outcome) else "ended"
    tone = "good" if fact.outcome in GOOD else "" if fact.outcome in _CALM else "bad"
    return Event(fact, words[:1].upper() + words[1:], tone, Leads.TERMINAL)


_STEPS: Mapping[str, Callable[[Fact], Event | None]] = {
    NoticeKind.RUN_STEP: _step,
    NoticeKind.RUN_ENDED: _ended,
}
