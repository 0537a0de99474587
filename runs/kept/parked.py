"""What is shown of parked work when a person opens the list: asked of git now, a page at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from runs.core.history_ports import Change
from runs.core.kept_ports import Branch
from runs.core.ports import Lab, SeamError
from runs.kept import counts, discard, owners
from runs.kept.owners import Remembered
from runs.models import Parked, Project, Rescue
from trackers.account import awaited
from trackers.base import Ability, Pull, TrackerError, best_pull

logger = logging.getLogger(__name__)

T = TypeVar("T")

PAGE = 20
PATCH_BYTES = 200_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One parked branch. None: that one fact could not be read.

    `is_remote`: only origin has it, where it keeps runs of its issue from starting. `is_left`: the
    branch is gone, and its worktree is still there, on the branch `stands_on` if on any. `is_linked`: the worktree is still
    the repository's; an agent may have made it a repository of its own.
    """

    branch: str
    key: str
    at: datetime
    path: str
    is_dirty: bool | None
    ahead: int | None
    unpushed: int | None
    bytes: int | None
    outcome: str
    run_id: int | None
    pull: Pull | None
    is_remote: bool = False
    is_left: bool = False
    stands_on: str = ""
    is_linked: bool = True
    is_discarding: bool = False
    is_accepted: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of parked branches; with `error` nothing could be listed, which is not "none"."""

    entries: Sequence[Entry] = ()
    total: int = 0
    page: int = 1
    error: str = ""
    pulls_error: str = ""

    @property
    def has_more(self) -> bool:
        return self.page * PAGE < self.total

    @property
    def last(self) -> int:
        return max(1, -(-self.total // PAGE))


@dataclass(frozen=True, slots=True)
class Held:
    """What a rescue holds: what was not committed, and what its branch has beside the default one."""

    uncommitted: Sequence[Change] = ()
    committed: Sequence[Change] = ()
    patch: str = ""
    error: str = ""


def listing(lab: Lab, project: Project, page: int = 1, *, is_alone: bool = True) -> Listing:
    """One page of what is parked, newest first. Never raises for what git or a tracker does.

    Not `is_alone`: another host shows what origin alone has, and asks for pull requests.
    """
    known = owners.remembered(project)
    try:
        found = counts.everything(lab, project, known)
    except SeamError as error:
        return Listing(error=str(error))
    remote = _only_on_origin(lab, project, found) if is_alone else []
    found = [*found, *remote]
    page = min(max(1, page), max(1, -(-len(found) // PAGE)))
    some = found[(page - 1) * PAGE : page * PAGE]
    measured = Parked.objects.filter(
        project=project, host=lab.host, branch__in=[one.name for one in some]
    )
    sizes = dict(measured.values_list("branch", "bytes"))
    wanted = [one.name for one in some] if is_alone else []
    pulls, pulls_error = pulls_of(lab, project, wanted)
    accepted = discard.accepted_among(project, [one.name for one in some])
    discards = {row.branch for row in discard.of(project) if not row.error}
    entries = [
        replace(
            _entry(lab, project, one, known, sizes, pulls),
            is_remote=one in remote,
            is_discarding=one.name in discards,
            is_accepted=one.name in accepted,
        )
        for one in some
    ]
    return Listing(entries, len(found), page, pulls_error=pulls_error)


def _only_on_origin(lab: Lab, project: Project, here: Sequence[Branch]) -> list[Branch]:
    """Branches of open issues that origin alone has, with commits that its base has not.

    They are nobody's parked work here, but no run of their issue can push while they are there.
    """
    repo, base = project.repo(lab.paths), project.default_branch
    try:
        tips = lab.repos.pushed_tips(repo, base, project.claim_prefixes)
        names = set(tips) - {base, *(one.name for one in here)}
        names -= owners.owned(project) if names else set()
        keys = {name: project.claimed_key(name) for name in sorted(names)}
        wanted = _still_open(lab, project, [key for key in keys.values() if key])
        found = []
        for name in [name for name, key in keys.items() if key in wanted][:PAGE]:
            made = lab.repos.commits(repo, f"refs/remotes/origin/{base}", tips[name], 1)
            found += [Branch(name, tips[name], made[0].at)] if made else []
    except SeamError as error:
        logger.info("branches of origin were not read", extra={"error": str(error)})
        return []
    return found


def _still_open(lab: Lab, project: Project, keys: Sequence[str]) -> frozenset[str]:
    """Those of these issues that are open; none where the tracker does not say."""
    tracker = lab.tracker_for(project.tracker) if project.tracker else None
    if tracker is None or not keys:
        return frozenset()
    root = project.tracker_root
    try:
        with awaited():
            issues = tracker.still_open({root: keys}).get(root)
    except TrackerError as error:
        logger.info("issues were not read", extra={"error": str(error)})
        return frozenset()
    return frozenset(issue.key for issue in issues or ())


def held(lab: Lab, rescue: Rescue) -> Held:
    """What a rescue holds, as its files; an error when git could not say."""
    project = rescue.project
    repo = project.repo(lab.paths)
    try:
        open_ends = (repo, rescue.head, rescue.commit)
        uncommitted = lab.repos.changes(*open_ends) if rescue.is_dirty else []
        patch = lab.repos.patch(repo, rescue.head, PATCH_BYTES, rescue.commit)
        base = lab.repos.upstream(repo, project.default_branch)
        return Held(uncommitted, lab.repos.changes(repo, base, rescue.head), patch)
    except SeamError as error:
        return Held(error=str(error))


def _entry(
    lab: Lab,
    project: Project,
    one: Branch,
    known: Mapping[str, Remembered],
    sizes: Mapping[str, int | None],
    pulls: Sequence[Pull],
) -> Entry:
    repo, base = project.repo(lab.paths), project.default_branch
    path = counts.worktree_of(lab, one, known)
    kept = known.get(one.name, Remembered())
    pull = best_pull(pulls, one.name)
    standing = _maybe(lambda: lab.repos.standing(repo, path)) if path else None
    is_linked = standing is not None and standing.is_linked
    return Entry(
        branch=one.name,
        key=project.claimed_key(one.name) or "",
        at=one.at,
        path=str(path or ""),
        is_dirty=_maybe(lambda: lab.repos.is_dirty(path)) if path and is_linked else None,
        ahead=_maybe(lambda: _ahead(lab, repo, base, one, path if is_linked else None)),
        unpushed=_maybe(lambda: lab.repos.unpushed(repo, one.name, base)) if one.tip else None,
        bytes=sizes.get(one.name),
        outcome=kept.outcome,
        run_id=kept.run_id,
        pull=pull,
        is_left=not one.tip,
        stands_on=standing.branch if standing is not None else "",
        is_linked=is_linked or path is None,
    )


def _ahead(lab: Lab, repo: Path, base: str, one: Branch, path: Path | None) -> int | None:
    """Commits of a branch that the base has not; those of its worktree where the branch is gone."""
    if one.tip:
        return lab.repos.ahead(repo, one.name, base)
    return lab.repos.progress(path, lab.repos.upstream(repo, base)).commits if path else None


def _maybe(ask: Callable[[], T]) -> T | None:
    """One fact, or None when it could not be read: the others are shown nevertheless."""
    try:
        return ask()
    except SeamError as error:
        logger.info("a parked branch was not read whole", extra={"error": str(error)})
        return None


def pulls_of(lab: Lab, project: Project, some: Sequence[str]) -> tuple[Sequence[Pull], str]:
    """The pull requests of a page of branches, in one call."""
    tracker = lab.tracker_for(project.tracker) if project.tracker else None
    if tracker is None or Ability.PULLS not in tracker.abilities or not some:
        return [], ""
    root = project.tracker_root
    try:
        with awaited():
            found = tracker.pulls({root: list(some)}).get(root)
    except TrackerError as error:
        return [], str(error)
    if found is not None:
        return found, ""
    return [], str(tracker.trouble(root) or "The tracker could not be read.")
