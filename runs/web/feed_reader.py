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
from django.db.models import Max

from runs.models import Notice

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
    """What a stretch of the timeline concerns. `is_all`: there may be more than was read."""

    newest: int
    topics: frozenset[str]
    is_all: bool


class Reader:
    """Reads and renders for one tailer, one thing after the other."""

    def __init__(self, pages: Pages, now: Callable[[], datetime]) -> None:
        self._pages = pages
        self._now = now
        self._thread = ThreadPoolExecutor(1, "feed")

    async def newest(self) -> int:
        """The id of the last timeline entry, 0 when there is none."""
        return await self._ask(_newest)

    async def news(self, after: int) -> News:
        """What the next entries after an id concern, at most `AT_ONCE` of them."""
        return await self._ask(self._news, after)

    async def regions(self, audience: Audience) -> dict[str, str] | None:
        """Each region of the audience's page, ready to send; None when the page is gone."""
        return await self._ask(self._regions, audience)

    async def live_sessions(self, keys: Collection[str]) -> frozenset[str]:
        """Those of the login sessions that were neither ended nor are expired."""
        return await self._ask(self._live_sessions, keys)

    def close(self) -> None:
        """Let go of thread and connection, once what was asked last is answered."""
        self._thread.submit(connections.close_all)
        self._thread.shutdown(wait=False)

    async def _ask(self, question: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        def answer() -> T:
            try:
                return question(*args, **kwargs)
            except Exception:
                # A connection that failed once may fail for ever; the next question opens a new one.
                connections.close_all()
                raise

        return await asyncio.get_running_loop().run_in_executor(self._thread, answer)

    def _news(self, after: int) -> News:
        notices = list(Notice.objects.filter(pk__gt=after).order_by("pk")[:AT_ONCE])
        topics = {topic for notice in notices for topic in self._pages.topics_of(notice)}
        newest = notices[-1].pk if notices else after
        return News(newest, frozenset(topics), is_all=len(notices) < AT_ONCE)

    def _regions(self, audience: Audience) -> dict[str, str] | None:
        regions = self._pages.regions(audience.topic, audience.can_act)
        if regions is None:
            return None
        return {name: self._pages.partials({name: html}) for name, html in regions.items()}

    def _live_sessions(self, keys: Collection[str]) -> frozenset[str]:
        alive = Session.objects.filter(session_key__in=keys, expire_date__gt=self._now())
        return frozenset(alive.values_list("session_key", flat=True))


def _newest() -> int:
    return int(Notice.objects.aggregate(newest=Max("pk"))["newest"] or 0)
