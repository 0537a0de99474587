"""The one HTTP client for forges: what to send, when not to, and what an answer is good for.

Thread-safe, and free of Django: ticks ask from pool threads. The rules are in `rules`, `paging`
and `pacing`; here they are carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Any

import httpx

from trackers.account import Account, Purpose
from trackers.errors import NotUnderstood, RateLimited, Refused, TrackerError, Unreachable
from trackers.http import body, rules
from trackers.http.asking import Ask
from trackers.http.doors import Doors
from trackers.http.meter import Hold, Meter, Why
from trackers.http.paging import Page, after
from trackers.http.rules import Meaning, Reply, Trouble
from trackers.http.sending import Heard, Sender
from trackers.http.store import KEPT_HEADERS, Kept, Store

MOST_PAGES = 40

Params = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a forge answered. Names of headers are in lower case.

    `was_unchanged`: it said "not modified", and the data is what it said before. `moved_to` is
    the address that it sent us on to, in case something was renamed. Data and headers stay out
    of the repr: a forge may answer with a secret.
    """

    status: int
    headers: Mapping[str, str] = field(repr=False)
    data: Any = field(repr=False)
    was_unchanged: bool = False
    moved_to: str = ""


class Client:
    """Asks forges in the name of accounts. Raises nothing but TrackerErrors."""

    def __init__(
        self,
        transport: httpx.BaseTransport,
        meter: Meter,
        store: Store,
        now: Callable[[], datetime],
        steady: Callable[[], float],
        pause: Callable[[float], None],
        random: Callable[[], float],
    ) -> None:
        self.meter = meter
        self._store = store
        self._now = now
        self._steady = steady
        self._pause = pause
        self._random = random
        self._sender = Sender(transport, steady)
        self._doors = Doors(steady)

    def call(
        self,
        account: Account,
        method: str,
        path: str,
        *,
        purpose: Purpose,
        params: Params | None = None,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
        expect: Collection[int] = (200,),
        retry: bool = True,
        scheme: str = "Bearer",
    ) -> Answer:
        """One request and its answer, whose status is one of `expect`.

        `path` begins with a slash and follows the account's API root; its parts have to be quoted.
        GET, HEAD, PUT and DELETE are repeated after trouble that passes, unless `retry` is False.
        Raises Unreachable, Refused, RateLimited, NotFound, NotUnderstood.
        """
        ask = Ask.of(account, method, path, params, json, headers, scheme)
        return self._answer(ask, purpose, expect, retry)

    def pages(
        self,
        account: Account,
        path: str,
        *,
        purpose: Purpose,
        params: Params,
        size: int,
        until: Callable[[Sequence[Any]], bool] | None = None,
        most: int = MOST_PAGES,
        headers: Mapping[str, str] | None = None,
        within: str = "",
        scheme: str = "Bearer",
    ) -> Iterator[list[Any]]:
        """The pages of a list, one by one, asked for as they are taken.

        `params` asks for pages of `size` in the forge's own words. Ends with the list, or after a
        page for which `until` says yes. `within` names the list when it is inside an object.
        Raises NotUnderstood, saying so, when it would take more than `most` pages, so that nobody
        takes a part for the whole; else as `call`.
        """
        ask = Ask.of(account, "GET", path, params, None, headers, scheme)
        number, first, before = 1, 0, None
        end = self._steady() + rules.list_seconds(purpose)
        for _ in range(most):
            if self._steady() > end:
                raise Unreachable(f"{ask.place} takes too long to be read to its end.")
            answer = self._answer(ask, purpose, (200,), retry=True)
            items = _items(answer.data, within, ask.place)
            first = len(items) if number == 1 else first
            page = Page(
                number,
                len(items),
                first,
                size,
                answer.headers,
                answer.was_unchanged,
                repeats=bool(items) and items == before,
            )
            if not page.repeats:
                yield items
                if until is not None and until(items):
                    return
            if (then := after(page)) is None:
                return
            ask, number, before = ask.next_page(then), then.number, items
        raise NotUnderstood(
            f"{ask.place} has more than {most} pages, which is more than labsite reads."
        )

    def forget(self) -> None:
        """Remove every kept answer: for when an account is taken away."""
        self._store.clear()

    def close(self) -> None:
        """Close every connection."""
        self._sender.close()

    def _answer(self, ask: Ask, purpose: Purpose, expect: Collection[int], retry: bool) -> Answer:
        """Ask until there is an answer to give: where it moved to, and anew when nothing is kept."""
        purpose = purpose.now
        deadline = self._steady() + rules.seconds(purpose)
        key, moves, moved_to = ask.key, 0, ""
        kept = self._store.get(key) if ask.method == "GET" else None
        while True:
            heard = self._patiently(ask, purpose, kept, deadline, retry)
            meaning = self._judged(ask, heard, expect)
            if meaning is Meaning.FINE:
                return self._fine(ask, key, heard, moved_to)
            if meaning is Meaning.UNCHANGED and kept is not None:
                data = body.understood(kept.body)
                if data is not body.NONSENSE:
                    headers = {**kept.headers, **heard.headers}
                    return Answer(200, headers, data, was_unchanged=True, moved_to=moved_to)
                self._store.drop(key)
                kept = None
            elif meaning is Meaning.MOVED and moves < rules.MOST_MOVES:
                ask, moves = ask.moved(heard.headers.get("location", "")), moves + 1
                moved_to = ask.address
            else:
                raise NotUnderstood(f"{ask.place} answered {heard.status} once too often.")

    def _patiently(
        self, ask: Ask, purpose: Purpose, kept: Kept | None, deadline: float, retry: bool
    ) -> Heard:
        """What is heard after trouble that passes was given time to pass. Raises what stays."""
        for tries in count():
            heard = self._once(ask, purpose, kept, deadline)
            told = heard if isinstance(heard, Trouble) else Reply(heard.status, heard.headers)
            if not retry or not rules.may_repeat(ask.method, told, tries):
                break
            wait = rules.repeat_wait(tries, self._random())
            if self._steady() + wait >= deadline:
                break
            self._pause(wait)
        if isinstance(heard, Trouble):
            raise rules.trouble(heard, ask.place)
        return heard

    def _once(
        self, ask: Ask, purpose: Purpose, kept: Kept | None, deadline: float
    ) -> Heard | Trouble:
        """Send once, when there is room and the quota allows it, and write down what it cost."""
        host, account = ask.account.host, ask.account.id
        with self._doors.through(host, purpose, deadline) as has_room:
            if not has_room:
                return Trouble.BUSY
            if (hold := self.meter.begin(host, account, purpose, self._now())) is not None:
                raise _held(host, hold)
            if purpose.is_polling and ask.repository:
                self.meter.polled(host, account, ask.repository)
            quota, was_unchanged = None, False
            try:
                heard = self._sender.send(ask, kept.ask_with if kept else {}, deadline)
                if not isinstance(heard, Trouble):
                    quota = rules.quota(heard.headers, self._now())
                    was_unchanged = heard.status == 304
            finally:
                self.meter.end(
                    host, account, purpose, self._now(), quota, was_unchanged=was_unchanged
                )
            return heard

    def _judged(self, ask: Ask, heard: Heard, expect: Collection[int]) -> Meaning:
        """What an answer means. Raises the error for one that is of no use."""
        now, host, account = self._now(), ask.account.host, ask.account.id
        said = ""
        if heard.status >= 400:
            said = body.saying(body.understood(heard.body), ask.account.token)
        reply = Reply(heard.status, heard.headers, said)
        self.meter.heard(host, account, now, heard.status)
        found = rules.verdict(reply, expect, now)
        if found.meaning is Meaning.LIMITED:
            until = self.meter.block(host, account, now, found.wait, is_blind=found.is_blind)
            raise rules.error(found, reply, ask.place, until)
        if found.meaning in (Meaning.FINE, Meaning.UNCHANGED):
            return found.meaning
        if found.meaning is Meaning.MOVED and ask.method == "GET":
            return found.meaning
        raise rules.error(found, reply, ask.place, now)

    def _fine(self, ask: Ask, key: str, heard: Heard, moved_to: str) -> Answer:
        """The answer of a status that was hoped for, kept when it can be asked for anew."""
        is_error = heard.status >= 400
        hidden = ask.account.token if is_error else ""
        data = body.understood(body.without(heard.body, hidden))
        if data is body.NONSENSE and is_error:
            data = None
        if data is body.NONSENSE:
            raise NotUnderstood(_unreadable(ask, heard))
        ask_with = rules.validators(heard.headers)
        if ask.method == "GET" and heard.status == 200 and ask_with and data is not None:
            headers = {n: heard.headers[n] for n in KEPT_HEADERS if n in heard.headers}
            self._store.put(key, Kept(ask_with, headers, heard.body))
        return Answer(heard.status, heard.headers, data, moved_to=moved_to)


def _unreadable(ask: Ask, heard: Heard) -> str:
    if heard.body.lstrip()[:1] == b"<":
        return f"{ask.place} answered with a web page. Is the address of its API right?"
    return f"{ask.place} answered with something that is no whole JSON."


def _held(host: str, hold: Hold) -> TrackerError:
    """The error for a call that was not sent."""
    found = _why_held(host, hold)
    found.is_repeat = True
    return found


def _why_held(host: str, hold: Hold) -> TrackerError:
    until = f"until {hold.until:%H:%M} UTC"
    if hold.why is Why.DOUBT:
        text = f"{host} did not accept the token several times. Polling does not try it {until}."
        return Refused(text, 401)
    if hold.why is Why.PEOPLE:
        text = f"What is left of the quota at {host} is kept for people {until}."
    else:
        text = f"{host} wants to be left alone {until}."
    return RateLimited(text, hold.until)


def _items(data: Any, within: str, place: str) -> list[Any]:
    """The list of a page."""
    items = data.get(within) if within and isinstance(data, dict) else data
    if not isinstance(items, list):
        raise NotUnderstood(f"{place} answered with something that is no list.")
    return items
