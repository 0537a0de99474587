"""Rings web processes of other machines when a screen that they watch has changed.

Whoever watches says so again and again; a session's pipe tells of each change, as it does at home.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from inotify_simple import INotify, flags

from runs.remote.link import Link
from runs.transcript import frames

WATCH, CHANGED = "watch", "screen"
WATCH_SECONDS = 15.0
SETTLE_MILLISECONDS = 30
TURN_MILLISECONDS = 1000
MOST = 500

logger = logging.getLogger(__name__)


class ScreenWatch:
    """Hears on one host which runs are watched elsewhere, and tells when their screens change."""

    def __init__(self, link: Link, folder_of: Callable[[int], Path]) -> None:
        self._link, self._folder_of = link, folder_of
        self._lock = threading.Lock()
        self._watched: dict[int, tuple[int, float]] = {}  # by watch: which run, until when

    def run(self, is_over: Callable[[], bool]) -> None:
        """Until it is over; ends at once where the system does not tell of changes."""
        try:
            with INotify() as events:
                hear = lambda: self._link.hear(  # noqa: E731
                    [WATCH], lambda text: self._watch(events, text), is_over
                )
                threading.Thread(target=hear, name="Watchers", daemon=True).start()
                while not is_over():
                    self._turn(events)
        except OSError as error:
            logger.warning("screens are asked for by time", extra={"error": str(error)})

    def _watch(self, events: INotify, text: str) -> None:
        """Somebody elsewhere looks at a run, perhaps one of this host."""
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            return
        pipe = self._folder_of(int(text)) / frames.PIPE
        if len(self._watched) >= MOST or not pipe.is_fifo():
            return
        with self._lock, contextlib.suppress(OSError):
            watch = events.add_watch(pipe, flags.MODIFY)
            self._watched[watch] = (int(text), time.monotonic() + WATCH_SECONDS)

    def _turn(self, events: INotify) -> None:
        """Tell what changed, and let go of what nobody watches any more."""
        found = events.read(timeout=TURN_MILLISECONDS, read_delay=SETTLE_MILLISECONDS)
        with self._lock:
            for event in found:
                if event.mask & flags.IGNORED:
                    self._watched.pop(event.wd, None)
            changed = {self._watched[one.wd][0] for one in found if one.wd in self._watched}
            now = time.monotonic()
            for watch in [w for w, (_, until) in self._watched.items() if until < now]:
                del self._watched[watch]
                with contextlib.suppress(OSError):
                    events.rm_watch(watch)
        for run_id in changed:
            self._link.tell(CHANGED, str(run_id))
