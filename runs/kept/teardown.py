"""The guarded teardown: removes what is clean, deletes what is merged, keeps everything else.

For whatever is no run's own business: sessions that people drive, orphans, merged work.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from runs.core.ports import Lab, SeamError, UnremovableError
from runs.kept import rescue
from runs.kept.teardown_rules import Guarded, MergeFacts, guarded, is_merged
from runs.models import Project, Rescue
from runs.setup import after_run
from runs.setup.commands import REMOVAL

logger = logging.getLogger(__name__)

SUBMODULES = (
    "the worktree was kept, since a submodule in it has changes or commits that were not pushed. "
    "Push them, or discard the worktree once it is not needed any more"
)


@dataclass(frozen=True, slots=True)
class TornDown:
    """What a teardown did, what it could not do, and what it kept before."""

    removed_worktree: bool = False
    deleted_branch: bool = False
    warning: str = ""
    rescue: Rescue | None = None
    is_stuck: bool = False  # a person alone can remove it, as the warning says


@dataclass(frozen=True, slots=True)
class Piece:
    """One branch and its worktree, if it has one, with what the product remembers of it.

    `stays`: the branch is not deleted even when it was merged. `claims_nothing`: it is known that
    its issue needs it no longer.
    """

    branch: str
    path: Path | None = None
    fork_point: str = ""
    merged_heads: frozenset[str] = frozenset()
    stays: bool = False
    claims_nothing: bool = False


def tear_down(
    lab: Lab,
    project: Project,
    piece: Piece,
    *,
    why: str,
    by: str = "",
    spare: bool = False,
    is_owned: Callable[[], bool] = lambda: False,
) -> TornDown:
    """Apply the guarded rule to one branch and its worktree. Never raises.

    Whoever calls makes sure that nothing live owns it, or has `is_owned` asked while nobody else
    can remove it. With `spare` an unmerged piece keeps its worktree too, as the runtime sweep
    wants it. A worktree before whose removal the project runs commands goes at a later call.
    """
    repo = project.repo(lab.paths)
    try:
        with lab.repos.hold(repo):
            tip = lab.repos.tip(repo, f"refs/heads/{piece.branch}")
            if tip is None or is_owned():
                return TornDown()
            return _tear_down(lab, project, repo, piece, tip, why, by, spare)
    except SeamError as error:
        logger.warning("nothing was torn down", extra={"branch": piece.branch, "error": str(error)})
        return TornDown(warning=f"nothing was removed: {error}")


def is_ours(lab: Lab, path: Path) -> bool:
    """Whether a worktree lies where the product makes them; others are somebody's own."""
    return path.parent == lab.paths.worktrees and not path.is_symlink()


def unsaved(lab: Lab, repo: Path, path: Path, branch: str) -> bool | None:
    """Whether a worktree holds anything that its branch does not: changes, or commits elsewhere.

    One that is the repository's no more counts so, since git would speak of another repository.
    None when git could not say.
    """
    if not path.exists():
        return False
    try:
        if not lab.repos.standing(repo, path).is_linked:
            return True
        return lab.repos.is_dirty(path) or not lab.repos.is_kept_by(repo, path, branch)
    except SeamError as error:
        logger.warning("worktree state is unknown", extra={"path": str(path), "error": str(error)})
        return None


def _tear_down(
    lab: Lab, project: Project, repo: Path, piece: Piece, tip: str, why: str, by: str, spare: bool
) -> TornDown:
    path = piece.path
    if path is not None and not is_ours(lab, path):
        return TornDown(warning=f"{path} is not a worktree that labsite made, so it was left alone")
    held = _is_ancestor(lab, project, repo, tip)
    is_claim = _is_claim(project, piece.branch) and not piece.claims_nothing
    facts = MergeFacts(tip, piece.fork_point, held, is_claim, piece.merged_heads)
    merged = False if piece.stays else is_merged(facts)
    is_there = path is not None and path.exists()
    rule = guarded(is_there, unsaved(lab, repo, path, piece.branch) if path else False, merged)
    if not (rule.remove_worktree or rule.delete_branch) or (spare and not rule.delete_branch):
        return TornDown(warning=rule.warning)
    if rule.remove_worktree and path is not None:
        if lab.repos.holds_submodule_work(repo, path):
            return TornDown(warning=SUBMODULES)
        if not _are_commands_over(lab, project, piece.branch):
            return TornDown()
    tip_stays = not rule.delete_branch or held is True
    kept = rescue.keep(lab, project, piece.branch, tip, path, why=why, by=by, tip_stays=tip_stays)
    return _carry_out(lab, repo, piece, tip, rule, kept)


def _are_commands_over(lab: Lab, project: Project, branch: str) -> bool:
    """Ask once for what the project runs before a worktree goes; whether nothing is to wait for.

    While nobody else can start in the worktree, and only when it does go.
    """
    run = after_run.find_unprepared(lab, project, branch)
    return run is None or after_run.are_over(lab, run, REMOVAL)


def _carry_out(
    lab: Lab, repo: Path, piece: Piece, tip: str, rule: Guarded, kept: Rescue | None
) -> TornDown:
    """First the worktree; one that could not be removed keeps its branch too."""
    is_removed = False
    if rule.remove_worktree and piece.path is not None:
        try:
            lab.repos.remove_worktree(repo, piece.path)
            is_removed = True
        except SeamError as error:
            text = f"the worktree could not be removed, so it and its branch were kept: {error}"
            is_stuck = isinstance(error, UnremovableError)
            return TornDown(warning=text, rescue=kept, is_stuck=is_stuck)
    if not rule.delete_branch:
        return TornDown(is_removed, False, rule.warning, kept)
    try:
        lab.repos.delete_branch(repo, piece.branch, tip)
    except SeamError as error:
        text = f"the branch {piece.branch} could not be deleted and was kept: {error}"
        return TornDown(is_removed, False, text, kept)
    return TornDown(is_removed, True, rule.warning, kept)


def _is_ancestor(lab: Lab, project: Project, repo: Path, tip: str) -> bool | None:
    try:
        return not lab.repos.is_ahead(repo, tip, project.default_branch)
    except SeamError as error:
        logger.warning("merge state is unknown", extra={"commit": tip, "error": str(error)})
        return None


def _is_claim(project: Project, branch: str) -> bool:
    return project.claimed_key(branch) is not None
