"""Pushes: one tailer per web process follows the timeline and fans out what it rendered."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from runs.telemetry import tallies
from runs.web.feed_reader import Audience, Mark, News, Reader

SAFETY_SECONDS = 5.0
# Whoever writes to a server may be on another machine, whose rings do not come here.
SAFETY_ON_SERVER_SECONDS = 1.0
PACE_SECONDS = 0.05
# A step waits so long for what comes behind it: pages are rendered once, and not while that is made.
STEP_SECONDS = 0.06
# So many rounds may follow each other at once, and so many a second in the long run.
BURST, ROUNDS_A_SECOND = 4, 4
SOCKETS_A_PERSON = 100  # in this process; a page has one, that of a run two

_AGE = re.compile(r"(<time\b[^>]*>)[^<]*")

logger = logging.getLogger(__name__)


def shape(html: str) -> str:
    """What of a region is worth a frame: all but the ages in it, which each browser counts on itself."""
    return _AGE.sub(r"\1", html)


def patience(before: float, is_waiting: bool, safety: float = SAFETY_SECONDS) -> float:
    """Seconds until the timeline is read again unless somebody rings.

    Whoever ends the transaction that others wait for need not ring: it is asked again soon, and
    ever less often when it takes long.
    """
    if not is_waiting:
        return safety
    return PACE_SECONDS if before >= safety else min(safety / 2, before * 2)


async def heard(rung: asyncio.Event, seconds: float) -> None:
    """Wait until somebody rings or time is up.

    Not with `wait_for`, which in Python 3.11 goes on as if nothing had happened when it is
    cancelled in the moment of a ring: a stopped tailer lived on without its reader.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await rung.wait()


class TokenBucket:
    """Lets a few rounds follow each other at once, and some a second in the long run; others wait.

    Published as the token bucket of traffic shaping: RFC 2697, section 3.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._tokens, self._at = float(BURST), clock()

    def take(self) -> bool:
        """Return whether the next round may follow at once."""
        now = self._clock()
        self._tokens = min(BURST, self._tokens + (now - self._at) * ROUNDS_A_SECOND)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class Follower:
    """Somebody who reads the timeline alone and is rung whenever it has grown."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        self._rung.set()

    async def rest(self, seconds: float) -> None:
        """Wait until the timeline grows after this was last called, or time is up.

        Read after it returns, not before: what was told meanwhile has rung already.
        """
        await heard(self._rung, seconds)
        self._rung.clear()


class Feed:
    """The watchers and followers of this process. The first starts the tailer, the last stops it."""

    def __init__(
        self,
        reader: Callable[[], Reader],
        box: Callable[[], Path],
        elsewhere: Callable[[Callable[[], object]], None] | None = None,
    ) -> None:
        """`elsewhere` has a function called, in any thread, for each ring of another machine."""
        self._reader = reader
        self._box = box
        self._elsewhere = elsewhere
        self._tail: Tail | None = None
        self._sockets: Counter[int] = Counter()
        self.sockets_a_person = SOCKETS_A_PERSON

    @contextmanager
    def admitted(self, person: int) -> Iterator[None]:
        """Count a socket of a person as long as it is open. Raises Ended where there are too many."""
        if self._sockets[person] >= self.sockets_a_person:
            raise Ended(TOO_MANY)
        self._sockets[person] += 1
        try:
            yield
        finally:
            self._sockets[person] -= 1
            if not self._sockets[person]:
                del self._sockets[person]

    def join(self, watcher: Watcher) -> None:
        self._tailer().join(watcher)

    def leave(self, watcher: Watcher) -> None:
        if self._tail is not None:
            self._tail.leave(watcher)
            self._rest()

    def is_watched(self, person: int, topic: str) -> bool:
        """Whether somebody has a page open here."""
        return self._tail is not None and self._tail.has(person, topic)

    @contextmanager
    def following(self, follower: Follower) -> Iterator[Reader]:
        """Ring a follower as long as it is here, and lend it the tailer's thread for its questions."""
        tail = self._tailer()
        tail.followers.add(follower)
        try:
            yield tail.reader
        finally:
            tail.followers.discard(follower)
            self._rest()

    def _tailer(self) -> Tail:
        if self._tail is None:
            self._tail = Tail(self._reader(), self._box())
        if self._elsewhere is not None:
            loop = asyncio.get_running_loop()
            self._elsewhere(lambda: loop.call_soon_threadsafe(self._ring))
            self._elsewhere = None
        return self._tail

    def _ring(self) -> None:
        if self._tail is not None:
            self._tail.ring()

    def _rest(self) -> None:
        if self._tail is not None and self._tail.is_idle:
            self._tail.stop()
            self._tail = None


