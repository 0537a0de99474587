"""What the feed asks of the database and of the pages, in one thread with its own connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import ParamSpec, Protocol, TypeVar

from django.contrib.sessions.models import Session
from django.db import connection, connections

from runs.core.states import NoticeKind
from runs.models import Notice
from runs.overview.hiding_rules import Hidden
from runs.timeline import queries as timeline
from runs.web import access

Mark = tuple[str, str]  # of the page's rows, and of what changes with each look of the worker
P = ParamSpec("P")
T = TypeVar("T")

AT_ONCE = 500
# Pages that each person may see otherwise, since they hide what they like there.
PERSONAL = frozenset({"overview", "needs"})
MARKS_SECONDS = 5.0  # how often is asked what pages show that no entry tells
# Kinds of entries behind which another one comes within a moment, as a rule.
STEPS = frozenset({NoticeKind.RUN_STEP, NoticeKind.PULL_OPENED})


class Pages(Protocol):
    """What the feed needs of `runs.web.fragments`."""

    def topics_of(self, notice: Notice, /) -> set[str]:
        """The pages that a notice concerns."""

    def pushed(
        self, topic: str, can_act: bool, hidden: tuple[Hidden, ...], /
    ) -> tuple[Mapping[str, str], Mark] | None:
        """The HTML of a page's live regions by element id, and their mark; None when it is gone."""

    def hidden_of(self, person: int, /) -> tuple[Hidden, ...]:
        """What a person has hidden of what needs them."""

    def mark(self, topic: str, /) -> Mark:
        """Changes with what the page shows and no entry tells."""

    def partials(self, regions: Mapping[str, str], /) -> str:
        """The regions as htmx takes them."""


@dataclass(frozen=True, slots=True)
class Audience:
    """Everyone who gets the same HTML: watchers of one topic with the same rights.

    `person`: whose page it is, where each may have another one.
    """

    topic: str
    can_act: bool
    person: int = 0


@dataclass(frozen=True, slots=True)
class News:
    """What a stretch of the timeline concerns. Unless `is_all` there may be more than was read.

    `is_waiting`: more is there already, but cannot be told before older transactions have ended.
    `is_about_people`: somebody may have other rights now. `told_at`: when the first of it was told.
    `may_wait`: all of it are steps.
    """

    newest: int
    topics: frozenset[str]
    is_all: bool
    is_waiting: bool = False
    is_about_people: bool = False
    told_at: datetime | None = None
    may_wait: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """How things stand with those who watch: sessions that live, people who may look or act."""

    sessions: frozenset[str]
    looking: frozenset[int]
    acting: frozenset[int]


class Reader:
    """Reads and renders for one tailer, one thing after the other."""

    def __init__(
        self, pages: Pages, now: Callable[[], datetime], marks_seconds: float = MARKS_SECONDS
    ) -> None:
        self.marks_seconds = marks_seconds
        self.now = now
        self._pages = pages
        self._thread = ThreadPoolExecutor(1, "feed")
        self._read: tuple[int, int] | None = None
        self._made: dict[object, tuple[dict[str, str], Mark] | None] = {}

    @property
    def is_on_server(self) -> bool:
        """Whether programs of other machines may write too."""
        return connection.vendor != "sqlite"

    async def newest(self) -> int:
        """The id of the last timeline entry, 0 when there is none."""
        return await self.ask(timeline.newest)

    async def news(self, after: int) -> News:
        """What the next entries after an id concern, at most `AT_ONCE` of them."""
        return await self.ask(self._news, after)

    async def regions(self, audience: Audience) -> tuple[dict[str, str], Mark] | None:
        """Each region of the audience's page, ready to send, and its mark; None when it is gone."""
        return await self.ask(self._regions, audience)

    def forget(self) -> None:
        """Render anew what is asked for next: until then people who hide the same share a rendering."""
        self._made.clear()

    async def marks(self, topics: Collection[str]) -> dict[str, Mark]:
        """How the pages stand beside what the timeline tells."""
        return await self.ask(lambda: {topic: self._pages.mark(topic) for topic in topics})

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
        highest = timeline.highest()
        if self._read == (after, highest):
            return News(after, frozenset(), is_all=True)
        found = timeline.read(after, AT_ONCE)
        notices = found.entries
        topics = {topic for notice in notices for topic in self._pages.topics_of(notice)}
        newest = notices[-1].pk if notices else after
        is_all = len(notices) < AT_ONCE
        self._read = (newest, highest) if is_all and not found.is_waiting else None
        people = any(notice.kind == NoticeKind.PERSON_CHANGED for notice in notices)
        told_at = notices[0].at if notices else None
        may_wait = all(notice.kind in STEPS for notice in notices)
        return News(newest, frozenset(topics), is_all, found.is_waiting, people, told_at, may_wait)

    def _regions(self, audience: Audience) -> tuple[dict[str, str], Mark] | None:
        hidden = self._pages.hidden_of(audience.person) if audience.person else ()
        key = (audience.topic, audience.can_act, hidden)
        if key not in self._made:
            self._made[key] = self._render(audience, hidden)
        return self._made[key]

    def _render(
        self, audience: Audience, hidden: tuple[Hidden, ...]
    ) -> tuple[dict[str, str], Mark] | None:
        found = self._pages.pushed(audience.topic, audience.can_act, hidden)
        if found is None:
            return None
        regions, mark = found
        return {name: self._pages.partials({name: html}) for name, html in regions.items()}, mark

    def _standing(self, sessions: Collection[str], people: Collection[int]) -> Standing:
        alive = Session.objects.filter(session_key__in=sessions, expire_date__gt=self.now())
        keys = frozenset(alive.values_list("session_key", flat=True))
        return Standing(keys, *access.who_may(people))
