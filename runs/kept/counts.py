"""Counts what is parked, so that no page has to ask git for a number.

The rows follow git: they are taken anew when a run is settled, at each act on parked work and at
each sweep. What is shown of a branch is asked of git when a person opens the list.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from django.db import transaction
from django.db.models import F

from runs.core import naming
from runs.core.kept_ports import Branch
from runs.core.ports import Lab, SeamError, Sighting
from runs.forges import tracker_cache
from runs.kept import owners
from runs.kept.owners import Remembered
from runs.models import Host, Parked, Project

logger = logging.getLogger(__name__)

COUNTED_AT_ONCE = 100


def parked(lab: Lab, project: Project) -> list[Branch]:
    """Every managed branch that nothing live owns, newest first. Raises SeamError.

    Branches are listed before the owners are read: whatever makes one has a row before it.
    """
    found = lab.repos.branches(project.repo(lab.paths), project.managed_prefixes)
    taken, used = owners.in_use(project)
    return [one for one in found if _is_parked(one, taken, used, project.managed_prefixes)]


def _is_parked(
    one: Branch, owned: Collection[str], used: Collection[str], prefixes: Collection[str]
) -> bool:
    """An agent may have made a branch of its own in its worktree: that is as live as the agent."""
    return (
        naming.is_managed(one.name, prefixes) and one.name not in owned and one.worktree not in used
    )


def is_live(
    lab: Lab, project: Project, branch: str, sightings: Mapping[str, Sighting] | None = None
) -> bool:
    """Whether something live owns a branch or has it checked out now. Raises SeamError."""
    found = lab.repos.branches(project.repo(lab.paths), (branch,))
    taken, used = owners.in_use(project, sightings)
    return branch in taken or any(one.name == branch and one.worktree in used for one in found)


def everything(lab: Lab, project: Project, known: Mapping[str, Remembered]) -> list[Branch]:
    """What `parked` lists, then worktree folders whose branch an agent renamed or deleted.

    These stand under the name of that branch, without a tip, newest first. A folder in which git
    sees another managed branch is listed with that one. Raises SeamError.
    """
    found = lab.repos.branches(project.repo(lab.paths), project.managed_prefixes)
    by_key = _folders(lab, project)  # between branches and owners: whatever makes one has a row
    owned, used = owners.in_use(project)
    taken = {*owned, *(one.name for one in found)}
    named = {*taken, *known}
    folders = {_own_branch(project, key, named): path for key, path in by_key.items()}
    folders |= {
        name: path
        for name, one in known.items()
        if one.worktree and (path := lab.paths.worktrees / one.worktree).is_dir()
    }
    places = {one.worktree for one in found if one.worktree}
    lost = [
        Branch(name, "", at, str(path))
        for name, path in folders.items()
        if name not in taken and str(path) not in places and (at := _changed(path)) is not None
    ]
    lost.sort(key=lambda one: (one.at, one.name), reverse=True)
    return [
        *(one for one in found if _is_parked(one, owned, used, project.managed_prefixes)),
        *lost,
    ]


def claims(lab: Lab, project: Project) -> tuple[Mapping[str, str], frozenset[str]]:
    """The issues that branches claim, with the branch, and those that only a worktree folder claims.

    Such a folder is in the way of the issue's next run. Raises SeamError.
    """
    by_branch = claim_branches(lab, project)
    return by_branch, frozenset(_folders(lab, project)) - by_branch.keys()


def claim_branches(lab: Lab, project: Project) -> Mapping[str, str]:
    """The issues that branches claim, with the branch. Raises SeamError."""
    repo, found = project.repo(lab.paths), dict[str, str]()
    for prefix in project.claim_prefixes:
        for key in lab.repos.claims(repo, project.keys, prefix):
            found.setdefault(key, naming.branch_for(key, prefix))
    return found


def _folders(lab: Lab, project: Project) -> dict[str, Path]:
    """Whatever lies where a run of some issue has its worktree, by the issue."""
    try:
        names = [one.name for one in lab.paths.worktrees.iterdir()]
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SeamError(f"{lab.paths.worktrees} cannot be read: {error.strerror}") from error
    keys = {name: naming.worktree_key(project.slug, name, project.keys) for name in names}
    return {key: lab.paths.worktrees / name for name, key in keys.items() if key}


def _own_branch(project: Project, key: str, known: Collection[str]) -> str:
    """The branch of an issue's worktree: the one of its names that is known, else a new run's."""
    names = project.branches_for(key)
    return next((one for one in names if one in known), names[0])


def _changed(path: Path) -> datetime | None:
    try:
        return datetime.fromtimestamp(path.lstat().st_mtime, UTC)
    except OSError:
        return None


def worktree_of(lab: Lab, branch: Branch, known: Mapping[str, Remembered]) -> Path | None:
    """Where a branch's worktree lies: where git says, or where its run worked on another commit."""
    if branch.worktree:
        return Path(branch.worktree)
    kept = known.get(branch.name)
    path = lab.paths.worktrees / kept.worktree if kept is not None and kept.worktree else None
    return path if path is not None and path.is_dir() else None


def _folder(lab: Lab, path: Path | None) -> str:
    """Its name among the worktrees; empty for one that somebody made elsewhere."""
    return path.name if path is not None and path.parent == lab.paths.worktrees else ""


def take(lab: Lab, project: Project) -> int | None:
    """Count anew; the number, or None when git could not say: then the old numbers stay."""
    known = owners.remembered(project)
    try:
        found = everything(lab, project, known)
    except SeamError as error:
        logger.warning(
            "parked work was not counted", extra={"project": project.slug, "error": str(error)}
        )
        return None
    trees = {one.name: _folder(lab, worktree_of(lab, one, known)) for one in found}
    counts = _unpushed(lab, project, found)
    with transaction.atomic():
        here = Parked.objects.filter(project=project, host=lab.host)
        here.exclude(branch__in=trees).delete()
        Parked.objects.bulk_create(
            [
                _row(lab, project, one, trees[one.name], *counts.get(one.name, (None, "")))
                for one in found
            ],
            update_conflicts=True,
            unique_fields=["project", "host", "branch"],
            update_fields=["tip", "worktree", "committed_at", "unpushed", "compared"],
            batch_size=200,
        )
        count = len(found) + _elsewhere(lab, project)
        rows = Project.objects.filter(pk=project.pk).exclude(parked=count)
        if rows.update(parked=count) and (project.parked or found):
            Host.objects.filter(name=lab.host).update(looked=F("looked") + 1)
    project.parked = count
    tracker_cache.keep_closed(lab, project, trees)
    return len(found)


def _elsewhere(lab: Lab, project: Project) -> int:
    """How many other hosts keep; none is asked where this host is the project's only one."""
    return Parked.objects.filter(project=project).exclude(host=lab.host).count()


def _row(
    lab: Lab, project: Project, one: Branch, tree: str, unpushed: int | None, compared: str
) -> Parked:
    return Parked(
        project=project,
        host=lab.host,
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
    found = [one for one in found if one.tip]
    rows = Parked.objects.filter(project=project, host=lab.host)
    stored = {
        branch: (count, pair)
        for branch, count, pair in rows.values_list("branch", "unpushed", "compared")
    }
    try:
        tips = lab.repos.pushed_tips(repo, base, project.managed_prefixes)
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
