"""Removes the branches and clean worktrees of a project that were merged or that nobody owns."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from django.db import transaction

from runs.core import naming
from runs.core.kept_ports import Branch
from runs.core.ports import Lab, SeamError, Sighting
from runs.core.states import NoticeKind
from runs.forges import fan_out, tracker_cache
from runs.forges.fan_out import Silence
from runs.kept import counts, owners, teardown
from runs.kept.owners import Remembered
from runs.kept.teardown import Piece
from runs.kept.teardown_rules import MergeFacts, is_merged
from runs.models import Notice, Project
from runs.pulls import merging
from runs.timeline import announce
from trackers.base import Ability, PullState, TrackerError

logger = logging.getLogger(__name__)


def collect(lab: Lab, project: Project) -> list[str]:
    """Remove merged branches and their clean worktrees; everything else is left.

    What a fixer made is left too, until a person discards it.

    Raises SeamError when sessions or branches could not be listed; then nothing is removed.
    """
    found = [one for one in counts.parked(lab, project) if not naming.is_fix(one.name)]
    sightings = lab.sessions.look()
    known = owners.remembered(project)
    heads = _merged_heads(lab, project, found)
    held = lab.repos.merged(
        project.repo(lab.paths), project.default_branch, project.managed_prefixes
    )
    pieces = [_piece(lab, one, known, heads) for one in found]
    stay = _open_claims(lab, project, found, pieces, held)
    pieces = [replace(piece, stays=piece.branch in stay) for piece in pieces]
    gone = [
        piece.branch
        for one, piece in zip(found, pieces, strict=True)
        if is_merged(_facts(project, one, piece, held))
        and _tear_down(lab, project, piece, sightings, "it was merged", spare=True)
    ]
    if gone:
        with transaction.atomic():
            text = f"Deleted merged branch{'es' if len(gone) > 1 else ''} {', '.join(gone[:20])}"
            announce.tell(lab, NoticeKind.WORK_SWEPT, text, project=project)
        lab.bell.look(project.slug)
    return gone


def reconcile(
    lab: Lab, project: Project, sightings: Mapping[str, Sighting], keep: Callable[[], None]
) -> None:
    merging.notice_merged(lab, project)  # before a merged branch goes, which claims its issue
    found = [one for one in counts.parked(lab, project) if not naming.is_fix(one.name)]
    known, restored = owners.remembered(project), owners.restored(project)
    try:
        held = lab.repos.merged(
            project.repo(lab.paths), project.default_branch, project.managed_prefixes
        )
    except SeamError as error:
        logger.warning("merged branches are unknown", extra={"error": str(error)})
        held = frozenset()
    pieces = [_piece(lab, one, known, {}) for one in found]
    stay = _open_claims(lab, project, found, pieces, held)
    changed: list[str] = []
    for one, piece in zip(found, pieces, strict=True):
        piece = replace(piece, stays=piece.branch in stay)
        merged = is_merged(_facts(project, one, piece, held))
        stays = one.name in restored or (piece.branch in known and known[one.name].keeps_worktree)
        if merged or (piece.path is not None and not stays):
            keep()
            if _tear_down(lab, project, piece, sightings, "labsite started", spare=stays):
                changed.append(one.name)
    if changed:
        with transaction.atomic():
            text = f"tidied at the start, clean or merged: {', '.join(changed[:20])}"
            announce.tell(lab, NoticeKind.WORK_SWEPT, text, project=project)
    counts.take(lab, project)


def _piece(
    lab: Lab,
    one: Branch,
    known: Mapping[str, Remembered],
    heads: Mapping[str, frozenset[str]],
) -> Piece:
    run = known.get(one.name, Remembered())
    path: Path | None = counts.worktree_of(lab, one, known)
    merged = heads.get(one.name, frozenset())
    return Piece(one.name, path, run.fork_point, merged, claims_nothing=run.closed_empty)


def _facts(project: Project, one: Branch, piece: Piece, held: frozenset[str]) -> MergeFacts:
    is_claim = project.claimed_key(one.name) is not None and not piece.claims_nothing
    if piece.stays:
        held = frozenset()
    return MergeFacts(one.tip, piece.fork_point, one.name in held, is_claim, piece.merged_heads)


def _tear_down(
    lab: Lab,
    project: Project,
    piece: Piece,
    sightings: Mapping[str, Sighting],
    why: str,
    spare: bool,
) -> bool:
    """Whether anything went. Ownership is asked again while nobody else can remove it."""
    done = teardown.tear_down(
        lab,
        project,
        piece,
        why=why,
        spare=spare,
        is_owned=lambda: counts.is_live(lab, project, piece.branch, sightings),
    )
    if done.is_stuck:
        _tell_once(lab, project, f"{piece.branch}: {done.warning}")
    return done.removed_worktree or done.deleted_branch


def _tell_once(lab: Lab, project: Project, text: str) -> None:
    """Tell what a person has to remove; the next sweeps find the same."""
    with transaction.atomic():
        if not Notice.objects.filter(project=project, text=lab.mask(text)).exists():
            announce.tell(lab, NoticeKind.WORK_SWEPT, text, project=project)


def _claims(project: Project, found: Sequence[Branch]) -> dict[str, str]:
    """The issues that these branches claim, by branch."""
    keys = {one.name: project.claimed_key(one.name) for one in found}
    return {branch: key for branch, key in keys.items() if key}


def _open_claims(
    lab: Lab,
    project: Project,
    found: Sequence[Branch],
    pieces: Sequence[Piece],
    held: frozenset[str],
) -> Collection[str]:
    """Return the branches that have to stay although they were merged: their issue is open still.

    A merge closes none with gates, without closing words, or into another branch than the default
    one. Without its branch such an issue would be started once more. All of them stay when the
    tracker did not answer.
    """
    merged = [
        one
        for one, piece in zip(found, pieces, strict=True)
        if not piece.claims_nothing and is_merged(_facts(project, one, piece, held))
    ]
    claims = _claims(project, merged)
    if not claims:
        return ()
    place = (project.tracker, project.tracker_root)
    answers = fan_out.ask_roots(
        lab, {place: set(claims.values())}, lambda tracker, some: tracker.still_open(some)
    )
    still = answers.get(place, Silence("no tracker"))
    if isinstance(still, Silence):
        return claims
    open_keys = {one.key for one in still}
    return [branch for branch, key in claims.items() if key in open_keys]


def _merged_heads(
    lab: Lab, project: Project, found: Sequence[Branch]
) -> Mapping[str, frozenset[str]]:
    """Heads of merged pull requests by branch, in one call; none when the tracker does not say."""
    tracker = lab.tracker_for(project.tracker) if project.tracker else None
    if tracker is None or Ability.PULLS not in tracker.abilities:
        return {}
    root, began = project.tracker_root, lab.now()
    try:
        asked = {root: [one.name for one in found]}
        pulls = tracker.pulls(asked).get(root) if found else ()
    except TrackerError as error:
        logger.info("merged requests are unknown", extra={"error": str(error)})
        return {}
    if pulls is not None:
        tracker_cache.keep_pulls(lab, project, pulls, began)
    heads: dict[str, set[str]] = {}
    for pull in pulls or ():
        if pull.state is PullState.MERGED and pull.head_commit and not pull.is_fork:
            heads.setdefault(pull.head, set()).add(pull.head_commit)
    return {branch: frozenset(commits) for branch, commits in heads.items()}
