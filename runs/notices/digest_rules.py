"""When a morning digest is due, what time it covers, and what its notice says. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

# A machine that was off at the hour sends the digest of the morning, and none in the evening.
LATE = timedelta(hours=6)
HOUR = time(7, 0)
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Told:
    """The numbers of a digest; None where nobody reported any."""

    done: Sequence[tuple[str, int]]
    groups: int
    waits: int
    cost: Decimal | None = None
    tokens: str = ""


def moment(day: date, at: time, zone: ZoneInfo) -> datetime:
    """When it is `at` on a day by a zone's clock; an hour that this day does not have ends its gap,
    and of an hour that it has twice this is the first."""
    return datetime.combine(day, at, zone).astimezone(UTC)


def due(now: datetime, at: time | None, zone: ZoneInfo, last: date | None) -> date | None:
    """The day whose digest is to be sent now; None when there is none, or it was sent."""
    if at is None:
        return None
    today = now.astimezone(zone).date()
    for day in (today, today - DAY):  # of a late hour the time to be late in goes over midnight
        if timedelta() <= now - moment(day, at, zone) < LATE:
            return day if last is None or last < day else None
    return None


def passed(now: datetime, at: time, zone: ZoneInfo) -> date:
    """The last day whose hour has come: none up to it is sent to who chooses that hour now."""
    day = now.astimezone(zone).date()
    return day if now >= moment(day, at, zone) else day - DAY


def span(day: date, at: time, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """What a digest covers: from the hour of the day before to the hour of its day."""
    return moment(day - DAY, at, zone), moment(day, at, zone)


def words(told: Told) -> str:
    """What was done, what waits, what it cost, a line each; one sentence where nothing happened."""
    if not told.done and not told.groups and not told.waits:
        return "Nothing happened since yesterday, and no agent waits for you."
    done = [f"{count} {outcome}" for outcome, count in told.done]
    if told.groups:
        done.append(f"{told.groups} group{'s' if told.groups != 1 else ''} ended")
    waits = f"{told.waits} agent{'s' if told.waits != 1 else ''}" if told.waits else "no agent"
    cost = [f"${told.cost:.2f}"] if told.cost is not None else []
    cost += [f"{told.tokens} tokens"] if told.tokens else []
    lines = [f"Done: {', '.join(done) or 'nothing ended'}.", f"Waits for you: {waits}."]
    return "\n".join([*lines, f"Cost: {', '.join(cost) or 'none was reported'}."])
