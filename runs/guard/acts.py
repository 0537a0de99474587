"""Puts right what changed in the repository that runs share, and tells it of the runs that worked."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import BooleanField, Exists, ExpressionWrapper, Q, QuerySet

from runs.core.database import prepared_with_keys
from runs.core.ports import Lab, SeamError
from runs.core.states import NoticeKind
from runs.guard import rules
from runs.guard.rules import Repair
from runs.models import Attempt, Fixer, Notice, Project, Run, Validation
from runs.timeline import announce

logger = logging.getLogger(__name__)


def check_shared(
    lab: Lab,
    project: Project,
    *,
    has_workers: bool | None = None,
    starting: Run | Validation | None = None,
) -> bool:
    """Look at the shared repository of a project, and put right what runs have changed there.

    Before a run's program starts, while runs work and after one has ended, or a check or a fixer.
    Where none works a person may have changed it, and it is accepted; `has_workers` says so where
    it is known.
    `starting`: a run or validation whose programs have not begun, so that it has changed nothing.
    Safe to repeat; what fails is tried again at the next look. Returns whether nothing had to be put
    right, as far as that could be told.
    """
    if has_workers is None:
        has_workers = any(_who_works(lab, project, starting))
    try:
        names = _put_right(lab, project.repo(lab.paths), is_anybody_working=has_workers)
    except SeamError as error:
        what = {"project": project.slug, "error": str(error)}
        logger.warning("the shared repository was not put right", extra=what)
        return False
    if not names:
        return True
    with transaction.atomic():
        worked = list(_workers(lab.host, project.pk, _key_of(starting, Run)))
        for run in worked:
            text = rules.describe_repair(names, len(worked) - 1)
            announce.tell(lab, NoticeKind.RUN_WARNED, text, run=run)
        if not worked:
            _, has_checks = _who_works(lab, project, starting)
            describe = rules.describe_repair_beside_checks if has_checks else rules.describe_found
            text = describe(names)
            announce.tell(lab, NoticeKind.PROJECT_WARNED, text, project=project)
    return False


def _who_works(lab: Lab, project: Project, starting: Run | Validation | None) -> tuple[bool, bool]:
    """Return whether agents of runs, and whether commands, reviewers or fixers may have changed it.

    One query, which each start waits for.
    """
    keys = project.pk, _key_of(starting, Run), _key_of(starting, Validation)
    row = _working(lab.host).first(keys=keys)
    return (False, False) if row is None else (bool(row[0]), bool(row[1]))


def _key_of(starting: Run | Validation | None, model: type[Run | Validation]) -> int:
    """Return the key of what is being started where it is one of these; no row has key 0."""
    return starting.pk if isinstance(starting, model) else 0


@prepared_with_keys(3)
def _working(
    _now: datetime, project: int, run: int, validation: int, host: str
) -> QuerySet[Project, Any]:
    open_ones = {"project": project, "host": host, "settled_at": None}
    has_checks = (
        Exists(Attempt.objects.filter(**open_ones))
        | Exists(Validation.objects.filter(**open_ones).exclude(pk=validation))
        | Exists(Fixer.objects.filter(**open_ones))
    )
    rows = Project.objects.filter(pk=project).annotate(
        has_workers=Exists(_workers(host, project, run)),
        has_checks=ExpressionWrapper(has_checks, output_field=BooleanField()),
    )
    return rows.values_list("has_workers", "has_checks")


def _workers(host: str, project: int, starting: int) -> QuerySet[Run]:
    """Return the runs on a host, without one, whose agents may have changed it.

    The program of a run that is being started may have begun already, which its row does not say.
    """
    rows = Run.objects.filter(project=project, host=host, settled_at=None).exclude(pk=starting)
    return rows.filter(Q(started_at__isnull=False) | ~Q(launcher="")).select_related("project")


def watch(lab: Lab, runs: Sequence[Run]) -> None:
    """Look at what runs that work could change: the repositories that they share, and their own."""
    for project in {run.project for run in runs}:
        check_shared(lab, project, has_workers=True)
    for run in runs:
        check_own(lab, run)


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
    if found.unread and accepted is None:
        return None
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
