"""Rate limits: what each credential spent at each host, and until when it must not be used.

In memory. Client threads write here under a lock; the caller's thread takes the counts out with
`settle` and stores them. Moments are kept on the monotonic clock beside the wall clock, and the
one that ends a wait first counts: a wrong clock never keeps anybody waiting for long.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from trackers.account import Purpose
from trackers.http.rules import BLIND_WAIT, LONGEST_WAIT, Quota

HUMAN_SHARE = 0.4
MOST_ACCOUNTS = 200
MOST_REFUSALS = 3


def floor(limit: int, share: float) -> int:
    """How many calls of a window are kept for people."""
    return math.ceil(limit * share - 1e-9)


def pace(
    limit: int, remaining: int, share: float, reset_in: timedelta, calls: int, interval: timedelta
) -> timedelta:
    """The time between two polls that cost `calls` each; never less than the normal interval.

    What may be spent is what remains above the human's share; it is spread evenly over the rest
    of the window, so polling slows before it hurts. When less than one poll is left, the next
    one waits for the new window. Without a known quota pass a limit of 0.
    """
    if limit <= 0 or calls <= 0 or reset_in <= timedelta(0):
        return interval
    polls = (remaining - floor(limit, share)) // calls
    if polls < 1:
        return max(interval, reset_in)
    return max(interval, reset_in / polls)


@dataclass(frozen=True, slots=True)
class Standing:
    """The rate limit of an account as its forge reported it last."""

    limit: int
    remaining: int
    used: int
    reset_at: datetime
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class Spent:
    """The calls of one account at one host since the last `settle`, and its rate limit.

    `calls` is everything that was sent; `unchanged` of them brought nothing new, which costs
    nothing on GitHub. `polls` are those for which nobody waited, by repository.
    """

    host: str
    account: str
    calls: dict[Purpose, int]
    unchanged: dict[Purpose, int]
    standing: Standing | None
    blocked_until: datetime | None
    polls: dict[str, int] = field(default_factory=dict)


class Why(StrEnum):
    """Why calls are held back."""

    ASKED = "the forge asked for it"
    PEOPLE = "what is left of the quota is kept for people"
    DOUBT = "the credential was not accepted several times"


@dataclass(frozen=True, slots=True)
class Hold:
    """Until when calls of a kind are held back, and why."""

    until: datetime
    why: Why


@dataclass(slots=True)
class _Moment:
    """A future moment, on wall clock and monotonic clock."""

    at: datetime
    steady: float

    def left(self, now: datetime, steady: float) -> timedelta:
        return min(self.at - now, timedelta(seconds=self.steady - steady))


@dataclass(slots=True)
class _Book:
    """The state of one account at one host."""

    calls: Counter[Purpose] = field(default_factory=Counter)
    unchanged: Counter[Purpose] = field(default_factory=Counter)
    polls: Counter[str] = field(default_factory=Counter)
    standing: Standing | None = None
    reset: _Moment | None = None
    blocked: _Moment | None = None
    doubted: _Moment | None = None
    blind_waits: int = 0
    refusals: int = 0
    under_way: int = 0


class Meter:
    """Counts calls and applies rate limits. Thread-safe. Polling leaves `share` of each quota to people."""

    def __init__(
        self, share: float = HUMAN_SHARE, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self.share = share
        self._steady = steady
        self._books: dict[tuple[str, str], _Book] = {}
        self._lock = threading.Lock()

    def may(self, host: str, account: str, purpose: Purpose, now: datetime) -> datetime | None:
        """None when such a call may be sent now, else when to try again."""
        with self._lock:
            hold = self._hold(self._book(host, account), purpose, now)
        return hold.until if hold else None

    def begin(self, host: str, account: str, purpose: Purpose, now: datetime) -> Hold | None:
        """As `may`; on None the call is counted as sent, and `end` has to follow."""
        with self._lock:
            book = self._book(host, account)
            if (hold := self._hold(book, purpose, now)) is None:
                book.calls[purpose] += 1
                book.under_way += 1
            return hold

    def polled(self, host: str, account: str, repository: str) -> None:
        """Count a polling call, which `begin` counted already, for its repository too."""
        with self._lock:
            self._book(host, account).polls[repository] += 1

    def end(
        self,
        host: str,
        account: str,
        purpose: Purpose,
        now: datetime,
        quota: Quota | None = None,
        *,
        was_unchanged: bool = False,
    ) -> None:
        """Record the end of a call: its rate headers, and whether it was a 304."""
        with self._lock:
            book = self._book(host, account)
            book.under_way = max(0, book.under_way - 1)
            book.unchanged[purpose] += was_unchanged
            if quota is not None and quota.resource == "core":
                self._learn(book, quota, now)

    def block(
        self, host: str, account: str, now: datetime, wait: timedelta, *, is_blind: bool = False
    ) -> datetime:
        """Send nothing for a while; returns until when.

        A wait that the forge did not specify (`is_blind`) doubles each time until a call succeeds.
        """
        with self._lock:
            book = self._book(host, account)
            if is_blind and self._left(book.blocked, now) is None:
                wait = min(wait * 2 ** min(book.blind_waits, 10), LONGEST_WAIT)
                book.blind_waits += 1
            book.blocked = self._later(book.blocked, self._moment(now, wait), now)
            return now + book.blocked.left(now, self._steady())

    def heard(self, host: str, account: str, now: datetime, status: int) -> None:
        """Record the status of a call; one that succeeded resets the backoff.

        A token that is not accepted is tried a few times; then polling tries it less and less
        often. Forges lock out accounts, people included, for which wrong tokens keep coming.
        """
        with self._lock:
            book = self._book(host, account)
            if status < 400:
                book.blind_waits, book.refusals, book.doubted = 0, 0, None
            elif status == 401 and self._left(book.doubted, now) is None:
                book.refusals += 1
                if book.refusals >= MOST_REFUSALS:
                    wait = BLIND_WAIT * 2 ** min(book.refusals - MOST_REFUSALS, 10)
                    book.doubted = self._moment(now, min(wait, LONGEST_WAIT))

    def standing(self, host: str, account: str, now: datetime) -> Standing | None:
        """The current rate limit, or None when its window is over."""
        with self._lock:
            return self._current(self._book(host, account), now)

    def pace(
        self, host: str, account: str, now: datetime, interval: timedelta, calls: int
    ) -> timedelta:
        """The time between polls of `calls` paid calls each, so that the window lasts."""
        with self._lock:
            book = self._book(host, account)
            known = self._current(book, now)
            if known is None:
                return interval
            left = known.reset_at - now
            return pace(known.limit, known.remaining, self.share, left, calls, interval)

    def settle(self, now: datetime) -> tuple[Spent, ...]:
        """Take out everything counted since the last time; the counters start from zero again."""
        with self._lock:
            told = tuple(
                Spent(
                    host,
                    account,
                    dict(book.calls),
                    dict(+book.unchanged),
                    self._current(book, now),
                    self._left(book.blocked, now),
                    dict(book.polls),
                )
                for (host, account), book in self._books.items()
                if book.calls or book.standing or book.blocked
            )
            for book in self._books.values():
                book.calls, book.unchanged, book.polls = Counter(), Counter(), Counter()
            return told

    def learn(
        self,
        host: str,
        account: str,
        now: datetime,
        quota: Quota | None = None,
        blocked_until: datetime | None = None,
    ) -> None:
        """Take over what another process of labsite learnt of this account.

        No process stores a wait of more than an hour; one that looks longer was stored before the
        clock was set back, and would be learnt again and again.
        """
        with self._lock:
            book = self._book(host, account)
            if blocked_until is not None and now < blocked_until <= now + LONGEST_WAIT:
                moment = self._moment(now, blocked_until - now)
                book.blocked = self._later(book.blocked, moment, now)
            if quota is not None and timedelta(0) < quota.reset_in <= LONGEST_WAIT:
                self._learn(book, quota, now)

    def give_back(self, spent: Iterable[Spent]) -> None:
        """Put back counts that could not be stored."""
        with self._lock:
            for line in spent:
                book = self._book(line.host, line.account)
                book.calls.update(line.calls)
                book.unchanged.update(line.unchanged)
                book.polls.update(line.polls)

    def _book(self, host: str, account: str) -> _Book:
        """The state of an account, marked as used last; the longest idle ones are evicted."""
        book = self._books.pop((host, account), None) or _Book()
        if len(self._books) >= MOST_ACCOUNTS:
            idle = (key for key, old in self._books.items() if not old.under_way and not old.calls)
            if (oldest := next(idle, None)) is not None:
                del self._books[oldest]
        self._books[host, account] = book
        return book

    def _hold(self, book: _Book, purpose: Purpose, now: datetime) -> Hold | None:
        if (until := self._left(book.blocked, now)) is not None:
            return Hold(until, Why.ASKED)
        if purpose.is_polling and (until := self._left(book.doubted, now)) is not None:
            return Hold(until, Why.DOUBT)
        known = self._current(book, now)
        kept = floor(known.limit, self.share) if known and purpose.is_polling else 0
        if known is None or known.remaining - book.under_way > kept:
            return None
        return Hold(known.reset_at, Why.PEOPLE if kept else Why.ASKED)

    def _left(self, moment: _Moment | None, now: datetime) -> datetime | None:
        """The moment on the current wall clock; None once it is past."""
        left = moment.left(now, self._steady()) if moment else timedelta(0)
        return now + left if left > timedelta(0) else None

    def _current(self, book: _Book, now: datetime) -> Standing | None:
        """The rate limit with its reset on the current wall clock; None once that is past."""
        reset_at = self._left(book.reset, now)
        if book.standing is None or reset_at is None:
            return None
        return replace(book.standing, reset_at=reset_at)

    def _learn(self, book: _Book, quota: Quota, now: datetime) -> None:
        """Keep the newest window, and within one window the lowest remaining count.

        Answers of concurrent calls arrive in any order; a reset a few seconds off is the same
        window.
        """
        known = self._current(book, now)
        heard = Standing(quota.limit, quota.remaining, quota.used, now + quota.reset_in, now)
        if known is not None and known.limit == heard.limit:
            drift = (heard.reset_at - known.reset_at).total_seconds()
            if drift < -30 or (drift < 30 and heard.remaining >= known.remaining):
                return
        book.standing = heard
        book.reset = self._moment(now, quota.reset_in)

    def _moment(self, now: datetime, wait: timedelta) -> _Moment:
        return _Moment(now + wait, self._steady() + wait.total_seconds())

    def _later(self, one: _Moment | None, other: _Moment, now: datetime) -> _Moment:
        steady = self._steady()
        if one is None or one.left(now, steady) < other.left(now, steady):
            return other
        return one
