"""Pushes: one tailer per web process follows the timeline and fans out what it rendered.

The tailer alone reads, renders and hands out, one round after the other. A new watcher is let in
between two rounds, after what it missed was looked up, so nothing can fall between its replay
and the live frames. Renders are level-triggered: a frame shows how things are now.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from runs.web.feed_reader import Audience, Reader

LOGGED_OUT = 4401
GONE = 4404
SAFETY_SECONDS = 1.0
PACE_SECONDS = 0.05
RING_BYTES = 16

logger = logging.getLogger(__name__)


class Ended(Exception):
    """The watcher gets nothing more; its socket closes with this code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Watcher:
    """One socket's mailbox: the newest HTML of each region that it has not been sent yet.

    A slow socket makes regions overwrite each other here, so the box never grows beyond one page.
    """

    def __init__(self, audience: Audience, session: str, last: int | None) -> None:
        self.audience = audience
        self.session = session
        self.last = last
        self.wants_all = False
        self._regions: dict[str, str] = {}
        self._newest = 0
        self._code = 0
        self._filled = asyncio.Event()

    def offer(self, newest: int, regions: Mapping[str, str]) -> None:
        """Put regions into the box; `newest` is the timeline entry up to which they are true."""
        if regions:
            self._regions |= regions
            self._newest = newest
            self._filled.set()

    def end(self, code: int) -> None:
        """Tell the socket to close instead of waiting for more."""
        self._code = code
        self._filled.set()

    async def frame(self) -> str:
        """Wait for the next frame and empty the box. Raises Ended."""
        await self._filled.wait()
        if self._code:
            raise Ended(self._code)
        self._filled.clear()
        content, self._regions = "".join(self._regions.values()), {}
        return json.dumps({"id": self._newest, "content": content})


class Feed:
    """The watchers of this process. The first one starts the tailer, the last one stops it."""

    def __init__(self, reader: Callable[[], Reader], box: Callable[[], Path]) -> None:
        self._reader = reader
        self._box = box
        self._tail: Tail | None = None

    def join(self, watcher: Watcher) -> None:
        if self._tail is None:
            self._tail = Tail(self._reader(), self._box())
        self._tail.join(watcher)

    def leave(self, watcher: Watcher) -> None:
        if self._tail is not None and self._tail.leave(watcher):
            self._tail.stop()
            self._tail = None


