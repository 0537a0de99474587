"""Why is this not running? The launch pass's own rule, asked about one project's facts now."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from runs.domain import launching
from runs.domain.launching import Waiting
from runs.domain.ports import Lab, SeamError
from runs.domain.waiting import Queue
from runs.models import Project, Settings
from runs.work import facts, logins, taking
from trackers.account import awaited

logger = logging.getLogger(__name__)


def explain(lab: Lab, project: Project) -> tuple[Queue, Sequence[Waiting]]:
    """The facts, and for each ready issue that nobody works on what it fails and would start it.

    Asks tracker, git, tmux and the agent now, each with its time limit; starts nothing.
    """
    settings = Settings.current()
    with awaited():
        (queue,) = facts.gather(lab, settings, [project], of_all=True)
    agent = project.agent or settings.agent
    if agent is not None:
        queue = replace(queue, is_logged_in=logins.known(lab, agent))
    try:
        sightings = lab.sessions.look()
    except SeamError as error:
        logger.info("sessions were not seen", extra={"error": str(error)})
        sightings = None
    return queue, launching.explain(queue, taking.room(lab, settings, sightings))
