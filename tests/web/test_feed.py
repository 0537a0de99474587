"""The feed inside one process: who gets which frame, and who gets none."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
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

from runs.domain.paths import Paths
from runs.domain.states import NoticeKind
from runs.models import Notice
from runs.outside.notify import DatagramBell
from runs.web.feed import GONE, LOGGED_OUT, Feed
from runs.web.feed_reader import Reader
from runs.web.sockets import SameOriginOnly, TopicSocket, is_same_origin, last_seen

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]

HERE = "http://testserver"


class SomePages:
    """Stands in for `runs.web.fragments`: every notice concerns the overview, by text one more page."""

    def __init__(self) -> None:
        self.renders: list[tuple[str, bool]] = []
        self.gone: set[str] = set()
        self.broken = 0

    def topics_of(self, notice: Notice) -> set[str]:
        return {"overview", notice.issue_key} if notice.issue_key else {"overview"}

    def regions(self, topic: str, can_act: bool) -> Mapping[str, str] | None:
        if topic in self.gone or not topic.startswith(("overview", "run:")):
            return None
        if self.broken:
            self.broken -= 1
            raise RuntimeError("the page is broken")
        self.renders.append((topic, can_act))
        texts = Notice.objects.order_by("-pk").values_list("text", flat=True)[:5]
        button = '<button id="stop">Stop</button>' if can_act else ""
        return {"activity": f"<ul>{' '.join(texts)}</ul>", "actions": f"<p>{button}</p>"}

    def partials(self, regions: Mapping[str, str]) -> str:
        return "".join(
            f'<hx-partial hx-target="#{n}">{html}</hx-partial>' for n, html in regions.items()
        )


class House:
    """A feed with its pages, people who log in, and a hand that writes the timeline."""

    def __init__(self, folder: Path) -> None:
        self.paths = Paths(folder)
        self.paths.feed.mkdir(parents=True)
        self.pages = SomePages()
        self.now = datetime.now(UTC)
        self.reads = 0
        self.feed = Feed(self._reader, lambda: self.paths.feed_socket(os.getpid()))
        self.options: dict[str, float] = {}
        self._open: list[WebsocketCommunicator] = []

    def _reader(self) -> Reader:
        return Reader(self.pages, lambda: self.now)

    def person(self, name: str, *, superuser: bool = False, may: str = "") -> User:
        user = User.objects.create_user(name, password="long enough 1", is_superuser=superuser)
        if may:
            user.user_permissions.add(Permission.objects.get(codename=may))
        return user

    async def cookie(self, user: User) -> str:
        client = Client()
        await sync_to_async(client.force_login)(user)
        return client.cookies[settings.SESSION_COOKIE_NAME].value

    def tell(self, text: str, topic: str = "") -> int:
        notice = Notice.objects.create(
            at=self.now, kind=NoticeKind.RUN_STEP, text=text, issue_key=topic
        )
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
        """An open page: connected, and it has said what it saw last."""
        opened = self.socket(cookie, topic)
        assert (await opened.connect(5))[0]
        await opened.send_to(text_data=json.dumps({"last": last}))
        return opened

    async def close(self) -> None:
        for opened in self._open:
            await opened.disconnect()


async def frame(page: WebsocketCommunicator, seconds: float = 5) -> dict[str, Any]:
    return json.loads(await page.receive_from(seconds))


async def closing(page: WebsocketCommunicator, seconds: float = 5) -> int:
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


@pytest.mark.row("X-06", level="contract")
async def test_a_notice_reaches_an_open_page_at_once(house: House, cookie: str) -> None:
    page = await house.page(cookie)
    await asyncio.sleep(0.2)
    started = asyncio.get_running_loop().time()
    notice = await in_thread(house.tell)("run 7 started")
    got = await frame(page)
    assert got["id"] == notice
    assert '<hx-partial hx-target="#activity"><ul>run 7 started</ul></hx-partial>' in got["content"]
    assert asyncio.get_running_loop().time() - started < 0.5


@pytest.mark.row("X-06", level="contract")
async def test_a_lost_ring_costs_a_second_and_nothing_else(house: House, cookie: str) -> None:
    page = await house.page(cookie)
    await asyncio.sleep(0.2)
    house.paths.feed_socket(os.getpid()).unlink()
    await in_thread(house.tell)("nobody rang")
    assert "nobody rang" in (await frame(page))["content"]


@pytest.mark.row("X-07", level="contract")
async def test_a_page_that_was_away_gets_what_it_missed(house: House, cookie: str) -> None:
    last = await in_thread(house.tell)("seen")
    for text in ("one", "two", "three"):
        newest = await in_thread(house.tell)(text)
    page = await house.page(cookie, last)
    got = await frame(page)
    assert got["id"] == newest
    assert "three two one seen" in got["content"]
    assert await page.receive_nothing(0.3)


async def test_a_page_that_missed_nothing_is_sent_nothing(house: House, cookie: str) -> None:
    last = await in_thread(house.tell)("seen")
    page = await house.page(cookie, last)
    assert await page.receive_nothing(0.5)


async def test_what_concerns_other_pages_is_not_replayed(house: House, cookie: str) -> None:
    last = await in_thread(house.tell)("seen", "run:1")
    await in_thread(house.tell)("about another run", "run:2")
    page = await house.page(cookie, last, "run:1")
    assert await page.receive_nothing(0.5)


@pytest.mark.parametrize(
    "hello", ["?", "{}", '{"last": -1}', '{"last": true}', "[" * 5000, '{"last": 9999999}']
)
async def test_a_page_that_cannot_say_what_it_saw_gets_everything(
    house: House, cookie: str, hello: str
) -> None:
    await in_thread(house.tell)("seen")
    page = house.socket(cookie)
    await page.connect(5)
    await page.send_to(text_data=hello)
    assert "seen" in (await frame(page))["content"]


async def test_a_page_that_says_nothing_gets_everything_after_a_while(
    house: House, cookie: str
) -> None:
    house.options = {"hello_seconds": 0.2}
    await in_thread(house.tell)("seen")
    page = house.socket(cookie)
    await page.connect(5)
    assert "seen" in (await frame(page))["content"]


async def test_only_regions_that_differ_are_sent(house: House, cookie: str) -> None:
    page = await house.page(cookie)
    await asyncio.sleep(0.2)
    await in_thread(house.tell)("changed")
    content = (await frame(page))["content"]
    assert 'hx-target="#activity"' in content
    assert 'hx-target="#actions"' not in content


async def test_fifty_sockets_cost_one_render_for_each_change_and_audience(
    house: House, cookie: str
) -> None:
    viewer = await house.cookie(await sync_to_async(house.person)("bob"))
    pages = [await house.page(cookie) for _ in range(25)]
    pages += [await house.page(viewer) for _ in range(25)]
    await asyncio.sleep(0.5)
    house.pages.renders.clear()
    await in_thread(house.tell)("one change")
    for page in pages:
        await frame(page)
    assert sorted(house.pages.renders) == [("overview", False), ("overview", True)]


async def test_fifty_pages_that_come_back_cost_one_render(house: House, cookie: str) -> None:
    await in_thread(house.tell)("while they were away")
    pages = [house.socket(cookie) for _ in range(50)]
    for page in pages:
        await page.connect(5)
    await asyncio.sleep(0.1)
    for page in pages:
        await page.send_to(text_data='{"last": 0}')
    for page in pages:
        await frame(page)
    assert len(house.pages.renders) <= 2


async def test_nobody_watching_a_page_means_it_is_not_rendered(house: House, cookie: str) -> None:
    page = await house.page(cookie, topic="run:1")
    await asyncio.sleep(0.2)
    house.pages.renders.clear()
    await in_thread(house.tell)("elsewhere", "run:2")
    assert await page.receive_nothing(0.4)
    assert house.pages.renders == []


@pytest.mark.row("X-10", level="contract")
async def test_a_viewer_gets_no_action_buttons_and_an_operator_does(
    house: House, cookie: str
) -> None:
    person = sync_to_async(house.person)
    await in_thread(house.tell)("seen")
    viewer = await house.page(await house.cookie(await person("bob")), None)
    operator = await house.page(await house.cookie(await person("eve", may="act")), None)
    assert "<button" not in (await frame(viewer))["content"]
    assert "<button" in (await frame(operator))["content"]


@pytest.mark.row("X-07", level="contract")
async def test_a_burst_of_two_thousand_entries_is_shown_once_and_to_its_end(
    house: House, cookie: str
) -> None:
    pages = [await house.page(cookie) for _ in range(5)]
    await asyncio.sleep(0.2)

    def burst() -> None:
        for number in range(2000):
            house.tell(f"entry-{number:04}")
        house.tell("the last one")

    writing = asyncio.ensure_future(in_thread(burst)())
    for page in pages:
        frames = await until("the last one", page)
        ids = [got["id"] for got in frames]
        contents = [got["content"] for got in frames]
        assert ids == sorted(set(ids))
        assert len(contents) == len(set(contents))
        assert len(frames) < 500
        assert await page.receive_nothing(0.2)
    await writing


async def test_a_slow_socket_holds_one_page_and_not_a_queue(house: House, cookie: str) -> None:
    """The mailbox is filled while nobody takes anything out of it."""
    from runs.web.feed import Watcher
    from runs.web.feed_reader import Audience

    slow = Watcher(Audience("overview", True), "", 0)
    for number in range(1000):
        slow.offer(number, {"activity": f"state {number}", "head": "same"})
    got = json.loads(await slow.frame())
    assert got == {"id": 999, "content": "state 999same"}


async def test_a_page_that_fails_to_render_is_tried_again(house: House, cookie: str) -> None:
    page = await house.page(cookie)
    await asyncio.sleep(0.2)
    house.pages.broken = 1
    await in_thread(house.tell)("shown in the end")
    assert "shown in the end" in (await frame(page))["content"]


@pytest.mark.row("X-10", level="contract")
async def test_a_socket_without_login_is_closed_with_4401(house: House) -> None:
    page = house.socket("nonsense")
    await page.connect(5)
    assert await closing(page) == LOGGED_OUT


@pytest.mark.row("X-10", level="contract")
async def test_a_deactivated_user_is_closed_with_4401(house: House) -> None:
    user = await sync_to_async(house.person)("bob")
    cookie = await house.cookie(user)
    user.is_active = False
    await user.asave()
    page = house.socket(cookie)
    await page.connect(5)
    assert await closing(page) == LOGGED_OUT


async def test_a_tab_that_logged_out_gets_no_further_frame(house: House, cookie: str) -> None:
    page = await house.page(cookie)
    other = await house.page(await house.cookie(await sync_to_async(house.person)("bob")))
    await asyncio.sleep(0.2)
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = cookie
    await sync_to_async(client.session.flush)()
    await in_thread(house.tell)("not for you")
    assert await closing(page) == LOGGED_OUT
    assert "not for you" in (await frame(other))["content"]


async def test_a_quiet_tab_that_logged_out_is_closed_by_the_regular_check(house: House) -> None:
    house.options = {"check_seconds": 0.2}
    user = await sync_to_async(house.person)("bob")
    page = await house.page(await house.cookie(user))
    user.is_active = False
    await user.asave()
    assert await closing(page) == LOGGED_OUT


async def test_an_expired_session_gets_no_further_frame(house: House, cookie: str) -> None:
    page = await house.page(cookie)
    await asyncio.sleep(0.2)
    house.now += timedelta(days=60)
    await in_thread(house.tell)("too late")
    assert await closing(page) == LOGGED_OUT


async def test_a_permission_that_is_taken_away_takes_the_buttons_too(house: House) -> None:
    house.options = {"check_seconds": 0.2}
    user = await sync_to_async(house.person)("bob", may="act")
    await in_thread(house.tell)("seen")
    page = await house.page(await house.cookie(user), None)
    assert "<button" in (await frame(page))["content"]
    await sync_to_async(user.user_permissions.clear)()
    assert "<button" not in (await frame(page))["content"]


async def test_a_page_of_something_unknown_is_closed_with_4404(house: House, cookie: str) -> None:
    assert await closing(await house.page(cookie, topic="nothing")) == GONE


async def test_a_page_whose_thing_is_removed_is_closed_with_4404(house: House, cookie: str) -> None:
    page = await house.page(cookie, topic="run:1")
    await asyncio.sleep(0.2)
    house.pages.gone.add("run:1")
    await in_thread(house.tell)("removed", "run:1")
    assert await closing(page) == GONE


@pytest.mark.row("X-10", level="contract")
@pytest.mark.parametrize(
    "origin", ["http://evil.example", "", "null", "http://testserver:81", "ftp://testserver"]
)
async def test_a_page_of_another_site_gets_no_socket(
    house: House, cookie: str, origin: str
) -> None:
    page = house.socket(cookie, origin=origin)
    assert (await page.connect(5))[0] is False


@pytest.mark.row("X-10", level="pure")
@pytest.mark.parametrize(
    ("origin", "host", "is_ours"),
    [
        pytest.param("http://localhost:8420", "localhost:8420", True, id="same host and port"),
        pytest.param("http://[::1]:8420", "[::1]:8420", True, id="same IPv6 host"),
        pytest.param("https://localhost", "localhost", True, id="both on the default port"),
        pytest.param("https://localhost:443", "localhost", True, id="default port spelled out"),
        pytest.param("http://LOCALHOST", "localhost", True, id="upper case"),
        pytest.param("http://localhost:8421", "localhost:8420", False, id="another port"),
        pytest.param("http://127.0.0.1:8420", "localhost:8420", False, id="another name of ours"),
        pytest.param(
            "http://evil.example", "evil.example", False, id="a name rebound to this host"
        ),
        pytest.param("http://localhost.evil.example", "localhost", False, id="looks alike"),
        pytest.param("http://localhost@evil.example", "localhost", False, id="user part"),
        pytest.param("http://localhost, http://evil.example", "localhost", False, id="two headers"),
        pytest.param("http://localhost/", "localhost", False, id="not an origin"),
        pytest.param("null", "localhost", False, id="sandboxed page"),
        pytest.param("", "localhost", False, id="no origin"),
        pytest.param("http://", "", False, id="no host"),
    ],
)
async def test_only_the_very_host_that_was_asked_for_is_the_same_origin(
    origin: str, host: str, is_ours: bool
) -> None:
    assert is_same_origin(origin, host) is is_ours


async def test_the_last_socket_stops_the_tailer_and_tidies_its_file(
    house: House, cookie: str
) -> None:
    first, second = await house.page(cookie), await house.page(cookie)
    await asyncio.sleep(0.1)
    mine = house.paths.feed_socket(os.getpid())
    assert mine.stat().st_mode & 0o077 == 0
    await first.disconnect()
    assert mine.exists()
    await second.disconnect()
    assert not mine.exists()
    again = await house.page(cookie)
    await asyncio.sleep(0.1)
    await in_thread(house.tell)("after a rest")
    assert "after a rest" in (await frame(again))["content"]


async def test_the_feed_goes_on_when_its_socket_cannot_be_made(house: House, cookie: str) -> None:
    house.paths.feed.rmdir()
    page = await house.page(cookie)
    await asyncio.sleep(0.2)
    await in_thread(house.tell)("found by asking")
    assert "found by asking" in (await frame(page))["content"]


async def test_a_first_message_is_understood_or_means_nothing() -> None:
    assert last_seen('{"last": 12}') == 12
    assert [last_seen(text) for text in ("", "12", "null", '{"last": "12"}', '{"last": 1.5}')] == [
        None
    ] * 5
