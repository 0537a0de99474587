"""What an answer means and what follows from it: decisions without I/O.

Limits are told apart from "no access" here, waits are bounded here, and every text that a person
reads about a forge is made here, out of the host, the path without its query, and the forge's
own words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum

from trackers.account import Purpose
from trackers.errors import NotFound, NotUnderstood, RateLimited, Refused, TrackerError, Unreachable

SECOND = timedelta(seconds=1)
BLIND_WAIT = timedelta(seconds=60)
LONGEST_WAIT = timedelta(hours=1)
MOST_RETRIES = 2
MOST_MOVES = 3
SECONDS = {Purpose.WRITE: 15.0}
SECONDS_OTHERWISE = 8.0

_REPEATABLE = frozenset({"GET", "HEAD", "PUT", "DELETE"})
_PASSING = frozenset({500, 502, 503, 504})
_MOVES = frozenset({301, 302, 303, 307, 308})
_LIMIT_WORDS = re.compile(
    r"secondary rate limit|rate limit exceeded|abuse detection|too many requests"
    r"|maximum number of login attempts",
    re.IGNORECASE,
)
_LINK = re.compile(r"<([^<>]*)>((?:\s*;\s*[^,;<>]*)*)")
_NEXT = re.compile(r";\s*rel\s*=\s*\"?(?:[^\";]*\s)?next(?:\s[^\";]*)?\"?\s*(?:;|$)", re.IGNORECASE)
_FIT = re.compile(r"[\x21-\x7e]+( [\x21-\x7e]+)*")
_LONGEST_VALIDATOR = 512
_NO_MOMENT = 10**8


class Meaning(StrEnum):
    """What an answer means."""

    FINE = "fine"
    UNCHANGED = "unchanged"
    MOVED = "moved"
    LIMITED = "limited"
    REFUSED = "refused"
    MISSING = "missing"
    UNREACHABLE = "unreachable"
    STRANGE = "strange"


class Trouble(StrEnum):
    """Why no whole answer came."""

    UNREACHED = "could not be reached"
    NO_WAY = "could not be reached through the proxy that the environment names"
    SLOW = "did not answer in time"
    DROPPED = "broke off"
    BUSY = "is being asked too much at once by labsite itself"
    UNTRUSTED = "shows a certificate that this machine does not trust"
    TOO_BIG = "sent more than labsite reads at once"
    GARBLED = "sent an answer that cannot be read"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer without its data. Names of headers are in lower case; `said` is the forge's text."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    said: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The meaning of a reply; `wait` goes with LIMITED, `is_blind` when the forge did not say how long."""

    meaning: Meaning
    wait: timedelta = timedelta(0)
    is_blind: bool = False


@dataclass(frozen=True, slots=True)
class Quota:
    """The rate limit headers of one answer. `reset_in` is counted on the server's own clock."""

    limit: int
    remaining: int
    used: int
    reset_in: timedelta
    resource: str


def verdict(reply: Reply, expect: Collection[int], now: datetime) -> Verdict:
    """What a reply means for a call that expects one of these statuses."""
    if reply.status in expect:
        return Verdict(Meaning.FINE)
    if reply.status == 304:
        return Verdict(Meaning.UNCHANGED)
    if reply.status in _MOVES:
        return Verdict(Meaning.MOVED)
    if (limited := _limit(reply, now)) is not None:
        return limited
    if reply.status in (404, 410):
        return Verdict(Meaning.MISSING)
    if reply.status >= 500 or reply.status in (408, 425):
        return Verdict(Meaning.UNREACHABLE)
    return Verdict(Meaning.REFUSED if reply.status >= 400 else Meaning.STRANGE)


