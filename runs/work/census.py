"""Counts what is parked, so that no page has to ask git for a number (LAB-116).

The rows follow git: they are taken anew when a run is settled, at each act on parked work and at
each sweep. What is shown of a branch is asked of git when a person opens the list.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from django.db import transaction
from django.db.models import F

from runs.domain import naming
from runs.domain.keeping import Branch
from runs.domain.ports import Lab, SeamError
from runs.models import Host, Parked, Project
from runs.work import closed, owners
from runs.work.owners import Remembered

logger = logging.getLogger(__name__)

COUNTED_AT_ONCE = 100


def parked(lab: Lab, project: Project) -> list[Branch]:
    """Every managed branch that nothing live owns, newest first. Raises SeamError (LAB-122).

    Branches are listed before the owners are read: whatever makes one has a row before it.
    """
    found = lab.repos.branches(project.repo(lab.paths), naming.MANAGED)
    taken = owners.owned(project)
    return [one for one in found if naming.is_managed(one.name) and one.name not in taken]


def worktree_of(lab: Lab, branch: Branch, known: Mapping[str, Remembered]) -> Path | None:
    """Where a branch's worktree lies: where git says, or where its run worked on another commit."""
    if branch.worktree:
        return Path(branch.worktree)
    kept = known.get(branch.name)
    if kept is None or not kept.worktree or not Path(kept.worktree).is_dir():
        return None
    return Path(kept.worktree)


def _folder(lab: Lab, path: Path | None) -> str:
    """Its name among the worktrees; empty for one that somebody made elsewhere."""
    return path.name if path is not None and path.parent == lab.paths.worktrees else ""


def take(lab: Lab, project: Project) -> int | None:
    """Count anew; the number, or None when git could not say: then the old numbers stay."""
    try:
        found = parked(lab, project)
    except SeamError as error:
        logger.warning(
            "parked work was not counted", extra={"project": project.slug, "error": str(error)}
        )
        return None
    known = owners.remembered(project) if found else {}
    trees = {one.name: _folder(lab, worktree_of(lab, one, known)) for one in found}
    counts = _unpushed(lab, project, found)
    with transaction.atomic():
        Parked.objects.filter(project=project).exclude(branch__in=trees).delete()
        Parked.objects.bulk_create(
            [_row(project, one, trees[one.name], *counts[one.name]) for one in found],
            update_conflicts=True,
            unique_fields=["project", "branch"],
            update_fields=["tip", "worktree", "committed_at", "unpushed", "compared"],
            batch_size=200,
        )
        rows = Project.objects.filter(pk=project.pk).exclude(parked=len(found))
        if rows.update(parked=len(found)) and (project.parked or found):
            Host.objects.filter(name=lab.host).update(looked=F("looked") + 1)
    project.parked = len(found)
    closed.keep_only(lab, project, trees)
    return len(found)


def _row(project: Project, one: Branch, tree: str, unpushed: int | None, compared: str) -> Parked:
    return Parked(
        project=project,
        branch=one.name,
        tip=one.tip,
        worktree=tree,
        committed_at=one.at,
        unpushed=unpushed,
        compared=compared,
    )


def _unpushed(
    lab: Lab, project: Project, found: Sequence[Branch]
) -> Mapping[str, tuple[int | None, str]]:
    """Commits that origin lacks; asked only where a tip moved, and not of too many at once."""
    if not found:
        return {}
    repo, base = project.repo(lab.paths), project.default_branch
    rows = Parked.objects.filter(project=project)
    stored = {
        branch: (count, pair)
        for branch, count, pair in rows.values_list("branch", "unpushed", "compared")
    }
    try:
        tips = lab.repos.pushed_tips(repo, base, naming.MANAGED)
    except SeamError as error:
        logger.info("pushed tips were not read", extra={"error": str(error)})
        return {one.name: stored.get(one.name, (None, "")) for one in found}
    counts: dict[str, tuple[int | None, str]] = {}
    left = COUNTED_AT_ONCE
    for one in found:
        pair = f"{one.tip} {tips.get(one.name) or tips.get(base, '')}"
        before = stored.get(one.name, (None, ""))
        if before[1] == pair and before[0] is not None:
            counts[one.name] = before
        elif left:
            left -= 1
            counts[one.name] = (_count(lab, repo, one.name, base), pair)
        else:
            counts[one.name] = before
    return counts


def _count(lab: Lab, repo: Path, branch: str, base: str) -> int | None:
    try:
        return lab.repos.unpushed(repo, branch, base)
    except SeamError as error:
        logger.info(
            "unpushed commits were not counted", extra={"branch": branch, "error": str(error)}
        )
        return None
