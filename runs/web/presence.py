"""Tells the worker that somebody has a page open: so that a tracker is asked, and no push is sent.

An open socket says so once a minute, a page without one whenever it asks what is new.
"""

from __future__ import annotations

import logging
import threading
from datetime import datetime, timedelta

from django.db import DatabaseError
from django.db.models import Exists, OuterRef, Q

from runs import wiring
from runs.core.ports import Lab
from runs.core.states import RUN_PAGES
from runs.forges import tracker_cache
from runs.models import Run, WatchSession
from runs.notices import pushes

logger = logging.getLogger(__name__)

NOTED_EVERY = timedelta(seconds=40)
MOST = 1000


class Presence:
    """When each page was noted last by this process. Thread-safe."""

    def __init__(self) -> None:
        self._noted: dict[str, datetime] = {}
        self._lab: Lab | None = None
        self._lock = threading.Lock()

    def note(self, topic: str) -> None:
        """A page with this topic is open; one statement at most every 40 seconds. Never raises."""
        about, lab = _projects(topic), wiring.made()
        if about is None or lab is None:
            return
        now = lab.now()
        with self._lock:
            if lab is not self._lab:
                self._noted, self._lab = {}, lab
            before = self._noted.get(topic)
            if before is not None and before <= now < before + NOTED_EVERY:
                return
            if len(self._noted) >= MOST:
                self._noted.clear()
            self._noted[topic] = now
        try:
            tracker_cache.watch(lab, about)
        except DatabaseError as error:
            logger.warning("an open page was not noted", extra={"error": str(error)})


def _projects(topic: str) -> Q | None:
    """The project that a page is about; None for pages about none or all of them."""
    kind, _, ident = topic.partition(":")
    if not ident.isdecimal():
        return None
    rows = Run.objects if kind in RUN_PAGES else WatchSession.objects
    if kind == "watch" or kind in RUN_PAGES:
        return Q(Exists(rows.filter(pk=int(ident), project=OuterRef("pk"))))
    return Q(pk=int(ident)) if kind in ("project", "issues", "pulls") else None


note = Presence().note


def look(user_id: int, topic: str) -> None:
    """A person has a page before them: no push is sent of what it shows. Never raises."""
    lab = wiring.made()
    if lab is None:
        return
    try:
        pushes.look(lab, user_id, topic)
    except DatabaseError as error:
        logger.warning("who looks was not noted", extra={"error": str(error)})


def look_away(user_id: int, topic: str) -> None:
    """The page was closed or is hidden now. Never raises."""
    try:
        pushes.look_away(user_id, topic)
    except DatabaseError as error:
        logger.warning("who looked away was not noted", extra={"error": str(error)})
