"""What the list of runs is narrowed to and sorted by, read from an address and said in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any
from urllib.parse import urlencode

from runs.core.states import Outcome

ACTIVE = "active"
OUTCOMES = (ACTIVE, *(one.value for one in Outcome))
BIGGEST_ID = 2**63 - 1
LONGEST = {"agent": 60, "model": 100, "person": 150, "text": 200}
MOST_MONEY = Decimal(10) ** 9
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NUMBER = re.compile(r"[0-9]{1,19}")


class Sort(StrEnum):
    """The orders of the list; a minus begins with the newest, longest or dearest."""

    ENDED = "-ended"
    ENDED_UP = "ended"
    STARTED = "-started"
    STARTED_UP = "started"
    TOOK = "-took"
    TOOK_UP = "took"
    COST = "-cost"
    COST_UP = "cost"

    @property
    def key(self) -> str:
        """The column without the direction."""
        return self.value.removeprefix("-")

    @property
    def is_down(self) -> bool:
        return self.value.startswith("-")

    @property
    def other(self) -> Sort:
        """The same column the other way round."""
        return Sort(self.key if self.is_down else f"-{self.key}")

    @property
    def words(self) -> str:
        return _SORT_WORDS[self]


_SORT_WORDS = {
    Sort.ENDED: "ended last first",
    Sort.ENDED_UP: "ended first first",
    Sort.STARTED: "newest first",
    Sort.STARTED_UP: "oldest first",
    Sort.TOOK: "longest first",
    Sort.TOOK_UP: "shortest first",
    Sort.COST: "most expensive first",
    Sort.COST_UP: "cheapest first",
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which runs are looked for, in which order; what is empty narrows nothing.

    `since` and `until` are whole days of UTC, both included, and mean the end of a run. `least` and
    `most` are its cost in dollars; a run of unknown cost fits neither.
    """

    project: int | None = None
    outcome: str = ""
    agent: str = ""
    model: str = ""
    person: str = ""
    since: date | None = None
    until: date | None = None
    text: str = ""
    least: Decimal | None = None
    most: Decimal | None = None
    sort: Sort = Sort.ENDED

    @property
    def is_narrowed(self) -> bool:
        """Whether any filter is set."""
        return any(getattr(self, one.name) not in (None, "") for one in fields(self)[:-1])

    @property
    def has_more(self) -> bool:
        """Whether one of the filters is set that the page keeps behind a press."""
        more = (self.agent, self.model, self.person, self.since, self.until, self.least, self.most)
        return any(one not in (None, "") for one in more)