class Tail:
    """One life of the tailer, from the first watcher to the last."""

    def __init__(self, reader: Reader, box: Path) -> None:
        self._reader = reader
        self._cursor: int | None = None
        self._joining: dict[Watcher, None] = {}
        self._members: dict[Watcher, None] = {}
        self._due: set[Audience] = set()
        self._changed: set[Audience] = set()
        self._sent: dict[Audience, dict[str, str]] = {}
        self._rung = asyncio.Event()
        self._ear = Ear(box, self._rung.set)
        self._task = asyncio.create_task(self._follow())

    def join(self, watcher: Watcher) -> None:
        """Let a watcher in at the next round."""
        self._joining[watcher] = None
        self._rung.set()

    def leave(self, watcher: Watcher) -> bool:
        """Forget a watcher; True when it was the last."""
        self._joining.pop(watcher, None)
        self._members.pop(watcher, None)
        return not self._joining and not self._members

    def stop(self) -> None:
        self._ear.close()
        self._task.cancel()
        self._reader.close()

    async def _follow(self) -> None:
        while True:
            self._rung.clear()
            try:
                has_published = await self._round()
            except Exception:
                logger.exception("a round of the feed failed and is tried again")
                has_published = False
            if has_published:
                await asyncio.sleep(PACE_SECONDS)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._rung.wait(), SAFETY_SECONDS)

    async def _round(self) -> bool:
        """Read what is new, let newcomers in, publish what changed. True when it published."""
        cursor = await self._advance()
        await self._welcome(cursor)
        if not self._due:
            return False
        await self._turn_out_ended_sessions()
        for audience in list(self._due):
            await self._publish(audience, cursor)
        watched = {watcher.audience for watcher in self._members}
        self._due &= watched
        self._changed &= watched
        self._sent = {
            audience: sent for audience, sent in self._sent.items() if audience in watched
        }
        return True

    async def _advance(self) -> int:
        """Move the cursor to the end of the timeline and note which audiences are concerned."""
        if self._cursor is None:
            self._cursor = await self._reader.newest()
            return self._cursor
        is_all = False
        while not is_all:
            news = await self._reader.news(self._cursor)
            self._cursor, is_all = news.newest, news.is_all
            self._changed |= {w.audience for w in self._members if w.audience.topic in news.topics}
        self._due |= self._changed
        return self._cursor

    async def _welcome(self, cursor: int) -> None:
        """Turn newcomers into members, and have rendered what they need."""
        missed: dict[int, frozenset[str] | None] = {}
        for watcher in list(self._joining):
            topics = await self._missed(watcher.last, cursor, missed)
            watcher.wants_all = topics is None or watcher.audience.topic in topics
            if watcher.wants_all or watcher.audience not in self._sent:
                self._due.add(watcher.audience)
            # It may have left while the timeline was read.
            if watcher in self._joining:
                del self._joining[watcher]
                self._members[watcher] = None

    async def _missed(
        self, last: int | None, cursor: int, known: dict[int, frozenset[str] | None]
    ) -> frozenset[str] | None:
        """The topics that something happened to since `last`; None when it could be any."""
        if last is None or last > cursor:
            return None
        if last == cursor:
            return frozenset()
        if last not in known:
            news = await self._reader.news(last)
            known[last] = news.topics if news.is_all else None
        return known[last]

    async def _turn_out_ended_sessions(self) -> None:
        """Nobody who has logged out gets another frame."""
        watchers = [watcher for watcher in self._members if watcher.audience in self._due]
        alive = await self._reader.live_sessions({watcher.session for watcher in watchers})
        for watcher in watchers:
            if watcher.session not in alive:
                self._members.pop(watcher, None)
                watcher.end(LOGGED_OUT)

    async def _publish(self, audience: Audience, cursor: int) -> None:
        """Render once and put into every box what differs from what this audience has.

        When that fails the audience stays due, and the next round tries again.
        """
        try:
            regions = await self._reader.regions(audience)
        except Exception:
            logger.exception("a page was not rendered", extra={"topic": audience.topic})
            return
        self._due.discard(audience)
        watchers = [watcher for watcher in self._members if watcher.audience == audience]
        if regions is None:
            for watcher in watchers:
                self._members.pop(watcher, None)
                watcher.end(GONE)
            return
        # An audience that is rendered for the first time has the page as its browser loaded it.
        known = self._sent.get(audience, {} if audience in self._changed else regions)
        news = {name: html for name, html in regions.items() if known.get(name) != html}
        self._sent[audience] = regions
        self._changed.discard(audience)
        for watcher in watchers:
            watcher.offer(cursor, regions if watcher.wants_all else news)
            watcher.wants_all = False


class Ear:
    """This process's datagram socket; calls back for every ring. Without it the poll remains."""

    def __init__(self, path: Path, on_ring: Callable[[], None]) -> None:
        self._path = path
        self._on_ring = on_ring
        self._loop = asyncio.get_running_loop()
        self._box = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._box.setblocking(False)
        try:
            path.unlink(missing_ok=True)
            self._box.bind(str(path))
            path.chmod(0o600)
        except OSError:
            logger.exception("the feed cannot be rung and asks every second instead")
        self._loop.add_reader(self._box.fileno(), self._hear)

    def close(self) -> None:
        self._loop.remove_reader(self._box.fileno())
        self._box.close()
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _hear(self) -> None:
        with suppress(BlockingIOError):
            while True:
                self._box.recv(RING_BYTES)
                self._on_ring()
