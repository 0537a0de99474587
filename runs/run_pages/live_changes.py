"""What a run that works has changed by now: worked out once for all who look, while somebody does."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from runs.core.ports import Lab
from runs.lifecycle import observe
from runs.lifecycle.observe import Changes
from runs.models import Run

FRESH = timedelta(seconds=3)
# Seconds that a round of pushes waits for git; what it says later goes with the next.
PATIENCE, ROUND = 0.5, 4.0
MOST = 50


@dataclass(slots=True)
class _Kept:
    """What git said of one run, and when. The lock lets one ask and the others wait for its answer."""

    lab: Lab
    at: datetime | None = None
    changes: Changes = field(default_factory=Changes)
    mark: str = ""
    told: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)
    asking: Future[Changes] | None = None


class LiveChanges:
    """The changes of runs that somebody looks at, in this process. Thread-safe."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, _Kept] = OrderedDict()
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._slow_until = 0.0

    def of(self, lab: Lab, run: Run) -> Changes:
        """As they are, or were at most three seconds ago. Of a run that has ended they are asked."""
        if not run.is_active:
            return observe.changes(lab, run)
        kept = self._of(lab, run.pk)
        with kept.lock:
            now = lab.now()
            if kept.at is None or not timedelta(0) <= now - kept.at < FRESH:
                kept.changes = observe.changes(lab, run)
                kept.at, kept.mark = lab.now(), _mark(kept.changes)
            return kept.changes

    def look(self, lab: Lab, run: Run) -> str:
        """A mark of them, for whoever pushes: it waits for git a moment only, and never fails."""
        if not run.is_active:
            return ""
        kept = self._of(lab, run.pk)
        with self._lock:
            self._pool = self._pool or ThreadPoolExecutor(2, "changes")
            if kept.asking is None or kept.asking.done():
                kept.asking = self._pool.submit(self.of, lab, run)
        with suppress(Exception):
            now = time.monotonic()
            if now >= self._slow_until:  # else git let a round wait in vain, which is enough
                self._slow_until = now + ROUND
                kept.asking.result(PATIENCE)
                self._slow_until = 0.0
        kept.told = kept.mark
        return kept.told

    def known(self, lab: Lab, run: Run) -> str:
        """The mark that `look` told last: what was found since, the next look is to tell."""
        return self._of(lab, run.pk).told if run.is_active else ""

    def _of(self, lab: Lab, run: int) -> _Kept:
        with self._lock:
            kept = self._kept.get(run)
            if kept is None or kept.lab is not lab:
                kept = self._kept[run] = _Kept(lab)
            self._kept.move_to_end(run)
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)
            return kept


def _mark(changes: Changes) -> str:
    told = (changes.files, changes.commits, changes.patch, changes.error)
    return hashlib.sha256(repr(told).encode("utf-8", "replace")).hexdigest()[:16]


LIVE = LiveChanges()