def _limit(reply: Reply, now: datetime) -> Verdict | None:
    """How long a limit asks to wait, or None when the reply is no limit.

    A 403 alone is no access. It is a limit when it says how long to wait, when nothing remains of
    the quota, or when its text says so (GitHub's secondary limits may come with nothing else).
    A 503 is one only when it says how long.
    """
    asked = reply.headers.get("retry-after", "").strip()
    if reply.status not in (403, 429, 503) or (reply.status == 503 and not asked):
        return None
    if asked:
        wait = _retry_after(asked, reply.headers, now)
        return _limited(wait)
    if reply.headers.get("x-ratelimit-remaining", "").strip() == "0":
        known = _reset_in(reply.headers, now)
        return _limited(known if known is not None and known > timedelta(0) else None)
    if reply.status == 429 or _LIMIT_WORDS.search(reply.said):
        return _limited(None)
    return None


def _limited(wait: timedelta | None) -> Verdict:
    if wait is None:
        return Verdict(Meaning.LIMITED, BLIND_WAIT, is_blind=True)
    return Verdict(Meaning.LIMITED, bounded(wait))


def bounded(wait: timedelta) -> timedelta:
    """At least a second; at most an hour, whatever a clock or a server says."""
    return min(max(wait, SECOND), LONGEST_WAIT)


