"""Puts together what a watch session or one run has delivered: the commit that a validation proves."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from runs.core.ports import Lab
from runs.core.states import Outcome
from runs.forges import quota
from runs.models import Fixer, Project, Run, Validation
from runs.projects import origin
from runs.pulls.rules import MergeCommit, Way
from runs.validation import rules
from trackers.base import Ability, PullState, TrackerError

logger = logging.getLogger(__name__)

ORIGIN, LOCAL = "refs/remotes/origin/", "refs/heads/"
AUTHOR = "labsite"


@dataclass(frozen=True, slots=True)
class Piece:
    """Accepted work: what a person calls it, its branch and the commit that counts."""

    name: str
    branch: str
    tip: str


@dataclass(slots=True)
class Together:
    """What came of putting it together. `rest` is what could not be merged, in order."""

    base: str
    commit: str
    merged: list[Piece] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    conflict: str = ""
    rest: list[Piece] = field(default_factory=list)


def put_together(lab: Lab, row: Validation, fix: Fixer | None = None) -> Together:
    """Origin's default branch as it is now with every accepted, unmerged branch of the session.

    Of a `fix` its own branch is what the rest is added to; as a rule it holds all of it already.
    The same work gives the same commit again. Raises SeamError.
    """
    project = row.project
    repo = project.repo(lab.paths)
    runs = _accepted(row)
    gone = _decided(lab, project, runs)  # before the fetch, so that what was merged is in it
    if fix is None:
        origin.freshen(lab, project)
        base = lab.repos.upstream(repo, project.default_branch)
        made = Together(base, base)
    else:
        made = Together(row.base, fix.head)
    pieces = _pieces(lab, repo, row, runs, gone, made)
    for number, piece in enumerate(pieces):
        if not _add(lab, repo, row, made, piece):
            made.rest = list(pieces[number:])
            break
    return made


def leave_out(lab: Lab, row: Validation, made: Together, name: str) -> Together | None:
    """Put the same work together without one delivery, or without any for an empty name.

    None where the rest does not fit together. Raises SeamError.
    """
    repo = row.project.repo(lab.paths)
    rest = Together(made.base, made.base)
    pieces = [one for one in made.merged if name and one.name != name]
    fits = all(_add(lab, repo, row, rest, piece) for piece in pieces)
    return rest if fits else None


def _accepted(row: Validation) -> Sequence[Run]:
    """What a session has delivered, or the one run that a validation is about."""
    runs = Run.objects.filter(outcome=Outcome.SUCCEEDED)
    if row.session_id is None:
        return list(runs.filter(validations=row))
    return list(runs.filter(watch_id=row.session_id).order_by("ended_at", "pk"))


def _decided(lab: Lab, project: Project, runs: Sequence[Run]) -> Mapping[int, str]:
    """Runs whose pull request is merged or was closed; none where the tracker does not say."""
    tracker = lab.tracker_for(project.tracker) if project.tracker else None
    if tracker is None or not runs or Ability.PULLS not in tracker.abilities:
        return {}
    root = project.tracker_root
    try:
        pulls = tracker.pulls({root: [run.branch for run in runs]}).get(root) or ()
    except TrackerError as error:
        logger.info("pull requests are unknown", extra={"error": str(error)})
        return {}
    finally:
        quota.settle(lab)
    states = {pull.number: pull.state for pull in pulls}
    words = {PullState.MERGED: "was merged", PullState.CLOSED: "was closed without a merge"}
    found = ((run.pk, states.get(run.pull_number or 0)) for run in runs)
    return {pk: words[state] for pk, state in found if state in words}


def _pieces(
    lab: Lab,
    repo: Path,
    row: Validation,
    runs: Sequence[Run],
    gone: Mapping[int, str],
    made: Together,
) -> Sequence[Piece]:
    """In the order of acceptance. Fixes first: they hold what was accepted before them.

    What origin's default branch holds by now is proven with it, though its branch is gone.
    """
    fixes = Fixer.objects.filter(accepted_at__isnull=False)
    if row.session_id is None:
        fixes = fixes.filter(validation__run=row.run)
    else:
        fixes = fixes.filter(validation__session_id=row.session_id)
    found = [Piece(f"the fix {fix.branch}", fix.branch, fix.head) for fix in fixes.order_by("pk")]
    branches = [run.branch for run in runs if run.pk not in gone]
    names = [f"{room}{branch}" for branch in branches for room in (ORIGIN, LOCAL)]
    tips = lab.repos.tips(repo, names) if names else {}
    for run in runs:
        name = f"issue {run.issue_key}"
        tip = tips.get(f"{ORIGIN}{run.branch}") or tips.get(f"{LOCAL}{run.branch}")
        # What the gates accepted is that commit, wherever its branch has gone since.
        tip = tip and (run.accepted_commit or tip)
        if tip and run.pk not in gone:
            found.append(Piece(name, run.branch, tip))
        elif _is_merged(lab, repo, made.base, run.accepted_commit):
            found.append(Piece(name, run.branch, run.accepted_commit))
        else:
            why = f"its branch {run.branch} is gone"
            if run.pk in gone:
                why = f"its pull request {gone[run.pk]}"
            if run.accepted_commit:
                why += f", and {row.project.default_branch} does not hold its accepted commit"
            made.left_out.append(f"{name}: {why}")
    return found


def _is_merged(lab: Lab, repo: Path, base: str, commit: str) -> bool:
    """Whether origin's default branch holds an accepted commit; one that is not here it does not."""
    if not commit or lab.repos.tip(repo, commit) is None:
        return False
    return lab.repos.join(repo, base, commit).way is Way.HELD


def _add(lab: Lab, repo: Path, row: Validation, made: Together, piece: Piece) -> bool:
    """Merge one piece; False when it conflicts, which is then said."""
    joined = lab.repos.join(repo, made.commit, piece.tip)
    if joined.way is Way.CLEAN:
        message = f"Put together for a validation: {piece.name}\n"
        parents = (made.commit, piece.tip)
        made.commit = lab.repos.make_merge(
            repo, MergeCommit(joined.tree, parents, message, AUTHOR, row.began_at)
        )
    elif joined.way is Way.FORWARD:
        made.commit = piece.tip
    elif joined.way is not Way.HELD:
        other = _other(lab, repo, made, piece)
        made.conflict = rules.conflict_text(piece.name, other, joined.files)
        return False
    made.merged.append(piece)
    return True


def _other(lab: Lab, repo: Path, made: Together, piece: Piece) -> str:
    """What a piece conflicts with: the first accepted work that alone does, else the base."""
    for other in made.merged:
        if lab.repos.join(repo, other.tip, piece.tip).way is Way.CONFLICT:
            return other.name
    if made.base and lab.repos.join(repo, made.base, piece.tip).way is Way.CONFLICT:
        return "origin's default branch"
    return " together with ".join(one.name for one in made.merged) or "origin's default branch"
