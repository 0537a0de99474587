"""What the feed asks of the database and of the pages, in one thread with its own connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import ParamSpec, Protocol, TypeVar

from django.contrib.sessions.models import Session
from django.db import connections

from runs.core.states import NoticeKind
from runs.models import Notice
from runs.timeline import queries as timeline
from runs.web import access

P = ParamSpec("P")
T = TypeVar("T")

AT_ONCE = 500


class Pages(Protocol):
    """What the feed needs of `runs.web.fragments`."""

    def topics_of(self, notice: Notice, /) -> set[str]:
        """The pages that a notice concerns."""

    def regions(self, topic: str, can_act: bool, /) -> Mapping[str, str] | None:
        """The HTML of a page's live regions by element id; None when the page is gone."""

    def partials(self, regions: Mapping[str, str], /) -> str:
        """The regions as htmx takes them."""


@dataclass(frozen=True, slots=True)
class Audience:
    """Everyone who gets the same HTML: watchers of one topic with the same rights."""

    topic: str
    can_act: bool


@dataclass(frozen=True, slots=True)
class News:
    """What a stretch of the timeline concerns. Unless `is_all` there may be more than was read.

    `is_waiting`: more is there already, but cannot be told before older transactions have ended.
    `is_about_people`: somebody may have other rights now.
    """

    newest: int
    topics: frozenset[str]
    is_all: bool
    is_waiting: bool = False
    is_about_people: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """How things stand with those who watch: sessions that live, people who may look or act."""

    sessions: frozenset[str]
    looking: frozenset[int]
    acting: frozenset[int]


class Reader:
    """Reads and renders for one tailer, one thing after the other."""

    def __init__(self, pages: Pages, now: Callable[[], datetime]) -> None:
        self._pages = pages
        self._now = now
        self._thread = ThreadPoolExecutor(1, "feed")

    async def newest(self) -> int:
        """The id of the last timeline entry, 0 when there is none."""
        return await self.ask(timeline.newest)

    async def news(self, after: int) -> News:
        """What the next entries after an id concern, at most `AT_ONCE` of them."""
        return await self.ask(self._news, after)

    async def regions(self, audience: Audience) -> dict[str, str] | None:
        """Each region of the audience's page, ready to send; None when the page is gone."""
        return await self.ask(self._regions, audience)

    async def standing(self, sessions: Collection[str], people: Collection[int]) -> Standing:
        """Those of the sessions that were neither ended nor are expired, and who may what."""
        return await self.ask(self._standing, sessions, people)

    def close(self) -> None:
        """Let go of thread and connection, once what was asked last is answered."""
        self._thread.submit(connections.close_all)
        self._thread.shutdown(wait=False)

    async def ask(self, question: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The answer to any question that needs the database, from the one thread of the feed."""

        def answer() -> T:
            try:
                return question(*args, **kwargs)
            except Exception:
                # A connection that failed once may fail for ever; the next question opens a new one.
                connections.close_all()
                raise

        return await asyncio.get_running_loop().run_in_executor(self._thread, answer)

    def _news(self, after: int) -> News:
        found = timeline.read(after, AT_ONCE)
        notices = found.entries
        topics = {topic for notice in notices for topic in self._pages.topics_of(notice)}
        newest = notices[-1].pk if notices else after
        is_all = len(notices) < AT_ONCE
        people = any(notice.kind == NoticeKind.PERSON_CHANGED for notice in notices)
        return News(newest, frozenset(topics), is_all, found.is_waiting, people)

    def _regions(self, audience: Audience) -> dict[str, str] | None:
        regions = self._pages.regions(audience.topic, audience.can_act)
        if regions is None:
            return None
        return {name: self._pages.partials({name: html}) for name, html in regions.items()}

    def _standing(self, sessions: Collection[str], people: Collection[int]) -> Standing:
        alive = Session.objects.filter(session_key__in=sessions, expire_date__gt=self._now())
        keys = frozenset(alive.values_list("session_key", flat=True))
        return Standing(keys, *access.who_may(people))
