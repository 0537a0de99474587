"""Discard: a person lets parked work go. It is rescued first, then worktree and branch go (LAB-123)."""

from __future__ import annotations

from pathlib import Path

from django.db import transaction

from runs.domain import naming
from runs.domain.ports import Lab
from runs.domain.states import NoticeKind
from runs.models import Project, Rescue
from runs.work import announce, census, guard, owners, pacing, rescue


class DiscardRefused(Exception):
    """Nothing was removed. `code` is for programs, the text for a person."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


def discard(lab: Lab, project: Project, branch: str, by: str) -> Rescue:
    """Remove a parked branch and its worktree, whatever their state; the rescue that holds both.

    The issue can be claimed again (LAB-78, LAB-125). Killed in the middle, the branch is still
    parked and the rescue is there; pressed again it goes on. Raises DiscardRefused, and SeamError
    when something could not be told, kept or removed.
    """
    if not naming.is_managed(branch):
        text = f"{branch} is not a branch that labsite manages, so nothing was removed."
        raise DiscardRefused("not_managed", text)
    repo = project.repo(lab.paths)
    with lab.repos.hold(repo):
        found = next((b for b in lab.repos.branches(repo, (branch,)) if b.name == branch), None)
        if found is None:
            raise DiscardRefused(
                "gone", f"There is no branch {branch} any more. Nothing was removed."
            )
        if branch in owners.owned(project, lab.sessions.look()):
            text = f"A live session works on {branch}, so nothing was removed. Stop it first."
            raise DiscardRefused("owned", text)
        path = census.worktree_of(lab, found, owners.remembered(project))
        _check_place(lab, path)
        why = f"discarded by {by}"
        kept = rescue.keep(lab, project, branch, found.tip, path, why=why, by=by, always=True)
        assert kept is not None  # noqa: S101  (always)
        if path is not None:
            lab.repos.force_remove(repo, path)
        lab.repos.delete_branch(repo, branch, found.tip)
    _tell(lab, project, branch, by)
    census.take(lab, project)
    return kept


def _check_place(lab: Lab, path: Path | None) -> None:
    if path is not None and not guard.is_ours(lab, path):
        text = (
            f"Its worktree {path} was not made by labsite, so nothing was removed. "
            "Remove that worktree yourself, then discard the branch."
        )
        raise DiscardRefused("not_ours", text)


def _tell(lab: Lab, project: Project, branch: str, by: str) -> None:
    key = naming.claimed_key(branch, project.keys) or ""
    free = f"; issue {key} can be claimed again" if key else ""
    with transaction.atomic():
        text = f"{branch} was discarded with its worktree{free}"
        announce.tell(lab, NoticeKind.WORK_DISCARDED, text, project=project, issue_key=key, by=by)
        pacing.wake(lab, project.pk)
        transaction.on_commit(lambda: lab.bell.look(project.slug), robust=True)
