"""A quick look at what live agents print and commit, for the people who watch. Decides nothing."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from django.db import transaction
from django.db.models import F

from runs.domain.ports import Lab, SeamError
from runs.domain.states import NoticeKind
from runs.models import Host, Run
from runs.work import announce, looking

logger = logging.getLogger(__name__)


def glance(lab: Lab, runs: Sequence[Run]) -> int:
    """Store the last line and new commits of each working run; how many rows changed.

    One tmux command for all screens; a branch costs one small file read unless it moved.
    """
    try:
        screens = lab.sessions.screens([run.session for run in runs])
    except SeamError as error:
        logger.info("screens were not read", extra={"error": str(error)})
        screens = {}
    lines = {run: looking.last_line(screens.get(run.session, "")) for run in runs}
    changed = _keep_lines(
        lab, {run: line for run, line in lines.items() if line and line != run.last_line}
    )
    changed += sum([_keep_commit(lab, run) for run in runs])
    if changed:
        Host.objects.filter(name=lab.host).update(looked=F("looked") + 1)
    return changed


def _keep_lines(lab: Lab, lines: Mapping[Run, str]) -> int:
    """Plain updates in one transaction: faster here than one bulk update (stack.md section 3)."""
    if not lines:
        return 0
    with transaction.atomic():
        return sum([_keep_line(lab, run, line) for run, line in lines.items()])


def _keep_line(lab: Lab, run: Run, line: str) -> bool:
    is_first = run.last_output_at is None
    if not Run.objects.working().filter(pk=run.pk).update(last_line=line, last_output_at=lab.now()):
        return False
    run.last_line = line
    if is_first:
        announce.tell(lab, NoticeKind.RUN_OUTPUT, "first output", run=run)
    return True


def _keep_commit(lab: Lab, run: Run) -> bool:
    if not run.worktree or not run.fork_point:
        return False
    head = lab.repos.glimpse(run.project.repo(lab.paths), run.branch)
    if head is None or head in (run.head, run.fork_point):
        return False
    path = Path(run.worktree)
    try:
        progress = lab.repos.progress(path, run.fork_point)
        subject = lab.repos.subject(path, progress.head)
    except SeamError as error:
        logger.info("progress was not read", extra={"run_id": run.pk, "error": str(error)})
        return False
    with transaction.atomic():
        if (
            not Run.objects.working()
            .filter(pk=run.pk)
            .update(head=progress.head, commits=progress.commits)
        ):
            return False
        announce.tell(lab, NoticeKind.RUN_STEP, f"commit {progress.head[:7]} {subject}", run=run)
    return True