class Tail:
    """One life of the tailer, from the first watcher or follower to the last."""

    def __init__(self, reader: Reader, box: Path) -> None:
        self.reader = reader
        self.followers: set[Follower] = set()
        self._cursor: int | None = None
        self._joining: dict[Watcher, None] = {}
        self._members: dict[Watcher, None] = {}
        self._due: set[Audience] = set()
        self._held_until: float | None = None
        self._has_new_rights = False
        self._safety = SAFETY_ON_SERVER_SECONDS if reader.is_on_server else SAFETY_SECONDS
        self._patience = self._safety
        self._told_at: datetime | None = None
        self._sent: dict[Audience, dict[str, str]] = {}
        self._marks: dict[str, Mark] = {}
        self._marked = 0.0
        self._named: set[str] = set()
        self._rung = asyncio.Event()
        self._ear = Ear(box, self._rung.set)
        self._task = asyncio.create_task(self._follow())

    def ring(self) -> None:
        """Look at once whether the timeline has grown."""
        self._rung.set()

    def join(self, watcher: Watcher) -> None:
        """Let a watcher in at the next round."""
        self._joining[watcher] = None
        self._rung.set()

    def leave(self, watcher: Watcher) -> None:
        """Forget a watcher."""
        self._joining.pop(watcher, None)
        self._members.pop(watcher, None)

    def has(self, person: int, topic: str) -> bool:
        watchers = (*self._joining, *self._members)
        return any(one.person == person and one.audience.topic == topic for one in watchers)

    @property
    def is_idle(self) -> bool:
        """Whether nobody is left to tell."""
        return not (self._joining or self._members or self.followers)

    def stop(self) -> None:
        self._ear.close()
        self._task.cancel()
        self.reader.close()

    async def _follow(self) -> None:
        """Rounds, with a pause after each that published but for a few after a quiet time.

        What comes close behind a first event is often what people wait for, such as the end of a
        run behind its pull request.
        """
        bucket = TokenBucket(asyncio.get_running_loop().time)
        while True:
            self._rung.clear()
            try:
                has_published = await self._round()
            except Exception:
                logger.exception("a round of the feed failed and is tried again")
                has_published, self._held_until = False, None
            if has_published:
                await asyncio.sleep(0 if bucket.take() else PACE_SECONDS)
            is_held = self._held_until is not None
            await heard(self._rung, self._hold_left() if is_held else self._patience)

    async def _round(self) -> bool:
        """Read what is new, let newcomers in, publish what changed. True when it published."""
        before = self._cursor
        cursor = await self._advance()
        if cursor != before:
            for follower in self.followers:
                follower.ring()
        await self._welcome(cursor)
        if self._has_new_rights:
            await self._turn_out(list(self._members))
            self._has_new_rights = False
        if not self._due:  # what was told goes first
            await self._note_untold()
        if self._due and self._hold_left():
            return False
        self._held_until = None
        if not self._due:
            return False
        await self._publish_due(cursor)
        return True

    async def _publish_due(self, cursor: int) -> None:
        """Publish to each audience that something concerns, and forget those that nobody watches."""
        self.reader.forget()
        for audience in list(self._due):
            await self._publish(audience, cursor)
        if self._told_at is not None:
            tallies.PUSHES.observe((self.reader.now() - self._told_at).total_seconds())
            self._told_at = None
        watched = {watcher.audience for watcher in self._members}
        self._due &= watched
        self._sent = {
            audience: sent for audience, sent in self._sent.items() if audience in watched
        }
        self._named &= {audience.topic for audience in self._due}

    def _hold_left(self) -> float:
        """Return for how many seconds what is due still waits for what comes behind it."""
        if self._held_until is None:
            return 0.0
        return max(0.0, self._held_until - asyncio.get_running_loop().time())

    def _hold(self, news: News, had_due: bool) -> None:
        """Have pages wait that only steps concern, and none once anything else does."""
        if news.topics and not news.may_wait:
            self._held_until = None
        elif self._due and not had_due:
            self._held_until = asyncio.get_running_loop().time() + STEP_SECONDS

    async def _note_untold(self) -> None:
        """Note which pages show something by now that no entry told, such as when the worker looked.

        Here once for all who watch, so that no open page has to ask for it.
        """
        now = asyncio.get_running_loop().time()
        if now - self._marked < self.reader.marks_seconds or not self._members:
            return
        self._marked = now
        topics = {watcher.audience.topic for watcher in self._members}
        found = await self.reader.marks(topics)
        changed = {topic for topic, mark in found.items() if self._marks.get(topic, mark) != mark}
        self._named |= {topic for topic in changed if self._marks[topic][0] != found[topic][0]}
        self._marks = found
        self._due |= {one.audience for one in self._members if one.audience.topic in changed}

    async def _advance(self) -> int:
        """Move the cursor to the end of the timeline and note which audiences are concerned."""
        if self._cursor is None:
            self._cursor = await self.reader.newest()
            return self._cursor
        is_all = False
        while not is_all:
            news = await self.reader.news(self._cursor)
            self._cursor, is_all = news.newest, news.is_all
            self._has_new_rights |= news.is_about_people
            had_due = bool(self._due)
            for watcher in self._members:
                if watcher.audience.topic in news.topics:
                    self._told_at = self._told_at or news.told_at
                    watcher.has_missed = True
                    self._named.add(watcher.audience.topic)
                    self._due.add(watcher.audience)
            self._hold(news, had_due)
        self._patience = patience(self._patience, news.is_waiting, self._safety)
        return self._cursor

    async def _welcome(self, cursor: int) -> None:
        """Turn newcomers into members, have rendered what they missed, and see that a page is there."""
        missed: dict[int, frozenset[str] | None] = {}
        for watcher in list(self._joining):
            topics = await self._missed(watcher.last, cursor, missed)
            watcher.has_missed = topics is None or watcher.audience.topic in topics
            if watcher.has_missed or watcher.audience not in self._sent:
                self._due.add(watcher.audience)
                self._held_until = None
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
            news = await self.reader.news(last)
            known[last] = news.topics if news.is_all else None
        return known[last]

    async def _turn_out(self, watchers: list[Watcher]) -> None:
        """Those of them who have logged out, or have lost the right, get no other frame."""
        if not watchers:
            return
        standing = await self.reader.standing(
            {watcher.session for watcher in watchers}, {watcher.person for watcher in watchers}
        )
        for watcher in watchers:
            if watcher.session not in standing.sessions or watcher.person not in standing.looking:
                self._end(watcher, LOGGED_OUT)
            elif watcher.audience.can_act != (watcher.person in standing.acting):
                self._end(watcher, OTHER_RIGHTS)

    def _end(self, watcher: Watcher, code: int) -> None:
        self._members.pop(watcher, None)
        watcher.end(code)

    async def _publish(self, audience: Audience, cursor: int) -> None:
        """Render once and put into every box what differs from what this audience was sent.

        A watcher's first frame is the whole page, once something has happened: what its browser
        was served is not known here, and what was stored while this renders is not on it.
        When that fails the audience stays due, and the next round tries again. Who may have it
        is asked once it is rendered, since somebody may log out meanwhile.
        """
        try:
            found = await self.reader.regions(audience)
        except Exception:
            logger.exception("a page was not rendered", extra={"topic": audience.topic})
            return
        await self._turn_out(self._members_of(audience))
        self._due.discard(audience)
        watchers = self._members_of(audience)
        if found is None:
            for watcher in watchers:
                self._end(watcher, GONE)
            return
        regions, self._marks[audience.topic] = found
        is_named = audience.topic in self._named
        known = self._sent.get(audience, {})
        shapes = {name: shape(html) for name, html in regions.items()}
        news = {name: regions[name] for name, one in shapes.items() if known.get(name) != one}
        self._sent[audience] = shapes
        for watcher in watchers:
            # Who has the page as it was served is sent what has changed since it was rendered first.
            is_whole = watcher.has_missed and not watcher.has_page
            watcher.offer(cursor, regions if is_whole else news if known else {}, is_named)
            watcher.has_page |= watcher.has_missed

    def _members_of(self, audience: Audience) -> list[Watcher]:
        return [watcher for watcher in self._members if watcher.audience == audience]


