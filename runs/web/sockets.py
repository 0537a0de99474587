"""WebSockets: who may open one, and how a page says what it saw last."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from channels.auth import get_user
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpResponse
from django.http.request import split_domain_port, validate_host
from django.middleware.csrf import CsrfViewMiddleware
from django.urls import URLPattern, re_path
from django.utils.http import is_same_domain

from runs.web import access, presence
from runs.web.feed import LOGGED_OUT, OTHER_RIGHTS, REASONS, Ended, Feed, Watcher
from runs.web.feed_reader import PERSONAL, Audience

HELLO_SECONDS = 5.0
CHECK_SECONDS = 60.0
BROKEN = 4500  # Autobahn sends no code below 3000 but 1000: the socket would stay open, and silent
DEFAULT_PORTS = {"http": "80", "https": "443"}

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

logger = logging.getLogger(__name__)


class SameOriginOnly:
    """Refuses sockets that a page of another site opened, with 403 and before anything is read.

    A browser sends cookies along from any page, so the Origin has to be the very host that was
    asked for; and that host has to be one of ours, or a foreign name that points here passes.
    """

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name: value.decode("latin1") for name, value in scope.get("headers", ())}
        allowed = is_same_origin(headers.get(b"origin", ""), headers.get(b"host", ""))
        application = self._application if allowed else WebsocketDenier()
        await application(scope, receive, send)


def is_same_origin(origin: str, host: str) -> bool:
    """Whether a page of this site opened the socket, judged by the browser's own headers.

    A proxy may ask for us under another name than the browser knows; its origin is named in
    LAB_TRUSTED_ORIGINS then, and means the same here as for forms.
    """
    scheme, _, page = origin.partition("://")
    default = DEFAULT_PORTS.get(scheme)
    asked_name, asked_port = split_domain_port(host)
    page_name, page_port = split_domain_port(page)
    if default is None or not asked_name or not validate_host(asked_name, settings.ALLOWED_HOSTS):
        return False
    is_same = (page_name, page_port or default) == (asked_name, asked_port or default)
    return is_same or _is_trusted(origin, page)


def _is_trusted(origin: str, page: str) -> bool:
    """Whether forms of this origin are taken too, by Django's own reading of the setting."""
    forms = CsrfViewMiddleware(lambda _request: HttpResponse())
    wild = forms.allowed_origin_subdomains.get(origin.partition("://")[0], ())
    return origin in forms.allowed_origins_exact or any(is_same_domain(page, one) for one in wild)


class TopicSocket(AsyncWebsocketConsumer):
    """One open page. It says what it saw last, then gets frames until it leaves or is logged out."""

    def __init__(
        self,
        feed: Feed,
        hello_seconds: float = HELLO_SECONDS,
        check_seconds: float = CHECK_SECONDS,
    ) -> None:
        super().__init__()
        self._feed = feed
        self._hello_seconds = hello_seconds
        self._check_seconds = check_seconds
        self._last: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self._serving: asyncio.Task[None] | None = None
        self._person = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            if self._serving is not None:
                self._serving.cancel()
                with suppress(asyncio.CancelledError):
                    await self._serving
            topic = self.scope["url_route"]["kwargs"]["topic"]
            # The same page may be open in another tab.
            if self._person and not self._feed.is_watched(self._person, topic):
                await database_sync_to_async(presence.look_away)(self._person, topic)

    async def connect(self) -> None:
        """Accept first: a browser is only told the reason for closing on an open socket."""
        await self.accept()
        self._serving = asyncio.create_task(self._serve())

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """The first message tells the last timeline entry that the page shows; others mean nothing."""
        if not self._last.done():
            self._last.set_result(last_seen(text_data or ""))

    async def _serve(self) -> None:
        try:
            audience = await self._audience()
            with self._feed.admitted(self._person):
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._hello_seconds):
                        await asyncio.shield(self._last)
                last = self._last.result() if self._last.done() else None
                while True:
                    audience, last = await self._push(audience, last), None
        except Ended as ended:
            await self.close(ended.code, REASONS.get(ended.code))
        except Exception:
            logger.exception("a socket failed", extra={"path": self.scope["path"]})
            await self.close(BROKEN)

    async def _push(self, audience: Audience, last: int | None) -> Audience:
        """Send frames as long as the user's rights stay as they are; the audience after that."""
        watcher = Watcher(audience, self._session_key, self._person, last)
        self._feed.join(watcher)
        try:
            while await self._push_until_check(watcher):
                now = await self._audience()
                if now != audience:
                    return now
            return await self._audience()
        finally:
            self._feed.leave(watcher)

    async def _push_until_check(self, watcher: Watcher) -> bool:
        """Send frames until the next regular check; False when the feed saw other rights first."""
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._check_seconds):
                    while True:
                        await self.send(text_data=await watcher.frame())
        except Ended as ended:
            if ended.code == OTHER_RIGHTS:
                return False
            raise
        return True

    @property
    def _session_key(self) -> str:
        return self.scope["session"].session_key or ""

    async def _audience(self) -> Audience:
        """What this socket may be sent, asked anew of session and user. Raises Ended."""
        user = await get_user({"session": SessionStore(self._session_key)})
        may_look, may_act = await _rights(user)
        if not may_look:
            raise Ended(LOGGED_OUT)
        self._person = user.pk
        topic = self.scope["url_route"]["kwargs"]["topic"]
        await database_sync_to_async(presence.note)(topic)
        await database_sync_to_async(presence.look)(self._person, topic)
        return Audience(topic, may_act, self._person if may_act and topic in PERSONAL else 0)


@database_sync_to_async
def _rights(user: User | AnonymousUser) -> tuple[bool, bool]:
    return access.may_look(user), access.may_act(user)


def last_seen(text: str) -> int | None:
    """The id in `{"last": id}`; None when it is not one, and then the whole page is sent."""
    try:
        last = json.loads(text)["last"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return last if type(last) is int and last >= 0 else None


def socket_urls(feed: Feed) -> list[URLPattern]:
    """The addresses of sockets; all others are refused."""
    return [
        re_path(r"^ws/(?P<topic>[a-z]+(?::[0-9]{1,18})?)$", TopicSocket.as_asgi(feed=feed)),
        re_path(r"", WebsocketDenier.as_asgi()),
    ]