def _retry_after(text: str, headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """Seconds or an HTTP date, as RFC 9110 has it; None for anything else."""
    if text.isascii() and text.isdigit():
        return timedelta(seconds=min(int(text[:9]), 10**6)) if len(text) < 10 else LONGEST_WAIT
    at = http_date(text)
    return at - _their_now(headers, now) if at is not None else None


def http_date(text: str) -> datetime | None:
    """The moment of an HTTP date, or None."""
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _their_now(headers: Mapping[str, str], now: datetime) -> datetime:
    """The server's clock where it tells it: waits are the difference of two times of one clock."""
    return http_date(headers.get("date", "")) or now


def _number(headers: Mapping[str, str], name: str) -> int | None:
    text = headers.get(name, "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def _reset_in(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """When there is a new quota: GitHub tells the moment, some proxies how many seconds."""
    reset = _number(headers, "x-ratelimit-reset")
    if reset is None:
        return None
    if reset < _NO_MOMENT:
        return timedelta(seconds=reset)
    try:
        return datetime.fromtimestamp(reset, UTC) - _their_now(headers, now)
    except (ValueError, OverflowError, OSError):
        return LONGEST_WAIT


def quota(headers: Mapping[str, str], now: datetime) -> Quota | None:
    """The rate limit headers, or None where they are missing or incomplete."""
    limit = _number(headers, "x-ratelimit-limit")
    remaining = _number(headers, "x-ratelimit-remaining")
    reset_in = _reset_in(headers, now)
    if not limit or remaining is None or reset_in is None:
        return None
    used = _number(headers, "x-ratelimit-used")
    return Quota(
        limit=limit,
        remaining=remaining,
        used=max(0, limit - remaining) if used is None else used,
        reset_in=min(max(reset_in, timedelta(0)), LONGEST_WAIT),
        resource=headers.get("x-ratelimit-resource", "core").strip()[:40] or "core",
    )


def may_repeat(method: str, heard: Reply | Trouble, tries: int) -> bool:
    """Whether to retry: idempotent methods only, twice at most.

    A request whose connection broke may have been carried out, so POST and PATCH are never
    retried, not even where nothing seems to have arrived.
    """
    if tries >= MOST_RETRIES or method not in _REPEATABLE:
        return False
    if isinstance(heard, Trouble):
        return heard in (Trouble.UNREACHED, Trouble.NO_WAY, Trouble.DROPPED)
    return heard.status in _PASSING and "retry-after" not in heard.headers


def repeat_wait(tries: int, random: float) -> float:
    """Seconds before the next try: exponential backoff with jitter."""
    return 0.25 * 2.0**tries * (0.5 + random / 2)


def seconds(purpose: Purpose) -> float:
    """How long a whole call may take, waiting, retries and redirects included.

    Below the ten seconds of a tick; writing may take longer, since giving up on it early leaves
    nobody knowing whether it was done. No tick writes.
    """
    return SECONDS.get(purpose, SECONDS_OTHERWISE)


def list_seconds(purpose: Purpose) -> float:
    """How long reading a list to its end may take. A tick has long gone on without it then."""
    return 4 * seconds(purpose)


def is_fit_token(token: str) -> bool:
    """Whether a text can be sent as a credential. An HTTP library would quote an unfit one."""
    return bool(_FIT.fullmatch(token)) and " " not in token


def validators(headers: Mapping[str, str]) -> dict[str, str]:
    """What a later GET may ask with: the ETag, else a time that is older than a minute.

    A younger Last-Modified may hide a second change within the same second (RFC 9110, 8.8.2.2).
    """
    if "no-store" in headers.get("cache-control", "").lower():
        return {}
    etag = headers.get("etag", "")
    if len(etag) <= _LONGEST_VALIDATOR and _FIT.fullmatch(etag):
        return {"If-None-Match": etag}
    text = headers.get("last-modified", "")
    at, sent_at = http_date(text), http_date(headers.get("date", ""))
    if at is None or sent_at is None or sent_at - at < BLIND_WAIT or not _FIT.fullmatch(text):
        return {}
    return {"If-Modified-Since": text}


def trouble(kind: Trouble, place: str) -> TrackerError:
    """The error for an answer that did not come; `place` is host, method and path in words."""
    text = f"{place} {kind.value}."
    if kind in (Trouble.TOO_BIG, Trouble.GARBLED):
        return NotUnderstood(text)
    return Refused(text) if kind is Trouble.UNTRUSTED else Unreachable(text)


def error(found: Verdict, reply: Reply, place: str, until: datetime) -> TrackerError:
    """The error for an unexpected reply; `until` goes with a limit."""
    said = f": {reply.said.rstrip('.')}" if reply.said else ""
    if found.meaning is Meaning.LIMITED:
        return RateLimited(f"{place} asks to wait ({reply.status}){said}.", until)
    if found.meaning is Meaning.MISSING:
        return NotFound(
            f"{place} knows no such thing, or does not show it to this account ({reply.status})."
        )
    if found.meaning is Meaning.UNREACHABLE:
        return Unreachable(f"{place} answered {reply.status}.")
    if found.meaning is Meaning.MOVED:
        return Refused(f"{place} was moved. Set up its new address ({reply.status}).")
    if found.meaning is Meaning.REFUSED:
        text = f"{place} {_refusal(reply.status)} ({reply.status}){said}."
        return Refused(text, reply.status)
    return NotUnderstood(f"{place} answered {reply.status}, which labsite does not understand.")


def _refusal(status: int) -> str:
    if status == 401:
        return "does not accept the token"
    if status == 403:
        return "does not allow that to this account"
    return "did not accept that"


@dataclass(frozen=True, slots=True)
class Page:
    """One page as it came: `number` counts from 1, `first` is how many the first page held."""

    number: int
    count: int
    first: int
    size: int
    headers: Mapping[str, str]
    was_unchanged: bool = False
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Next:
    """Where the list goes on: at an address, or else at the page of a number."""

    number: int
    address: str = ""


def after(page: Page) -> Next | None:
    """The next page, or None at the end of the list.

    What the forge says counts: its link, or its total count; an empty page in the middle is no
    end. Without either, a full page is followed by another, unless it says the same again (some
    lists do not page at all). A full page that is *unchanged* was perhaps the last when its link
    was kept, and is no more: its successor is asked for.
    """
    number = page.number + 1
    link = page.headers.get("link", "")
    if address := next_address(link):
        return Next(number, address)
    if page.repeats:
        return None
    is_full = page.count >= page.size
    total = page.headers.get("x-total-count", "").strip()
    if total.isascii() and total.isdigit() and not (page.was_unchanged and is_full):
        step = min(page.first, page.size) or page.size
        return Next(number) if page.number * step < int(total[:12]) else None
    if link and not page.was_unchanged:
        return None
    return Next(number) if is_full else None


def next_address(link: str) -> str:
    """The address with rel=next of a Link header, or nothing (RFC 8288)."""
    for found in _LINK.finditer(link):
        if _NEXT.search(found[2]):
            return found[1].strip()
    return ""