LOGGED_OUT = 4401
GONE = 4404
TOO_MANY = 4429
REASONS = {TOO_MANY: "Too many pages are open. This one refreshes by itself."}
OTHER_RIGHTS = 0  # never sent: the socket asks again what it may be sent, and joins anew


class Ended(Exception):
    """The watcher gets nothing more; its socket closes with this code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Watcher:
    """One socket's mailbox: the newest HTML of each region that it has not been sent yet.

    A slow socket makes regions overwrite each other here, so the box never grows beyond one page.
    """

    def __init__(self, audience: Audience, session: str, person: int, last: int | None) -> None:
        self.audience = audience
        self.session = session
        self.person = person
        self.last = last
        self.has_missed = False
        self.has_page = False
        self._regions: dict[str, str] = {}
        self._newest = 0
        self._code: int | None = None
        self._filled = asyncio.Event()

    def offer(self, newest: int, regions: Mapping[str, str], is_named: bool = False) -> None:
        """Put regions into the box; `newest` is the timeline entry up to which they are true.

        `is_named`: the page hears that something happened to it, also where no region shows it:
        it may have parts of its own, which it asks for.
        """
        if regions or is_named:
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
        if self._code is not None:
            raise Ended(self._code)
        self._filled.clear()
        content, self._regions = "".join(self._regions.values()), {}
        return json.dumps({"id": self._newest, "content": content})


RING_BYTES = 16


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
            logger.exception("the feed cannot be rung and asks every few seconds instead")
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
