"""When trackers gave no answer and agents' accounts could not be used, out of what was told. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

SHORTEST = timedelta(minutes=5)  # what passed sooner kept nobody from anything
SOON = timedelta(minutes=15)  # what starts so soon after an outage had waited for its end
CALM_FOR = timedelta(hours=6)  # an outage that lasts longer is no longer one that passes by itself


class What(Enum):
    """What could not be used."""

    TRACKER = "tracker"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class Told:
    """One entry of the timeline: of whom it tells, by what name, and whether it was down from then on.

    `source`: a project for a tracker, a run for an agent's account.
    """

    what: What
    source: int
    name: str
    at: datetime
    is_down: bool


@dataclass(frozen=True, slots=True)
class Outage:
    """One outage. `since` None: it had begun before; `until` None: it goes on.

    `waited`: how many starts waited for a tracker, or how many runs for an account.
    """

    what: What
    names: tuple[str, ...]
    sources: frozenset[int]
    since: datetime | None
    until: datetime | None
    waited: int = 0

    @property
    def is_agent(self) -> bool:
        return self.what is What.AGENT

    @property
    def listed(self) -> str:
        """Its names as a sentence has them."""
        *most, last = self.names
        return f"{', '.join(most)} and {last}" if most else last


def outages(
    told: Iterable[Told],
    begin: datetime,
    end: datetime,
    down_now: Mapping[What, frozenset[int]],
) -> list[Outage]:
    """The outages of a time, the first one first. What happened at once is told as one.

    What was told to be down and never to be back counts only while it is down now (`down_now`).
    """
    of_source: dict[tuple[What, int], list[Told]] = {}
    for one in sorted(told, key=lambda one: one.at):
        of_source.setdefault((one.what, one.source), []).append(one)
    spells = [
        spell
        for (what, source), some in of_source.items()
        for spell in _spells(some)
        if spell.until is not None or source in down_now.get(what, frozenset())
    ]
    counted = [
        spell
        for spell in spells
        if (spell.since is None or spell.since <= end)
        and (spell.until or end) - (spell.since or begin) >= SHORTEST
    ]
    return _joined(sorted(counted, key=lambda one: one.since or begin), begin)


def with_starts(found: Sequence[Outage], starts: Iterable[tuple[int, datetime]]) -> list[Outage]:
    """The same, with how many starts waited: those of its projects that began soon after its end."""
    began = list(starts)
    return [
        replace(one, waited=len(one.sources) if one.is_agent else _soon_after(one, began))
        for one in found
    ]


def is_calm(silent_since: datetime | None, now: datetime) -> bool:
    """Whether a tracker gives no answer, and nobody has to do anything about it yet."""
    return silent_since is not None and timedelta(0) <= now - silent_since < CALM_FOR


def _spells(told: Sequence[Told]) -> list[Outage]:
    """From each beginning to its end. An end that is told again, or for a second reason, moves it."""
    found: list[Outage] = []
    for one in told:
        is_open = bool(found) and found[-1].until is None
        if one.is_down and not is_open:
            found.append(_outage(one, one.at, None))
        elif not one.is_down and found:
            found[-1] = replace(found[-1], until=one.at)
        elif not one.is_down:
            found.append(_outage(one, None, one.at))
    return found


def _outage(one: Told, since: datetime | None, until: datetime | None) -> Outage:
    return Outage(one.what, (one.name,), frozenset((one.source,)), since, until)


def _joined(spells: Sequence[Outage], begin: datetime) -> list[Outage]:
    found: list[Outage] = []
    for spell in spells:
        last = next((one for one in reversed(found) if one.what is spell.what), None)
        if last is None or (last.until is not None and last.until < (spell.since or begin)):
            found.append(spell)
            continue
        ends = (last.until, spell.until)
        found[found.index(last)] = replace(
            last,
            names=tuple(sorted({*last.names, *spell.names})),
            sources=last.sources | spell.sources,
            until=None if None in ends else max(at for at in ends if at is not None),
        )
    return found


def _soon_after(one: Outage, starts: Sequence[tuple[int, datetime]]) -> int:
    if one.until is None:
        return 0
    return sum(
        source in one.sources and one.until <= at < one.until + SOON for source, at in starts
    )
