"""Who may open a socket, what it has to say first, and when it is closed."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from runs.core.states import NoticeKind
from runs.models import Looking, NoticeAddress, Project, Run
from runs.web.feed import GONE, LOGGED_OUT, TOO_MANY
from runs.web.sockets import is_same_origin, last_seen
from tests import make
from tests.fakes import World
from tests.web.feed_house import House, closing, cookie, frame, house, in_thread

__all__ = ["cookie", "house"]
pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True), pytest.mark.postgres]


@pytest.mark.parametrize(
    "hello", ["?", "{}", '{"last": -1}', '{"last": true}', "[" * 5000, '{"last": 9999999}']
)
async def test_a_page_that_cannot_say_what_it_saw_gets_everything(
    house: House, cookie: str, hello: str
) -> None:
    await in_thread(house.tell)("seen")
    page = house.socket(cookie)
    await page.connect(60)
    await page.send_to(text_data=hello)
    assert "seen" in (await frame(page))["content"]


async def test_a_page_that_says_nothing_gets_everything_after_a_while(
    house: House, cookie: str
) -> None:
    house.options = {"hello_seconds": 0.2}
    await in_thread(house.tell)("seen")
    page = house.socket(cookie)
    await page.connect(60)
    assert "seen" in (await frame(page))["content"]


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


@pytest.mark.row("X-10", level="contract")
async def test_a_socket_without_login_is_closed_with_4401(house: House) -> None:
    page = house.socket("nonsense")
    await page.connect(60)
    assert await closing(page) == LOGGED_OUT


@pytest.mark.row("X-10", level="contract")
async def test_a_deactivated_user_is_closed_with_4401(house: House) -> None:
    user = await sync_to_async(house.person)("bob")
    cookie = await house.cookie(user)
    user.is_active = False
    await user.asave()
    page = house.socket(cookie)
    await page.connect(60)
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


async def test_a_tab_that_logs_out_while_its_page_is_rendered_gets_no_further_frame(
    house: House, cookie: str
) -> None:
    page = await house.page(cookie)
    await asyncio.sleep(0.2)
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = cookie
    house.pages.meanwhile = client.session.flush
    await in_thread(house.tell)("not for you")
    assert await closing(page) == LOGGED_OUT


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


async def test_a_lost_permission_takes_the_buttons_with_the_very_next_frame(house: House) -> None:
    user = await sync_to_async(house.person)("bob", may="act")
    await in_thread(house.tell)("seen")
    page = await house.page(await house.cookie(user), None)
    assert "<button" in (await frame(page))["content"]
    await sync_to_async(user.user_permissions.clear)()
    await in_thread(house.tell)("after that")
    last = await frame(page)
    assert "after that" in last["content"]
    assert '#actions"><p></p>' in last["content"]


async def test_a_permission_that_is_given_brings_the_buttons(house: House) -> None:
    from django.contrib.auth.models import Permission

    user = await sync_to_async(house.person)("bob")
    await in_thread(house.tell)("seen")
    page = await house.page(await house.cookie(user), None)
    assert "<button" not in (await frame(page))["content"]
    permission = await Permission.objects.aget(codename="act")
    await sync_to_async(user.user_permissions.add)(permission)
    await in_thread(house.tell)("after that")
    assert "<button" in (await frame(page))["content"]


async def test_a_quiet_page_of_somebody_deactivated_is_closed_at_once(house: House) -> None:
    user = await sync_to_async(house.person)("bob")
    page = await house.page(await house.cookie(user), topic="run:1")
    await asyncio.sleep(0.2)
    user.is_active = False
    await user.asave()
    await in_thread(house.tell)("bob was deactivated", "", NoticeKind.PERSON_CHANGED)
    assert await closing(page) == LOGGED_OUT


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
    assert (await page.connect(60))[0] is False


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


@pytest.mark.parametrize(
    ("origin", "is_ours"),
    [
        pytest.param("https://lab.example.org", True, id="named"),
        pytest.param("https://a.team.example", True, id="named by a pattern"),
        pytest.param("http://lab.example.org", False, id="without TLS"),
        pytest.param("https://lab.example.org.evil.example", False, id="looks alike"),
        pytest.param("https://team.example.evil.example", False, id="looks like the pattern"),
    ],
)
async def test_a_page_behind_a_proxy_of_another_name_opens_its_socket_when_the_origin_is_trusted(
    settings: Any, origin: str, is_ours: bool
) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["https://lab.example.org", "https://*.team.example"]
    assert is_same_origin(origin, "127.0.0.1:8420") is is_ours
    assert not is_same_origin(origin, "evil.example")


async def test_a_first_message_is_understood_or_means_nothing() -> None:
    assert last_seen('{"last": 12}') == 12
    assert [last_seen(text) for text in ("", "12", "null", '{"last": "12"}', '{"last": 1.5}')] == [
        None
    ] * 5


async def test_one_person_opens_no_more_sockets_than_the_bound_and_others_go_on(
    house: House, cookie: str
) -> None:
    await in_thread(house.tell)("seen")
    house.feed.sockets_a_person = 3
    pages = [await house.page(cookie, None) for _ in range(3)]
    one_more = house.socket(cookie)
    await one_more.connect(60)
    message = await one_more.receive_output(60)
    assert (message["type"], message["code"]) == ("websocket.close", TOO_MANY)
    assert "Too many" in message["reason"]
    await one_more.disconnect()
    other = await house.page(await house.cookie(await sync_to_async(house.person)("bob")), None)
    assert "seen" in (await frame(other))["content"]
    await pages.pop().disconnect()
    again = await house.page(cookie, None)
    assert "seen" in (await frame(again))["content"]


async def test_who_closes_one_of_two_tabs_still_looks_at_the_other(
    house: House, cookie: str, world: World
) -> None:
    run = await in_thread(lambda: make.a_run(make.a_project()))()
    user = await in_thread(lambda: User.objects.get())()
    device = {"name": "phone", "url": "json://x", "created_at": world.clock.now}
    await in_thread(lambda: NoticeAddress.objects.create(user=user, **device))()
    await in_thread(house.tell)("seen", f"run:{run.pk}")
    looking = in_thread(lambda: [one.topic for one in Looking.objects.all()])
    pages = [await house.page(cookie, topic=f"run:{run.pk}") for _ in "ab"]
    for page in pages:
        await frame(page)
    await pages[0].disconnect()
    assert await looking() == [f"run:{run.pk}"]
    await pages[1].disconnect()
    assert await looking() == []


async def test_an_open_page_has_the_tracker_of_its_project_asked(
    house: House, cookie: str, world: World
) -> None:
    def a_run(name: str) -> Run:
        return make.a_run(make.a_project(name, tracker="gitea", tracker_root=f"1/ann/{name}"))

    run = await in_thread(a_run)("shop")
    await in_thread(a_run)("other")
    await in_thread(house.tell)("seen", f"run:{run.pk}")
    page = await house.page(cookie, topic=f"run:{run.pk}")
    await frame(page)
    watched = await in_thread(lambda: list(Project.objects.exclude(watched_at=None)))()
    assert [(one.name, one.watched_at) for one in watched] == [("shop", world.clock.now)]
