"""Why is this not running? The launch pass's own rule, asked about one project's facts."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from runs.accounts import logins
from runs.core.ports import Lab, SeamError
from runs.dispatch import facts, reserve, rules
from runs.dispatch.eligibility import Queue
from runs.dispatch.rules import Waiting
from runs.forges import cadence, cadence_rules, quota
from runs.models import Notice, Project, Settings
from trackers.account import awaited

logger = logging.getLogger(__name__)

Explained = tuple[Queue, Sequence[Waiting]]
ASKED_EVERY = timedelta(minutes=1)


@dataclass
class _Kept:
    """What was explained of one project last, by which process, and what it holds good for."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    lab: Lab | None = None
    good_for: object = None
    told: Explained | None = None


class Shared:
    """What open pages show of a tracker that has to be waited for: asked once for all of them.

    Thread-safe. A local tracker is asked each time.
    """

    def __init__(self) -> None:
        self._kept: dict[int, _Kept] = defaultdict(_Kept)
        self._lock = threading.Lock()

    def explain(self, lab: Lab, project: Project) -> Explained:
        """For a page that refreshes by itself: asked again once a minute, or after what a person did
        in the project. It counts as polling, and comes every five minutes when there was much of it.
        """
        if not cadence.is_remote(lab, project):
            return explain(lab, project, is_awaited=False)
        with self._lock:
            kept = self._kept[project.pk]
        with kept.lock:
            good_for = _good_for(lab, project)
            if kept.told is None or kept.lab is not lab or kept.good_for != good_for:
                kept.told = explain(lab, project, is_awaited=False)
                kept.lab, kept.good_for = lab, good_for
            return kept.told


def _good_for(lab: Lab, project: Project) -> object:
    """Changes when the tracker may be asked again for pages that are open."""
    is_over = project.pk in quota.over_budget(lab, [project])
    every = cadence_rules.SLOWED_TO if is_over else ASKED_EVERY
    acts = Notice.objects.filter(project=project).exclude(by="").order_by("-pk")
    last = acts.values_list("pk", flat=True).first()
    return every, lab.now().timestamp() // every.total_seconds(), last


def explain(lab: Lab, project: Project, *, is_awaited: bool = True) -> Explained:
    """The facts, and for each ready issue that nobody works on what it fails and would start it.

    Asks tracker, git, tmux and the agent now, each with its time limit; starts nothing.
    `is_awaited`: a person or a program waits for the answer, so that it is no polling.
    """
    settings = Settings.current()
    with awaited() if is_awaited else contextlib.nullcontext():
        (queue,) = facts.gather(lab, settings, [project], of_all=True)
    agent = project.agent or settings.agent
    if agent is not None:
        queue = replace(queue, is_logged_in=logins.known(lab, agent))
    try:
        sightings = lab.sessions.look()
    except SeamError as error:
        logger.info("sessions were not seen", extra={"error": str(error)})
        sightings = None
    return queue, rules.explain(queue, reserve.room(lab, settings, sightings))


for_pages = Shared().explain
