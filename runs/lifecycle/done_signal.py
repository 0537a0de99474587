"""The one done signal: two kinds of proof, each told in the words of its kind."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from runs.core.ports import Lab, SeamError
from runs.core.states import TrackerKind
from runs.followups import rules as followups
from runs.lifecycle import delivery_rules
from runs.lifecycle.delivery_rules import Evidence
from runs.lifecycle.recovery import PullFacts, is_of_this_run
from runs.models import Run
from trackers.base import Pull, PullState, best_pull, counts
from trackers.keys import evidence_of

CLOCKS_APART = timedelta(minutes=2)
MOST_COMMITS = 1000
URL_CHARACTERS = 500  # a longer one would be cut and lead nowhere

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Signal:
    """Whether the done signal is there, None: could not tell; with its proof, or what is missing.

    `missing` is written as "no …". `seen` is kept on the row of a run that ends by it.
    """

    is_done: bool | None
    proof: str = ""
    missing: str = "no pull request"
    seen: Mapping[str, object] = field(default_factory=dict)


def of_pulls(lab: Lab, run: Run, pulls: Sequence[Pull] | None) -> Signal:
    """Find a pull request of the run's branch that counts and was opened, or moved, by this run.

    A draft is opened, not delivered: it counts once it has left draft.
    """
    if pulls is None:
        return Signal(None)
    mine = [one for one in pulls if one.head == run.branch and counts(one) and not one.is_fork]
    found, is_known = _of_this_run(lab, run, mine)
    pull = best_pull([one for one in found if not one.is_draft], run.branch)
    if pull is None:
        draft = best_pull(found, run.branch)
        if draft is not None and is_known:
            missing = f"no pull request that is ready for review: {draft.number} is a draft"
            return Signal(False, missing=missing)
        return Signal(False if is_known else None)
    return _found(pull, f"pull request {pull.number} is {pull.state}")


@dataclass(frozen=True, slots=True)
class Word:
    """What the agent of a run that adds to a pull request says, and what origin says of that.

    `is_last`: its end is decided now, so that the reason has to say what is missing. `has_pushed`:
    origin has its new commits; None: not asked, or could not tell.
    """

    says_done: bool
    is_last: bool = False
    has_pushed: bool | None = None


def of_amended(lab: Lab, run: Run, pulls: Sequence[Pull] | None, word: Word) -> Signal:
    """New commits on the pull request that was open when the run went on, and its agent's word.

    One that was opened since counts as of any run.
    """
    other = of_pulls(
        lab, run, None if pulls is None else [p for p in pulls if p.number != run.amends]
    )
    pull = next((one for one in pulls or () if one.number == run.amends), None)
    if other.is_done or other.is_done is None or pull is None:
        return replace(other, missing=f"no pull request {run.amends} any more")
    if not counts(pull):
        return Signal(False, missing=f"no open pull request {run.amends}: it was closed")
    moved = _is_added(lab, run, pull, word) if word.says_done or word.is_last else None
    found = _found(pull, f"pull request {pull.number} has new commits")
    missing = f"no new commit on pull request {pull.number}"
    if pull.state is PullState.MERGED:
        missing = f"no new commit in pull request {pull.number}: it was merged before"
    if not word.says_done and moved is not False:
        though = f", though {found.proof}" if moved else ""
        missing = f"no word of its agent that it is done{though}"
    return replace(found, is_done=followups.is_amended(moved, word.says_done), missing=missing)


def _is_added(lab: Lab, run: Run, pull: Pull, word: Word) -> bool | None:
    """Whether a pull request holds what this run made; one that is merged takes nothing any more."""
    if pull.state is PullState.MERGED:
        return _has_moved(lab, run, pull, run.head_before or run.fork_point)
    if word.has_pushed or not pull.head_commit or pull.head_commit == run.head_before:
        return word.has_pushed
    repo = run.project.repo(lab.paths)
    try:
        is_told = pull.head_commit == lab.repos.tip(repo, f"refs/heads/{run.branch}")
    except SeamError:
        return word.has_pushed
    return True if is_told else word.has_pushed


def _found(pull: Pull, proof: str) -> Signal:
    url = pull.url if len(pull.url) <= URL_CHARACTERS else ""
    seen = {"pull_number": pull.number, "pull_url": url, "pull_state": pull.state.value}
    return Signal(True, proof, seen=seen)


def of_evidence(run: Run, found: Evidence) -> Signal:
    """Commits on origin that name the issue, where there are no pull requests."""
    words = evidence_of(run.project.tracker, run.issue_key)
    lacks = delivery_rules.lacking(found, run.branch, words)
    commit = (found.named_in or "")[: delivery_rules.SHORT]
    return Signal(
        delivery_rules.is_delivered(found),
        f"commit {commit} names the issue, and origin has {run.branch}",
        lacks[0] if lacks else "no proof of delivery",
        {"proven": delivery_rules.told(found)},
    )


def _of_this_run(lab: Lab, run: Run, pulls: Sequence[Pull]) -> tuple[list[Pull], bool]:
    """Those that count for this run and no earlier one of the issue; whether all could be told.

    The branch is named after the issue, so that two runs of an issue share the name.
    """
    if run.is_adopted:
        return list(pulls), True
    found, is_known = [], True
    for pull in pulls:
        answer = is_of_this_run(_facts(lab, run, pull))
        is_known = is_known and answer is not None
        found += [pull] if answer else []
    return found, is_known


def _facts(lab: Lab, run: Run, pull: Pull) -> PullFacts:
    """A forge tells the time of its own clock, in whole seconds."""
    is_ours = run.project.tracker == TrackerKind.BUILTIN
    before = run.requested_at - pull.created_at if pull.created_at is not None else None
    is_merged, slack = pull.state is PullState.MERGED, timedelta(0) if is_ours else CLOCKS_APART
    is_clear = before is None or before <= timedelta(0) or (is_merged and before > slack)
    moved = None if is_clear else _has_moved(lab, run, pull, run.fork_point)
    return PullFacts(before, slack, is_merged, moved)


def _has_moved(lab: Lab, run: Run, pull: Pull, since: str) -> bool | None:
    """Asked of git only for an old pull request, since most runs have none."""
    if not pull.head_commit or not since:
        return False
    repo = run.project.repo(lab.paths)
    try:
        tip = lab.repos.tip(repo, f"refs/heads/{run.branch}")
        if tip is None:
            return False
        made = lab.repos.commits(repo, since, tip, MOST_COMMITS)
    except SeamError as error:
        logger.info("commits were not read", extra={"run_id": run.pk, "error": str(error)})
        return None
    return any(commit.id == pull.head_commit for commit in made)
