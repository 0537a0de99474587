"""The one HTTP client for forges: retries, redirects within the origin, quota, cached answers.

Thread-safe, and free of Django, because ticks call it from pool threads. What an answer means is
decided in `rules`; here it is carried out.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from trackers.account import Account, Purpose
from trackers.errors import NotFound, NotUnderstood, RateLimited, Refused, TrackerError, Unreachable
from trackers.http import body, rules
from trackers.http.cache import KEPT_HEADERS, AnswerCache, CachedAnswer
from trackers.http.host_limits import HostLimits
from trackers.http.quota import Hold, Meter, Why
from trackers.http.request import Request
from trackers.http.rules import Meaning, Page, Reply, Trouble, after
from trackers.http.transport import NetworkTransport, Response, Sender

MOST_PAGES = 40
_GONE = (404, 410)  # of a file that is kept no more

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
    """Calls the APIs of forges in the name of accounts. Raises nothing but TrackerErrors."""

    def __init__(
        self,
        transport: httpx.BaseTransport,
        meter: Meter,
        cache: AnswerCache,
        now: Callable[[], datetime],
        steady: Callable[[], float],
        pause: Callable[[float], None],
        random: Callable[[], float],
    ) -> None:
        self.meter = meter
        self._cache = cache
        self._now = now
        self._steady = steady
        self._pause = pause
        self._random = random
        self._sender = Sender(transport, steady)
        self._host_limits = HostLimits(steady)

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
        request = Request.of(account, method, path, params, json, headers, scheme)
        return self._answer(request, purpose, expect, retry)

    def text(
        self,
        account: Account,
        path: str,
        *,
        purpose: Purpose,
        headers: Mapping[str, str] | None = None,
        scheme: str = "Bearer",
        hosts: Collection[str] = (),
    ) -> str:
        """Read a body that is plain text, of any size below the limit; nothing is cached.

        Sent on, it is read where the forge keeps its files: at the same origin, or without the token
        at a host whose name ends with one of `hosts`. Raises as `call`.
        """
        purpose = purpose.now
        request = Request.of(account, "GET", path, None, None, headers, scheme)
        deadline = self._steady() + rules.seconds(purpose)
        for _ in range(rules.MOST_MOVES + 1):
            response = self._with_retries(request, purpose, None, deadline, retry=True)
            if self._judge(request, response, (200,)) is Meaning.FINE:
                if response.headers.get("content-type", "").startswith("text/html"):
                    raise NotUnderstood(_unreadable(request, response))
                return response.body.decode("utf-8", "replace")
            location = response.headers.get("location", "")
            stored = request.handed_over(location, hosts)
            if stored is not None:
                return self._stored(stored, deadline)
            request = request.moved(location)
        raise NotUnderstood(f"{request.place} sends on once too often.")

    def _stored(self, request: Request, deadline: float) -> str:
        """Read a file from the forge's store, which says nothing of the account or its quota."""
        response = self._sender.send(request, {}, deadline)
        if isinstance(response, Trouble):
            raise rules.trouble(response, request.url.host)
        if response.status in _GONE:
            raise NotFound(f"{request.url.host} answered {response.status}.")
        if response.status != 200:
            raise Unreachable(f"{request.url.host} answered {response.status}.")
        return response.body.decode("utf-8", "replace")

    def pages(
        self,
        account: Account,
        path: str,
        *,
        purpose: Purpose,
        params: Params,
        size: int,
        most: int = MOST_PAGES,
        headers: Mapping[str, str] | None = None,
        within: str = "",
        scheme: str = "Bearer",
    ) -> Iterator[list[Any]]:
        """The pages of a list, one by one, asked for as they are taken.

        `params` asks for pages of `size` in the forge's own words. `within` names the list when it
        is inside an object. Raises NotUnderstood, saying so, when it would take more than `most` pages, so that nobody
        takes a part for the whole; else as `call`.
        """
        request = Request.of(account, "GET", path, params, None, headers, scheme)
        number, first, before = 1, 0, None
        end = self._steady() + rules.list_seconds(purpose)
        for _ in range(most):
            if self._steady() > end:
                raise Unreachable(f"{request.place} takes too long to be read to its end.")
            answer = self._answer(request, purpose, (200,), retry=True)
            items = _items(answer.data, within, request.place)
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
            if (then := after(page)) is None:
                return
            request, number, before = request.next_page(then), then.number, items
        raise NotUnderstood(
            f"{request.place} has more than {most} pages, which is more than labsite reads."
        )

    def forget(self) -> None:
        """Empty the cache: for when an account is removed."""
        self._cache.clear()

    def close(self) -> None:
        """Close every connection."""
        self._sender.close()

    def _answer(
        self, request: Request, purpose: Purpose, expect: Collection[int], retry: bool
    ) -> Answer:
        """Send until there is an answer: follows redirects; asks without validator when the cache is broken."""
        purpose = purpose.now
        deadline = self._steady() + rules.seconds(purpose)
        key, moves, moved_to = request.key, 0, ""
        kept = self._cache.get(key) if request.method == "GET" else None
        while True:
            response = self._with_retries(request, purpose, kept, deadline, retry)
            meaning = self._judge(request, response, expect)
            if meaning is Meaning.FINE:
                return self._accept(request, key, response, moved_to)
            if meaning is Meaning.UNCHANGED and kept is not None:
                data = body.understood(kept.body)
                if data is not body.NONSENSE:
                    headers = {**kept.headers, **response.headers}
                    return Answer(200, headers, data, was_unchanged=True, moved_to=moved_to)
                self._cache.drop(key)
                kept = None
            elif meaning is Meaning.MOVED and moves < rules.MOST_MOVES:
                request, moves = request.moved(response.headers.get("location", "")), moves + 1
                moved_to = request.address
            else:
                raise NotUnderstood(f"{request.place} answered {response.status} once too often.")

    def _with_retries(
        self,
        request: Request,
        purpose: Purpose,
        kept: CachedAnswer | None,
        deadline: float,
        retry: bool,
    ) -> Response:
        """The response after retries with backoff. Raises the error of the last try."""
        for tries in count():
            response = self._send_once(request, purpose, kept, deadline)
            told = (
                response
                if isinstance(response, Trouble)
                else Reply(response.status, response.headers)
            )
            if not retry or not rules.may_repeat(request.method, told, tries):
                break
            wait = rules.repeat_wait(tries, self._random())
            if self._steady() + wait >= deadline:
                break
            self._pause(wait)
        if isinstance(response, Trouble):
            raise rules.trouble(response, request.place)
        return response

    def _send_once(
        self, request: Request, purpose: Purpose, kept: CachedAnswer | None, deadline: float
    ) -> Response | Trouble:
        """Send once, when the limits of host and quota allow it, and count it in the meter."""
        host, account = request.account.host, request.account.id
        with self._host_limits.slot(host, purpose, deadline) as has_room:
            if not has_room:
                return Trouble.BUSY
            if (hold := self.meter.begin(host, account, purpose, self._now())) is not None:
                raise _held(host, hold)
            if purpose.is_polling and request.repository:
                self.meter.polled(host, account, request.repository)
            quota, was_unchanged = None, False
            try:
                response = self._sender.send(request, kept.ask_with if kept else {}, deadline)
                if not isinstance(response, Trouble):
                    quota = rules.quota(response.headers, self._now())
                    was_unchanged = response.status == 304
            finally:
                self.meter.end(
                    host, account, purpose, self._now(), quota, was_unchanged=was_unchanged
                )
            return response

    def _judge(self, request: Request, response: Response, expect: Collection[int]) -> Meaning:
        """What an answer means. Raises the error for one that is of no use."""
        now, host, account = self._now(), request.account.host, request.account.id
        said = ""
        if response.status >= 400:
            said = body.saying(body.understood(response.body), request.account.token)
        reply = Reply(response.status, response.headers, said)
        self.meter.heard(host, account, now, response.status)
        found = rules.verdict(reply, expect, now)
        if found.meaning is Meaning.LIMITED:
            until = self.meter.block(host, account, now, found.wait, is_blind=found.is_blind)
            raise rules.error(found, reply, request.place, until)
        if found.meaning in (Meaning.FINE, Meaning.UNCHANGED):
            return found.meaning
        if found.meaning is Meaning.MOVED and request.method == "GET":
            return found.meaning
        raise rules.error(found, reply, request.place, now)

    def _accept(self, request: Request, key: str, response: Response, moved_to: str) -> Answer:
        """The answer of an expected status; cached when it has a validator."""
        is_error = response.status >= 400
        hidden = request.account.token if is_error else ""
        data = body.understood(body.without(response.body, hidden))
        if data is body.NONSENSE and is_error:
            data = None
        if data is body.NONSENSE:
            raise NotUnderstood(_unreadable(request, response))
        ask_with = rules.validators(response.headers)
        if request.method == "GET" and response.status == 200 and ask_with and data is not None:
            headers = {n: response.headers[n] for n in KEPT_HEADERS if n in response.headers}
            self._cache.put(key, CachedAnswer(ask_with, headers, response.body))
        return Answer(response.status, response.headers, data, moved_to=moved_to)


def over_network(
    folder: Path | None,
    now: Callable[[], datetime],
    meter: Meter | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Client:
    """A client on the real network; one per process is enough. Answers are cached in `folder`."""
    for name in ("httpx", "httpcore"):
        # They log headers and addresses with their queries.
        logging.getLogger(name).setLevel(logging.WARNING)
    return Client(
        transport=NetworkTransport(),
        meter=meter or Meter(),
        cache=AnswerCache(folder),
        now=now,
        steady=time.monotonic,
        pause=pause,
        random=random.random,
    )


def _unreadable(request: Request, response: Response) -> str:
    if response.body.lstrip()[:1] == b"<":
        return f"{request.place} answered with a web page. Is the address of its API right?"
    return f"{request.place} answered with something that is no whole JSON."


def _held(host: str, hold: Hold) -> TrackerError:
    """The error for a call that was not sent because of a hold."""
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
