"""The live screen of a run over a WebSocket: rung by the session itself, and sent as changes.

tmux copies what the program prints into a pipe in the run's folder; its being written to wakes this
process. Nobody looks at a screen that nobody watches.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

from django.db import connections
from django.urls import URLPattern, re_path
from inotify_simple import INotify
from inotify_simple import flags as inotify_flags

from runs import wiring
from runs.models import Run
from runs.run_pages import live_screen
from runs.run_pages.live_screen import Shot
from runs.transcript import frames
from runs.web.feed import OTHER_RIGHTS, Ended, Feed, Watcher, heard
from runs.web.feed_reader import Audience
from runs.web.sockets import TopicSocket

logger = logging.getLogger(__name__)

SETTLE = 0.03
SAFETY = 5.0  # seconds until a screen is read again though nothing rang
UNRUNG = 1.0  # the same for a session that cannot ring
BYTES_A_SECOND, BURST = 650, 6_000  # so that a page that stays busy costs less than 60 kB a minute


class Pace:
    """How long to wait after so many bytes: at once as long as little is sent, then evenly."""

    def __init__(self, now: float) -> None:
        self._left, self._at = float(BURST), now

    def spent(self, size: int, now: float) -> float:
        """Seconds until more may be sent."""
        self._left = min(BURST, self._left + (now - self._at) * BYTES_A_SECOND) - size
        self._at = now
        return max(0.0, -self._left / BYTES_A_SECOND)


class Screens:
    """The screens that this process watches, each read once for all who look at it."""

    def __init__(self) -> None:
        self._sights: dict[int, Sight] = {}
        self._thread: ThreadPoolExecutor | None = None

    @asynccontextmanager
    async def watching(self, run_id: int) -> AsyncIterator[Sight]:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(2, "screens")
            loop = asyncio.get_running_loop()
            wiring.rung_by_screens(lambda run: loop.call_soon_threadsafe(self._ring, run))
        sight = self._sights.get(run_id)
        if sight is None:
            sight = self._sights[run_id] = Sight(run_id, self._thread)
        sight.viewers += 1
        try:
            yield sight
        finally:
            sight.viewers -= 1
            if not sight.viewers:
                del self._sights[run_id]
                sight.stop()

    def _ring(self, run_id: str) -> None:
        """A screen of another machine has changed; of none in particular: any may have."""
        for known, sight in self._sights.items():
            if run_id in ("", str(known)):
                sight.ring()


class Sight:
    """One screen, read whenever its session rings."""

    def __init__(self, run_id: int, thread: ThreadPoolExecutor) -> None:
        self.viewers = 0
        self.shot: Shot | None = None
        self._run_id, self._thread = run_id, thread
        self._news = asyncio.Condition()
        self._rung, self._wanted = asyncio.Event(), asyncio.Event()
        self._ear: INotify | None = None
        self._task = asyncio.create_task(self._follow())

    async def other_than(self, mark: str) -> Shot:
        """The screen, once it is another one than that of the mark."""
        while True:
            async with self._news:
                if self.shot is not None and self.shot.mark != mark:
                    return self.shot
                self._wanted.set()
                await self._news.wait()

    def ring(self) -> None:
        """Look again, as somebody else has seen a change."""
        self._rung.set()

    def stop(self) -> None:
        self._task.cancel()
        self._deaf()

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._listen()
            self._rung.clear()
            try:
                shot = await loop.run_in_executor(self._thread, _look, self._run_id)
            except Exception:
                logger.exception("a screen was not read", extra={"run_id": self._run_id})
                shot = None
            if shot is not None:
                async with self._news:
                    self.shot = shot
                    self._wanted.clear()
                    self._news.notify_all()
            await heard(self._rung, SAFETY if self._ear is not None else UNRUNG)
            # Whoever was sent much lately waits before it wants more.
            await self._wanted.wait()
            await asyncio.sleep(SETTLE)

    def _listen(self) -> None:
        """Be rung by what the session prints, if its pipe is there."""
        if self._ear is not None:
            return
        pipe = wiring.lab().paths.run_folder(self._run_id) / frames.PIPE
        if not Path(pipe).is_fifo():
            return
        ear = INotify(nonblocking=True)
        with contextlib.suppress(OSError):
            ear.add_watch(pipe, inotify_flags.MODIFY | inotify_flags.DELETE_SELF)
            asyncio.get_running_loop().add_reader(ear.fileno(), self._ring)
            self._ear = ear
            return
        ear.close()

    def _ring(self) -> None:
        gone = inotify_flags.DELETE_SELF | inotify_flags.IGNORED
        if self._ear is not None and any(one.mask & gone for one in self._ear.read(timeout=0)):
            self._deaf()
        self._rung.set()

    def _deaf(self) -> None:
        if self._ear is not None:
            asyncio.get_running_loop().remove_reader(self._ear.fileno())
            self._ear.close()
            self._ear = None


def _look(run_id: int) -> Shot | None:
    """The screen now; None where it could not be read."""
    try:
        run = Run.objects.filter(pk=run_id).select_related("project").first()
        if run is not None:
            wiring.watch_screen(run)
        return live_screen.shoot(run) if run is not None else Shot(is_live=False)
    except Exception:
        # A connection that failed once may fail for ever; the next look opens a new one.
        connections.close_all()
        raise


class ScreenSocket(TopicSocket):
    """One open terminal. It says which lines it has by their mark, then gets what changes."""

    def __init__(self, feed: Feed, screens: Screens) -> None:
        super().__init__(feed)
        self._screens = screens
        self._mark = ""

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """The first message names what the page has."""
        with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
            self._mark = str(json.loads(text_data or "")["mark"])[:16]
        await super().receive(text_data, bytes_data)

    async def _push(self, audience: Audience, last: int | None) -> Audience:
        """Send screens as long as the feed knows no better of the user's rights; those after that.

        What the feed has for the page itself goes by the page's own socket.
        """
        watcher = Watcher(audience, self._session_key, self._person, last)
        sending = asyncio.create_task(self._send_screens(int(audience.topic.partition(":")[2])))
        self._feed.join(watcher)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._check_seconds):
                    while True:
                        await watcher.frame()
        except Ended as ended:
            if ended.code != OTHER_RIGHTS:
                raise
        finally:
            self._feed.leave(watcher)
            sending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sending
        return await self._audience()

    async def _send_screens(self, run_id: int) -> None:
        pace = Pace(time.monotonic())
        lines = live_screen.had(self._mark)
        async with self._screens.watching(run_id) as sight:
            while True:
                shot = await sight.other_than(self._mark)
                told = json.dumps(live_screen.news(shot, lines), separators=(",", ":"))
                self._mark, lines = shot.mark, shot.lines
                live_screen.remembered(shot)
                await self.send(text_data=told)
                await asyncio.sleep(pace.spent(len(told), time.monotonic()))


def screen_urls(feed: Feed, screens: Screens) -> list[URLPattern]:
    """The address of a run's screen."""
    found = ScreenSocket.as_asgi(feed=feed, screens=screens)
    return [re_path(r"^ws/screen/(?P<topic>term:[0-9]{1,18})$", found)]
