"""The feed inside one process: who gets which frame, and when."""

from __future__ import annotations

import asyncio
import json
import os

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from runs.core.states import NoticeKind
from runs.machine.bell import DatagramBell
from runs.overview.hiding_rules import Hidden
from runs.web import feed
from runs.web.feed import BURST, PACE_SECONDS, ROUNDS_A_SECOND, SAFETY_SECONDS, TokenBucket, Watcher
from runs.web.feed_reader import Audience
from tests.patience import PATIENCE
from tests.web.feed_house import House, cookie, frame, happens, house, in_thread, until

__all__ = ["cookie", "house"]
pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True), pytest.mark.postgres]


async def until_it_rests() -> None:
    """The feed has let everybody in and waits for a ring."""
    await asyncio.sleep(0.3)


@pytest.mark.row("X-06", level="contract")
async def test_a_notice_reaches_an_open_page_at_once(house: House, cookie: str) -> None:
    page = await house.page(cookie)
    await until_it_rests()
    clock = asyncio.get_running_loop().time
    deadline, took = clock() + PATIENCE, []
    # Asked for by time alone, each after the first would wait for a whole period. As many as it
    # takes: a busy machine may hold up all of a few.
    while min(took[1:], default=SAFETY_SECONDS) >= SAFETY_SECONDS * 0.75:
        started, text = clock(), f"line {len(took)}."
        assert started < deadline, took
        notice = await in_thread(house.tell)(text)
        got = await frame(page)
        took.append(clock() - started)
        assert got["id"] == notice
        assert f'<hx-partial hx-target="#activity"><ul>{text}' in got["content"]


@pytest.mark.long
@pytest.mark.row("X-06", level="contract")
async def test_a_lost_ring_costs_some_seconds_and_nothing_else(house: House, cookie: str) -> None:
    page = await house.page(cookie)
    await until_it_rests()
    house.paths.feed_socket(os.getpid()).unlink()
    await in_thread(house.tell)("nobody rang")
    assert "nobody rang" in (await frame(page))["content"]


@pytest.mark.row("LAB-130", level="contract")
async def test_what_no_entry_tells_is_pushed_too(house: House, cookie: str) -> None:
    """Where no part that is pushed shows it, the page hears that it may ask for its own."""
    page = await house.page(cookie)
    await until_it_rests()
    house.pages.untold = ("clone: 50 %", "")
    await in_thread(DatagramBell(house.paths).timeline)()
    assert (await frame(page))["content"] == ""
    rendered = len(house.pages.renders)
    await in_thread(DatagramBell(house.paths).timeline)()
    await until_it_rests()
    assert len(house.pages.renders) == rendered, "nothing changed, so nothing was rendered"
    # A look of the worker that changed nothing else is nothing to ask for.
    house.pages.untold = ("clone: 50 %", "12:00:30")
    await in_thread(DatagramBell(house.paths).timeline)()
    await until_it_rests()
    assert len(house.pages.renders) == rendered + 1
    assert await page.receive_nothing()


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


async def test_only_regions_that_differ_are_sent(house: House, cookie: str) -> None:
    page = await house.page(cookie)
    await until_it_rests()
    await in_thread(house.tell)("its first frame")
    await frame(page)
    await in_thread(house.tell)("changed")
    content = (await frame(page))["content"]
    assert 'hx-target="#activity"' in content
    assert 'hx-target="#actions"' not in content


async def test_the_first_frame_of_a_page_is_whole_whatever_others_were_sent(
    house: House, cookie: str
) -> None:
    """What its browser was served may be older than what the others have: it is not known here."""
    early = await house.page(cookie)
    await in_thread(house.tell)("one")
    await frame(early)
    last = await in_thread(house.tell)("two")
    assert "two" in (await frame(early))["content"]
    late = await house.page(cookie, last)
    await until_it_rests()
    await in_thread(house.tell)("three")
    content = (await frame(late))["content"]
    assert "three" in content
    assert 'hx-target="#actions"' in content
    assert 'hx-target="#actions"' not in (await frame(early))["content"]


async def test_what_is_stored_while_a_newcomers_page_is_looked_at_reaches_it(
    house: House, cookie: str
) -> None:
    last = await in_thread(house.tell)("seen")
    house.pages.meanwhile = lambda: house.tell("stored meanwhile")
    page = await house.page(cookie, last)
    assert "stored meanwhile" in (await frame(page))["content"]


async def test_a_tailer_that_is_stopped_as_it_is_rung_ends(
    house: House, cookie: str, caplog: pytest.LogCaptureFixture
) -> None:
    others = asyncio.all_tasks()
    for steps in range(5):
        first, second = (Watcher(Audience("overview", True), "", 1, 0) for _ in range(2))
        house.feed.join(first)
        await until_it_rests()
        house.feed.join(second)
        for _ in range(steps):
            await asyncio.sleep(0)
        house.feed.leave(first)
        house.feed.leave(second)
        await happens(lambda: asyncio.all_tasks() <= others)
    assert caplog.records == []


@pytest.mark.long
async def test_fifty_sockets_cost_one_render_for_each_change_and_audience(
    house: House, cookie: str
) -> None:
    viewer = await house.cookie(await sync_to_async(house.person)("bob"))
    pages = [await house.page(cookie) for _ in range(25)]
    pages += [await house.page(viewer) for _ in range(25)]
    await in_thread(house.tell)("all are let in")
    for page in pages:
        await frame(page)
    house.pages.renders.clear()
    await in_thread(house.tell)("one change")
    for page in pages:
        await frame(page)
    assert sorted(house.pages.renders) == [("overview", False), ("overview", True)]


