"""Puts right what changed in the repository that runs share, and tells it of the runs that worked."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from django.db import transaction

from runs.core.ports import Lab, SeamError
from runs.core.states import NoticeKind
from runs.guard import rules
from runs.guard.rules import Repair
from runs.models import Notice, Run
from runs.timeline import announce

logger = logging.getLogger(__name__)


def check_shared(lab: Lab, run: Run) -> None:
    """Look at the shared repository before a run's program starts, or after it has ended.

    What changed while runs of the project worked here is put back; otherwise a person may have
    changed it, and it is accepted. Safe to repeat; what fails is tried again by the next run.
    """
    repo = run.project.repo(lab.paths)
    worked = list(
        Run.objects.filter(
            project=run.project_id, host=lab.host, started_at__isnull=False, settled_at=None
        ).select_related("project")
    )
    try:
        names = _put_right(lab, repo, is_anybody_working=bool(worked))
    except SeamError as error:
        what = {"run_id": run.pk, "error": str(error)}
        logger.warning("the shared repository was not put right", extra=what)
        return
    if not names:
        return
    with transaction.atomic():
        for one in worked:
            text = rules.describe_repair(names, len(worked) - 1)
            announce.tell(lab, NoticeKind.RUN_WARNED, text, run=one)
        if not worked:
            announce.tell(lab, NoticeKind.RUN_WARNED, rules.describe_found(names), run=run)


def _put_right(lab: Lab, repo: Path, *, is_anybody_working: bool) -> Sequence[str]:
    """Return the names of what was put right, once however many look. Raises SeamError."""
    if (repair := _plan(lab, repo, is_anybody_working)) is None:
        return ()
    if repair.names:
        with lab.repos.hold(repo):
            repair = _plan(lab, repo, is_anybody_working)
            if repair is None:
                return ()
            lab.repos.mend_shared(repo, repair.files, repair.hooks)
    if lab.repos.accepted_shared(repo) != repair.state:
        lab.repos.accept_shared(repo, repair.state)
    return repair.names


def _plan(lab: Lab, repo: Path, is_anybody_working: bool) -> Repair | None:
    """Return what has to be put right; None where nobody can tell how the repository is."""
    found = lab.repos.read_shared(repo)
    if found is None:
        return None
    accepted = lab.repos.accepted_shared(repo) if is_anybody_working else None
    return rules.plan_repair(found, accepted)


def check_own(lab: Lab, run: Run) -> None:
    """Tell on a run, once, what it set in its own repository that keeps git from working there."""
    text = lab.repos.own_settings(Path(run.worktree)) if run.worktree else None
    names = rules.find_own_trouble(text) if text else ()
    if not names:
        return
    said = rules.describe_own_trouble(names)
    with transaction.atomic():
        told = Notice.objects.filter(run=run, kind=NoticeKind.RUN_WARNED, text=lab.mask(said))
        if not told.exists():
            announce.tell(lab, NoticeKind.RUN_WARNED, said, run=run)
