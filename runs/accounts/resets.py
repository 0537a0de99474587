"""When a limit resets, out of the words of the program that was turned away by it. Pure.

A time of day without a date is the next one. A zone follows it (`(Europe/Berlin)`, `(UTC+2)`, `GMT`), or
it is the machine's. A whole moment (ISO 8601) without a zone is in UTC, as in the answers of services.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from runs.core import lenient_json

_EPOCH = re.compile(r"limit reached\|(\d{9,13})")
_AT = re.compile(
    r"(?:\bresets?(?: at| on)?|\btry again at|\bat|\buntil) "
    r"(?:(?P<month>[A-Z][a-z]{2})[a-z]* (?P<day>\d{1,2})(?:st|nd|rd|th)?,? (?:(?P<year>20\d\d),? )?(?:at )?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))? ?(?P<half>[ap]m)?\b"
    r"(?: \((?P<zone>[A-Za-z][\w/+:-]*)\)| (?P<bare>(?:UTC|GMT)(?:[+-]\d[\d:]*)?)\b)?",
    re.IGNORECASE,
)
_ISO = re.compile(
    r"(?:\bresets?(?: at| on)?|\btry again at|\bat|\buntil) "
    r"(20\d\d-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)(?![\d:])",
    re.IGNORECASE,
)
_OFFSET = re.compile(r"(?:UTC|GMT)([+-])(\d{1,2})(?::?(\d\d))?", re.IGNORECASE)
_IN = re.compile(
    r"(?:try again in|resets? in|retry after) "
    r"((?:\d+(?:\.\d+)? ?(?:ms|milliseconds?|s|sec|seconds?|m|min|minutes?|h|hours?|d|days?)\b[ ,]*)+)",
    re.IGNORECASE,
)
_PART = re.compile(r"(\d+(?:\.\d+)?) ?(ms|[smhd]|milli)", re.IGNORECASE)
_UNITS = {
    "ms": timedelta(milliseconds=1),
    "milli": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_LAST = timedelta(hours=1)


def told(words: str, now: datetime, zone: tzinfo = UTC) -> datetime | None:
    """The moment that the words name, as far as they name one that can be understood."""
    epoch = _EPOCH.search(words)
    if epoch:
        return lenient_json.moment(int(epoch[1]))
    length = _IN.search(words)
    if length:
        return _later(now, length[1])
    whole = _ISO.search(words)
    if whole:
        return _whole_moment(whole[1])
    named = _AT.search(words)
    return _moment(named, now, zone) if named and (named["half"] or named["minute"]) else None


def _later(now: datetime, words: str) -> datetime | None:
    """So long after now; None for a length that leads out of the calendar."""
    try:
        parts = [float(one[1]) * _UNITS[one[2].lower()] for one in _PART.finditer(words)]
        return now + sum(parts, timedelta(0))
    except (OverflowError, ValueError):
        return None


def _whole_moment(words: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(words.upper())
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _find_zone(name: str) -> tzinfo:
    """Return the zone of a name or of a distance from UTC. Raises ValueError, KeyError, OSError.

    `UTC+2` lies east of Greenwich as people write it; `Etc/GMT+5` west of it, as POSIX has it.
    """
    distance = _OFFSET.fullmatch(name)
    if distance is None:
        return ZoneInfo(name)
    length = timedelta(hours=int(distance[2]), minutes=int(distance[3] or 0))
    return timezone(-length if distance[1] == "-" else length)


def _moment(named: re.Match[str], now: datetime, zone: tzinfo) -> datetime | None:
    try:
        name = named["zone"] or named["bare"]
        there = now.astimezone(_find_zone(name) if name else zone)
        hour = int(named["hour"])
        if named["half"]:
            hour = hour % 12 + (12 if named["half"].lower() == "pm" else 0)
        found = there.replace(hour=hour, minute=int(named["minute"] or 0), second=0, microsecond=0)
        if named["month"]:
            return _on_day(named, found, there).astimezone(UTC)
    except (KeyError, ValueError, OverflowError, OSError):
        return None
    # One that was a moment ago is over; it is not meant for tomorrow.
    is_today = found > there - _LAST
    return (found if is_today else found + timedelta(days=1)).astimezone(UTC)


def _on_day(named: re.Match[str], at: datetime, there: datetime) -> datetime:
    month = _MONTHS.index(named["month"].lower()) + 1
    found = at.replace(year=int(named["year"] or there.year), month=month, day=int(named["day"]))
    is_next_year = not named["year"] and found < there - timedelta(days=180)
    return found.replace(year=found.year + 1) if is_next_year else found
