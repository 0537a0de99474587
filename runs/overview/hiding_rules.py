"""What a person does not want to see of what needs them: until when, and when it comes back. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from runs.overview.attention_rules import Need

HOUR = timedelta(hours=1)
MORNING = time(7)
DAY_BEGINS = time(4)  # whoever is up before it means the morning of the same date
# A fact that comes back as it was must not stay hidden for good.
CHANGE_AT_MOST = timedelta(days=7)
# Open pages are looked at anew this often though nothing was told, so nothing comes back in between.
STEP = timedelta(minutes=10)
MOST = 1000
LONGEST = 80


class Choice(StrEnum):
    """How a person hides something."""

    DISMISS = "dismiss"
    HOUR = "hour"
    MORNING = "morning"
    CHANGE = "change"


@dataclass(frozen=True, slots=True)
class Hidden:
    """What one person has hidden: a need by its id, as it was; `until` is None where dismissed."""

    need: str
    facts: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Named:
    """What of a list somebody named: what is there as they saw it, and how many are otherwise now."""

    found: Sequence[Need]
    changed: int


def until(choice: Choice, now: datetime, zone: ZoneInfo) -> datetime | None:
    """When something comes back at the latest, on a full ten minutes; None for what is dismissed.

    A person's morning is at 07:00 by the clock of their zone.
    """
    if choice is Choice.DISMISS:
        return None
    if choice is Choice.HOUR:
        return _on_step(now + HOUR)
    if choice is Choice.CHANGE:
        return _on_step(now + CHANGE_AT_MOST)
    here = now.astimezone(zone)
    day = here.date() + timedelta(days=0 if here.time() < DAY_BEGINS else 1)
    return datetime.combine(day, MORNING, zone).astimezone(UTC)


def is_hidden(mark: Hidden | None, need: Need, now: datetime) -> bool:
    """Whether a need stays off the list: it is as it was, and its time is not over."""
    if mark is None or mark.facts != need.facts:
        return False
    return need.is_over if mark.until is None else now < mark.until


def split(
    found: Iterable[Need], marks: Iterable[Hidden], now: datetime
) -> tuple[list[Need], list[tuple[Need, Hidden]]]:
    """What is on a person's list, and what they have hidden; both in the order of the list."""
    known: Mapping[str, Hidden] = {mark.need: mark for mark in marks}
    shown, hidden = [], []
    for need in found:
        mark = known.get(need.id)
        if mark is not None and is_hidden(mark, need, now):
            hidden.append((need, mark))
        else:
            shown.append(need)
    return shown, hidden


def named(found: Iterable[Need], shown: str, choice: Choice) -> Named:
    """What a page's own words (`id.facts`, apart by spaces) name of what is there now.

    What is gone is left out; what has changed since stays on the list, and so does what is not over
    when it should be dismissed.
    """
    present = {need.id: need for need in found}
    wanted = [word.rpartition(".")[::2] for word in shown.split()[:MOST]]
    there = [(present[ident], facts) for ident, facts in wanted if ident in present]
    same = [need for need, facts in there if need.facts == facts]
    allowed = [need for need in same if choice is not Choice.DISMISS or need.is_over]
    return Named(list({need.id: need for need in allowed}.values()), len(there) - len(same))


def _on_step(at: datetime) -> datetime:
    """Not before `at`, on a full step of the clock."""
    seconds, step = int(at.timestamp()), int(STEP.total_seconds())
    return datetime.fromtimestamp(-(-seconds // step) * step, UTC)
