"""The timeline as server-sent events: an ASGI application beside Django's.

Django would keep a thread for each stream that is open. Here all of them together use the one
thread of the feed, which also rings them when the timeline has grown.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, JsonResponse
from django.urls import resolve
from ninja.errors import AuthenticationError
from ninja.responses import NinjaJSONEncoder
from pydantic import ValidationError

from runs.api import asked, problems, showing
from runs.api.api import gate, wrong_method
from runs.api.gate import allowed, token_of
from runs.models import Notice
from runs.timeline import queries as timeline
from runs.web.feed import Feed, Follower
from runs.web.feed_reader import Reader
from runs.web.refusals import INVALID, Denied
from runs.wiring import lab

STREAMS = 50
STREAMS_OF_ONE = 10
ENTRIES = 5000
AT_ONCE = 200
HEARTBEAT_SECONDS = 10.0
PACE_SECONDS = 0.05

HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
]
HELLO = "retry: 1000\n: following\n\n"
STILL_HERE = ": still here\n\n"
GO_ON = ": this stream is long enough; go on with Last-Event-ID\n\n"

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

logger = logging.getLogger(__name__)


class TimelineStream:
    """Serves every stream of this process, and knows how many of whom are open."""

    def __init__(self, feed: Feed, heartbeat_seconds: float = HEARTBEAT_SECONDS) -> None:
        self._feed = feed
        self._heartbeat_seconds = heartbeat_seconds
        self._open: Counter[int] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, until it has its answer or its client leaves."""
        serving = asyncio.create_task(self._serve(dict(scope), send))
        leaving = asyncio.create_task(_left(receive))
        try:
            await asyncio.wait({serving, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            serving.cancel()
            leaving.cancel()
            for ended in await asyncio.gather(serving, leaving, return_exceptions=True):
                if isinstance(ended, Exception):
                    logger.error("a stream failed", exc_info=ended)

    async def _serve(self, scope: Scope, send: Send) -> None:
        request = ASGIRequest(scope, io.BytesIO())
        follower = Follower()
        if "Authorization" not in request.headers:
            # Nobody without a token starts the feed.
            await _refuse(send, request, AuthenticationError())
            return
        with self._feed.following(follower) as reader:
            try:
                owner, last = await reader.ask(admitted, request)
                self._take_place(owner)
            except Exception as error:
                await _refuse(send, request, error)
                return
            try:
                await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
                async for chunk in self._chunks(reader, follower, _token(request), last):
                    await _write(send, chunk, more_body=True)
                await _write(send, "", more_body=False)
            finally:
                self._open[owner] -= 1

    async def _chunks(
        self, reader: Reader, follower: Follower, token: str, last: int
    ) -> AsyncIterator[str]:
        """What is written, piece by piece. Nothing is read for a token that is no longer valid."""
        yield HELLO
        written = 0
        while written < ENTRIES:
            try:
                found = await reader.ask(following, token, last)
            except Exception as error:
                yield _event("refused", problems.content(problems.meaning(error)))
                return
            if found:
                yield "".join(map(_entry, found))
                last, written = found[-1].pk, written + len(found)
                await asyncio.sleep(PACE_SECONDS)
            else:
                yield STILL_HERE
            if len(found) < AT_ONCE:
                await follower.rest(self._heartbeat_seconds)
        yield GO_ON

    def _take_place(self, owner: int) -> None:
        """Count one stream more. Raises Denied when there are enough."""
        if self._open.total() >= STREAMS or self._open[owner] >= STREAMS_OF_ONE:
            text = "Too many streams are open. Close one, or read GET /timeline with a cursor."
            raise Denied(429, "too_many_streams", text)
        self._open[owner] += 1


def admitted(request: HttpRequest) -> tuple[int, int]:
    """Whose stream it is, and the entry after which it begins. Raises Denied and others."""
    request.get_host()
    if settings.SECURE_SSL_REDIRECT and not request.is_secure():
        raise Denied(403, "needs_https", "Ask by https: a token must not travel in the clear.")
    if request.method != "GET":
        raise Denied(405, "wrong_method", "")
    request.resolver_match = resolve(request.path_info)
    token = gate(request)
    if token is None:
        raise AuthenticationError
    request.auth = token  # type: ignore[attr-defined]
    last = _begins_after(request)
    return token_of(request).user_id, timeline.newest() if last is None else last


def following(token: str, last: int) -> list[Notice]:
    """The next entries for a token that is still valid. Raises Denied when it is not.

    Asked after the read: whatever ended the token before an entry was written is seen then.
    """
    found = timeline.after(last, AT_ONCE)
    allowed(lab(), token)
    return found


def _begins_after(request: HttpRequest) -> int | None:
    """The id that the request names; a reconnecting client knows better than its address."""
    try:
        wanted = asked.From.model_validate(request.GET.dict())
    except ValidationError as error:
        raise problems.wrong(
            [{**one, "loc": ("query", *one["loc"])} for one in error.errors()]
        ) from error
    seen = request.headers.get("Last-Event-ID", "").strip()
    if not seen:
        return wanted.after
    if not (seen.isascii() and seen.isdigit()) or len(seen) > 19 or int(seen) > asked.BIGGEST_ID:
        why = "This has to be the id of an entry."
        raise Denied(422, INVALID, f"Last-Event-ID: {why}", {"Last-Event-ID": why})
    return int(seen)


def _token(request: HttpRequest) -> str:
    return request.headers["Authorization"].partition(" ")[2]


def _entry(notice: Notice) -> str:
    return f"id: {notice.pk}\n{_event('entry', showing.entry(notice).model_dump())}"


def _event(kind: str, content: object) -> str:
    return f"event: {kind}\ndata: {json.dumps(content, cls=NinjaJSONEncoder)}\n\n"


async def _refuse(send: Send, request: HttpRequest, error: Exception) -> None:
    denied = problems.meaning(error)
    made: JsonResponse = problems.shown(denied)
    if denied.status == 405:
        made = wrong_method("GET")
    if denied.status == 429:
        made["Retry-After"] = "10"
    headers = [(name.lower().encode(), value.encode()) for name, value in made.items()]
    await send({"type": "http.response.start", "status": made.status_code, "headers": headers})
    await _write(send, made.content.decode(), more_body=False)


async def _write(send: Send, text: str, *, more_body: bool) -> None:
    await send({"type": "http.response.body", "body": text.encode(), "more_body": more_body})


async def _left(receive: Receive) -> None:
    """Returns when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
