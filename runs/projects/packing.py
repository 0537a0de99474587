"""Packs the shared repository of a project once a day, since each commit taken over adds files."""

from __future__ import annotations

import logging

from runs.core.ports import Lab
from runs.core.states import RunState
from runs.models import Project, Run
from runs.projects import packing_rules

logger = logging.getLogger(__name__)


def pack(lab: Lab, project: Project) -> bool:
    """Pack it where that is due and no run is being started here, which reads all of it.

    Returns whether it was packed. Raises SeamError; then it is tried again a day later.
    """
    repo, now = project.repo(lab.paths), lab.now()
    if not packing_rules.is_time(now, lab.repos.packed_at(repo)):
        return False
    starting = Run.objects.filter(project=project, host=lab.host, state=RunState.STARTING)
    count = lab.repos.count_objects(repo)
    if not packing_rules.is_scattered(count.loose, count.packs) or starting.exists():
        return False
    if not packing_rules.has_room(count.size, count.free):
        logger.info("not packed: too little room", extra={"project": project.slug})
        return False
    return lab.repos.pack(repo, now)