@dataclass(frozen=True, slots=True)
class Place:
    """Which page of the list: behind the run `after`, as the list was at the moment `at`."""

    after: int | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What an address asks for. `typed` is what stood in it, `wrong` a sentence for each field."""

    wanted: Wanted = Wanted()
    place: Place = Place()
    typed: Mapping[str, str] = field(default_factory=dict)
    wrong: Mapping[str, str] = field(default_factory=dict)


def read(given: Mapping[str, str], projects: Container[int] | None = None) -> Asked:
    """The filters and the page in an address. What makes no sense narrows nothing and is told.

    `projects`: those that there are, where that is known.
    """
    typed = {name: given[name].strip()[:200] for name in _READERS if given.get(name, "").strip()}
    found: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for name, text in typed.items():
        try:
            found[name] = _READERS[name](text)
        except ValueError as error:
            wrong[name] = str(error)
    if projects is not None and "project" in found and found["project"] not in projects:
        del found["project"]
        wrong["project"] = "There is no such project."
    if "since" in found and "until" in found and found["until"] < found["since"]:
        del found["until"]
        wrong["until"] = "The last day is before the first."
    if "least" in found and "most" in found and found["most"] < found["least"]:
        del found["most"]
        wrong["most"] = "The most is below the least."
    place = Place(found.pop("after", None), found.pop("at", None))
    return Asked(Wanted(**found), place, typed, wrong)


def address(wanted: Wanted, place: Place | None = None, **changed: Any) -> str:
    """The query string of a filter and a page; always starts with `?`. Defaults are left out."""
    values = {one.name: getattr(wanted, one.name) for one in fields(wanted)} | changed
    if values["sort"] == Sort.ENDED:
        del values["sort"]
    given = {name: str(value) for name, value in values.items() if value not in (None, "")}
    if place is not None and place.after is not None:
        given["after"] = str(place.after)
    if place is not None and place.at is not None:
        given["at"] = _said(place.at)
    return "?" + urlencode(given)


def cursor(after: int, at: datetime) -> str:
    """A page as one word, for programs."""
    return f"{after}.{_said(at)}"


def placed(text: str) -> Place:
    """The page that `cursor` wrote, or that begins behind a run. Raises ValueError."""
    after, dot, at = text.partition(".")
    return Place(_after(after), _moment(at) if dot else None)


def words(wanted: Wanted, project: str = "") -> str:
    """The filter as one line: "billing · timed out · by Claude Code · since 2026-11-01"."""
    outcome = "still running" if wanted.outcome == ACTIVE else wanted.outcome.replace("_", " ")
    said = [
        project or (f"project {wanted.project}" if wanted.project else ""),
        outcome,
        wanted.agent,
        wanted.model,
        wanted.person and f"started by {wanted.person}",
        f"since {wanted.since}" if wanted.since else "",
        f"until {wanted.until}" if wanted.until else "",
        f"cost at least ${wanted.least}" if wanted.least is not None else "",
        f"cost at most ${wanted.most}" if wanted.most is not None else "",
        wanted.text and f"“{wanted.text}”",
    ]
    return " · ".join(one for one in said if one) or "All runs"


def _number(text: str) -> int:
    number = int(text) if _NUMBER.fullmatch(text) else 0
    if not 1 <= number <= BIGGEST_ID:
        raise ValueError("This is not on the list.")
    return number


def _outcome(text: str) -> str:
    if text not in OUTCOMES:
        raise ValueError("There is no such outcome.")
    return text


def _words_of(name: str) -> Callable[[str], str]:
    def read_words(text: str) -> str:
        if len(text) > LONGEST[name]:
            raise ValueError(f"At most {LONGEST[name]} characters.")
        if "\x00" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
            raise ValueError("This holds characters that no text has.")
        return text

    return read_words


def _day(text: str) -> date:
    try:
        if not _DAY.fullmatch(text):
            raise ValueError(text)
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError("Write a day as 2026-11-21.") from None


def _money(text: str) -> Decimal:
    try:
        amount = Decimal(text.removeprefix("$").strip().replace(",", "."))
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount.is_finite() or not 0 <= amount <= MOST_MONEY or len(text) > 20:
        raise ValueError("Write an amount in dollars, like 2.50.")
    return amount


def _sort(text: str) -> Sort:
    if text not in set(Sort):
        raise ValueError("The list cannot be sorted by that.")
    return Sort(text)


def _moment(text: str) -> datetime:
    try:
        if not _NUMBER.fullmatch(text):
            raise ValueError(text)
        return EPOCH + timedelta(microseconds=int(text))
    except (ValueError, OverflowError):
        raise ValueError("This page of the list is not known; here is the first one.") from None


def _said(at: datetime) -> str:
    return str((at - EPOCH) // timedelta(microseconds=1))


def _after(text: str) -> int:
    try:
        return _number(text)
    except ValueError:
        raise ValueError("This page of the list is not known; here is the first one.") from None


_READERS: Mapping[str, Callable[[str], Any]] = {
    "project": _number,
    "outcome": _outcome,
    "agent": _words_of("agent"),
    "model": _words_of("model"),
    "person": _words_of("person"),
    "since": _day,
    "until": _day,
    "text": _words_of("text"),
    "least": _money,
    "most": _money,
    "sort": _sort,
    "after": _after,
    "at": _moment,
}
