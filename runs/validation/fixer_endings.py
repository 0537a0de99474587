"""How fixers end: what they leave, and where an accepted fix is told to be."""

from __future__ import annotations

from pathlib import Path

from django.db import transaction

from runs.core.ports import Lab, SeamError, UnremovableError
from runs.core.states import NoticeKind
from runs.guard import acts as guard
from runs.kept import counts, teardown
from runs.models import Fixer
from runs.projects import git_credentials
from runs.timeline import announce
from runs.validation.rules import FixEnd


def end(
    lab: Lab, fixer: Fixer, how: FixEnd, head: str = "", commits: int = 0, why: str = ""
) -> bool:
    """Write the end down if nobody has; whoever wins settles it."""
    with transaction.atomic():
        won = Fixer.objects.filter(pk=fixer.pk, end="").update(
            end=how, ended_at=lab.now(), head=head, commits=commits, warning=why, launcher=""
        )
        if won:
            text = f"fixer {fixer.number} {how.value}{f': {why}' if why else ''}"
            _tell(lab, fixer, NoticeKind.VALIDATION_STEP, text)
    fixer.refresh_from_db()
    return bool(won)


def settle(lab: Lab, fixer: Fixer) -> bool:
    """End the session of an ended fixer and remove its worktree if nothing is lost with it.

    Its branch stays, unless nothing was ever put on it. False when it has to be tried again.
    """
    if fixer.settled_at is not None:
        return True
    try:
        lab.sessions.kill(fixer.session, fixer.mark)
        guard.check_shared(lab, fixer.project, has_workers=True)
        warning = _tidy(lab, fixer)
    except UnremovableError as error:
        warning = str(error)
    except SeamError as error:
        text = f"The fixer could not be tidied up yet: {error}. It is tried again."
        Fixer.objects.filter(pk=fixer.pk).update(warning=text)
        return False
    lab.sessions.forget(lab.paths.fixer_folder(fixer.pk))
    rows = Fixer.objects.filter(pk=fixer.pk, settled_at=None)
    if rows.update(settled_at=lab.now(), warning=warning or fixer.warning):
        fixer.refresh_from_db()
        counts.take(lab, fixer.project)
    return True


def _tidy(lab: Lab, fixer: Fixer) -> str:
    if not fixer.worktree:
        return ""
    repo, path = fixer.project.repo(lab.paths), Path(fixer.worktree)
    if path.exists() and lab.repos.holds_submodule_work(repo, path):
        return teardown.SUBMODULES
    if lab.repos.roll_back(repo, path, fixer.branch, fixer.fork_point):
        return ""
    if not path.exists():
        return ""
    if teardown.unsaved(lab, repo, path, fixer.branch) is not False:
        return "its worktree holds changes that were not committed, and was kept"
    lab.repos.remove_worktree(repo, path)
    return ""


def publish(lab: Lab, fixer: Fixer) -> None:
    """Push an accepted fix where that is possible, and say where it is. Safe to repeat."""
    project = fixer.project
    repo = project.repo(lab.paths)
    where = f"branch {fixer.branch}"
    try:
        token = git_credentials.of_git(lab, project)
        lab.repos.push_commit(repo, fixer.branch, fixer.head, "", token, project.url)
        is_pushed, where = True, f"{where} of origin"
    except SeamError as error:
        is_pushed, where = False, f"{where} of labsite's own repository, not pushed: {error}"
    with transaction.atomic():
        rows = Fixer.objects.filter(pk=fixer.pk, told_at=None)
        if rows.update(told_at=lab.now(), is_pushed=is_pushed):
            text = (
                f"validation {fixer.validation.number} passes with a fix, which no pull request "
                f"holds: {where} ({fixer.head[:7]}). Merge it with the rest"
            )
            _tell(lab, fixer, NoticeKind.VALIDATION_FIXED, text)
    fixer.refresh_from_db()


def _tell(lab: Lab, fixer: Fixer, kind: NoticeKind, text: str) -> None:
    watch = fixer.validation.session_id
    announce.tell(lab, kind, text, project=fixer.project, watch_id=watch)