@pytest.mark.long
async def test_what_one_person_hides_is_pushed_to_them_alone_and_back_by_time(
    house: House, cookie: str
) -> None:
    ada = await User.objects.aget(username="ada")
    bea = await sync_to_async(house.person)("bea", superuser=True)
    mine, theirs = await house.page(cookie), await house.page(await house.cookie(bea))
    house.pages.hidden[ada.pk] = (Hidden("need", "facts"),)
    await in_thread(house.tell)("something was snoozed")
    assert "1 hidden" in (await frame(mine))["content"]
    assert "hidden" not in (await frame(theirs))["content"]
    house.pages.hidden.clear()
    house.pages.untold = ("later", "")  # nothing is told, and time has passed
    content = (await frame(mine))["content"]
    assert ("hidden" in content, 'hx-target="#actions"' in content) == (False, True)


async def test_fifty_pages_that_come_back_cost_one_render(house: House, cookie: str) -> None:
    await in_thread(house.tell)("while they were away")
    ada = await User.objects.aget(username="ada")
    pages = [Watcher(Audience("overview", True), cookie, ada.pk, 0) for _ in range(50)]
    for page in pages:
        house.feed.join(page)
    for page in pages:
        assert "while they were away" in json.loads(await page.frame())["content"]
        house.feed.leave(page)
    assert house.pages.renders == [("overview", True)]


async def test_nobody_watching_a_page_means_it_is_not_rendered(house: House, cookie: str) -> None:
    page = await house.page(cookie, topic="run:1")
    await happens(lambda: house.pages.renders)
    house.pages.renders.clear()
    await in_thread(house.tell)("elsewhere", "run:2")
    assert await page.receive_nothing(0.4)
    assert house.pages.renders == []


async def test_a_step_waits_for_what_comes_behind_it_and_for_nothing_else(
    house: House, cookie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = await house.page(cookie)
    await until_it_rests()
    monkeypatch.setattr(feed, "STEP_SECONDS", 10 * PATIENCE)
    rendered = len(house.pages.renders)
    await in_thread(house.tell)("branch made", kind=NoticeKind.RUN_STEP)
    await in_thread(DatagramBell(house.paths).timeline)()  # nothing is behind it yet
    await until_it_rests()
    assert len(house.pages.renders) == rendered
    await in_thread(house.tell)("agent started", kind=NoticeKind.RUN_STARTED)
    content = (await frame(page))["content"]
    assert ("branch made" in content, "agent started" in content) == (True, True)
    assert len(house.pages.renders) == rendered + 1
    # Somebody who comes does not wait for a step, nor does the page that is open meanwhile.
    await in_thread(house.tell)("set up", kind=NoticeKind.RUN_STEP)
    other = await house.page(cookie)
    for one in (page, other):
        await until("set up", one)
    monkeypatch.setattr(feed, "STEP_SECONDS", 0.01)
    await in_thread(house.tell)("alone", kind=NoticeKind.RUN_STEP)
    await until("alone", page)


async def test_a_few_rounds_follow_at_once_and_then_so_many_a_second() -> None:
    now = 0.0
    bucket = TokenBucket(lambda: now)
    assert [bucket.take() for _ in range(BURST + 1)] == [True] * BURST + [False]
    now += 1 / ROUNDS_A_SECOND
    assert (bucket.take(), bucket.take()) == (True, False)
    now += 3600
    assert [bucket.take() for _ in range(BURST + 1)] == [True] * BURST + [False]


@pytest.mark.long
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

    clock = asyncio.get_running_loop().time
    started = clock()
    writing = asyncio.ensure_future(in_thread(burst)())
    for page in pages:
        frames = await until("the last one", page)
        ids = [got["id"] for got in frames]
        contents = [got["content"] for got in frames if got["content"]]
        assert ids == sorted(set(ids))
        assert len(contents) == len(set(contents))
        assert len(frames) <= (clock() - started) / PACE_SECONDS + BURST + 2
        # What was on it already is only heard of.
        while not await page.receive_nothing(0.2):
            assert (await frame(page))["content"] == ""
    await writing


async def test_a_slow_socket_holds_one_page_and_not_a_queue(house: House, cookie: str) -> None:
    """The mailbox is filled while nobody takes anything out of it."""

    slow = Watcher(Audience("overview", True), "", 1, 0)
    for number in range(1000):
        slow.offer(number, {"activity": f"state {number}", "head": "same"})
    got = json.loads(await slow.frame())
    assert got == {"id": 999, "content": "state 999same"}


@pytest.mark.long
async def test_a_page_that_fails_to_render_is_tried_again(house: House, cookie: str) -> None:
    page = await house.page(cookie)
    await asyncio.sleep(0.2)
    house.pages.broken = 1
    await in_thread(house.tell)("shown in the end")
    assert "shown in the end" in (await frame(page))["content"]


async def test_the_last_socket_stops_the_tailer_and_tidies_its_file(
    house: House, cookie: str
) -> None:
    first, second = await house.page(cookie), await house.page(cookie)
    mine = house.paths.feed_socket(os.getpid())
    assert mine.stat().st_mode & 0o077 == 0
    await first.disconnect(timeout=PATIENCE)
    assert mine.exists()
    await second.disconnect(timeout=PATIENCE)
    assert not mine.exists()
    again = await house.page(cookie)
    await in_thread(house.tell)("after a rest")
    assert "after a rest" in (await frame(again))["content"]


@pytest.mark.long
async def test_the_feed_goes_on_when_its_socket_cannot_be_made(house: House, cookie: str) -> None:
    house.paths.feed.rmdir()
    page = await house.page(cookie)
    await asyncio.sleep(0.2)
    await in_thread(house.tell)("found by asking")
    assert "found by asking" in (await frame(page))["content"]
