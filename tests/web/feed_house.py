"""A feed in this process with stand-in pages, for tests of who gets which frame."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest_asyncio
from asgiref.sync import sync_to_async
from channels.routing import URLRouter
from channels.sessions import SessionMiddlewareStack
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.db import connections
from django.test import Client
from django.urls import re_path

from runs.core.paths import Paths
from runs.core.states import NoticeKind
from runs.machine.bell import DatagramBell
from runs.models import Notice
from runs.overview.hiding_rules import Hidden
from runs.web.feed import Feed, Watcher
from runs.web.feed_reader import Reader
from runs.web.sockets import SameOriginOnly, TopicSocket
from tests.patience import PATIENCE

HERE = "http://testserver"


class SomePages:
    """Stands in for `runs.web.fragments`: every notice concerns the overview, by text one more page."""

    def __init__(self) -> None:
        self.renders: list[tuple[str, bool]] = []
        self.gone: set[str] = set()
        self.hidden: dict[int, tuple[Hidden, ...]] = {}
        self.broken = 0
        self.untold = ("", "")
        self.meanwhile: Callable[[], object] | None = None

    def topics_of(self, notice: Notice) -> set[str]:
        return {"overview", notice.issue_key} if notice.issue_key else {"overview"}

    def hidden_of(self, person: int) -> tuple[Hidden, ...]:
        return self.hidden.get(person, ())

    def regions(
        self, topic: str, can_act: bool, hidden: tuple[Hidden, ...] = ()
    ) -> Mapping[str, str] | None:
        if topic in self.gone or not topic.startswith(("overview", "run:")):
            return None
        if self.broken:
            self.broken -= 1
            raise RuntimeError("the page is broken")
        self.renders.append((topic, can_act))
        if self.meanwhile is not None:
            act, self.meanwhile = self.meanwhile, None
            act()
        texts = Notice.objects.order_by("-pk").values_list("text", flat=True)[:5]
        button = '<button id="stop">Stop</button>' if can_act else ""
        less = f"<i>{len(hidden)} hidden</i>" if hidden else ""
        return {"activity": f"<ul>{' '.join(texts)}</ul>", "actions": f"<p>{button}{less}</p>"}

    def pushed(
        self, topic: str, can_act: bool, hidden: tuple[Hidden, ...]
    ) -> tuple[Mapping[str, str], tuple[str, str]] | None:
        found = self.regions(topic, can_act, hidden)
        return None if found is None else (found, self.mark(topic))

    def mark(self, topic: str) -> tuple[str, str]:
        return self.untold

    def partials(self, regions: Mapping[str, str]) -> str:
        return "".join(
            f'<hx-partial hx-target="#{n}">{html}</hx-partial>' for n, html in regions.items()
        )


class CountingFeed(Feed):
    """Knows how many watchers have come so far: a socket is open before it is one."""

    joined = 0

    def join(self, watcher: Watcher) -> None:
        super().join(watcher)
        self.joined += 1


class House:
    """A feed with its pages, people who log in, and a hand that writes the timeline."""

    def __init__(self, folder: Path) -> None:
        self.paths = Paths(folder)
        self.paths.feed.mkdir(parents=True)
        self.pages = SomePages()
        self.now = datetime.now(UTC)
        self.reads = 0
        self.feed = CountingFeed(self._reader, lambda: self.paths.feed_socket(os.getpid()))
        self.options: dict[str, float] = {}
        self._open: list[WebsocketCommunicator] = []

    def _reader(self) -> Reader:
        return Reader(self.pages, lambda: self.now, marks_seconds=0)

    def person(self, name: str, *, superuser: bool = False, may: str = "") -> User:
        user = User.objects.create_user(name, password="long enough 1", is_superuser=superuser)
        if may:
            user.user_permissions.add(Permission.objects.get(codename=may))
        return user

    async def cookie(self, user: User) -> str:
        client = Client()
        await sync_to_async(client.force_login)(user)
        return client.cookies[settings.SESSION_COOKIE_NAME].value

    def tell(self, text: str, topic: str = "", kind: NoticeKind = NoticeKind.RUN_WARNED) -> int:
        notice = Notice.objects.create(at=self.now, kind=kind, text=text, issue_key=topic)
        DatagramBell(self.paths).timeline()
        return notice.pk

    def socket(
        self, cookie: str = "", topic: str = "overview", origin: str = HERE
    ) -> WebsocketCommunicator:
        routes = [
            re_path(r"^ws/(?P<topic>.+)$", TopicSocket.as_asgi(feed=self.feed, **self.options))
        ]
        application = SameOriginOnly(SessionMiddlewareStack(URLRouter(routes)))
        headers = [
            (b"host", b"testserver"),
            (b"origin", origin.encode()),
            (b"cookie", f"{settings.SESSION_COOKIE_NAME}={cookie}".encode()),
        ]
        opened = WebsocketCommunicator(application, f"/ws/{topic}", headers=headers)
        self._open.append(opened)
        return opened

    async def page(
        self, cookie: str, last: int | None = 0, topic: str = "overview"
    ) -> WebsocketCommunicator:
        """An open page: connected, it has said what it saw last, and the feed knows it."""
        before = self.feed.joined
        opened = self.socket(cookie, topic)
        assert (await opened.connect(60))[0]
        await opened.send_to(text_data=json.dumps({"last": last}))
        await happens(lambda: self.feed.joined > before)
        return opened

    async def close(self) -> None:
        for opened in self._open:
            await opened.disconnect(timeout=PATIENCE)


async def happens(seen: Callable[[], object]) -> None:
    """Wait for what another task of this process does."""
    async with asyncio.timeout(PATIENCE):
        while not seen():
            await asyncio.sleep(0.02)


async def frame(page: WebsocketCommunicator, seconds: float = 60) -> dict[str, Any]:
    return json.loads(await page.receive_from(seconds))


async def closing(page: WebsocketCommunicator, seconds: float = 60) -> int:
    message = await page.receive_output(seconds)
    assert message["type"] == "websocket.close", message
    return message["code"]


async def until(shown: str, page: WebsocketCommunicator) -> list[dict[str, Any]]:
    frames = [await frame(page)]
    while shown not in frames[-1]["content"]:
        frames.append(await frame(page))
    return frames


@pytest_asyncio.fixture
async def house() -> AsyncIterator[House]:
    with tempfile.TemporaryDirectory(prefix="lab-feed-") as folder:
        made = House(Path(folder))
        yield made
        await made.close()
        await sync_to_async(connections.close_all)()


@pytest_asyncio.fixture
async def cookie(house: House) -> str:
    return await house.cookie(await sync_to_async(house.person)("ada", superuser=True))


def in_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    return sync_to_async(function)
