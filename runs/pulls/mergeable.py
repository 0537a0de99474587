"""Asks git whether a pull request can be merged. Answers are kept by the ids of commits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from runs.core.ports import Lab, SeamError
from runs.core.recent import Recent
from runs.models import Project
from runs.pulls import comparing, rules
from runs.pulls.comparing import Tips
from runs.pulls.rules import Joined, MergeFacts, Verdict, Way, is_commit
from trackers.base import PullState
from trackers.builtin.models import PullRequest

# Longer than a push may take: whoever noted a merge before that was interrupted.
LAPSE = timedelta(seconds=90)
REMOTE = "refs/remotes/origin/"

_JOINED: Recent[Joined] = Recent(5_000, lambda one: len(one.files))


def verdict(lab: Lab, project: Project, pull: PullRequest) -> Verdict:
    """What the merge button says, by origin as last fetched; a few git processes, none that waits
    for anybody else. Never raises for what git does.
    """
    return rules.verdict(facts_of(lab, project, pull))


def facts_of(lab: Lab, project: Project, pull: PullRequest, ask: Tips | None = None) -> MergeFacts:
    """The facts behind it. An error of git is one of them. `ask` is for whoever asks more."""
    known = MergeFacts(pull.state, pull.head, pull.base, pull.base, by=pull.merge_by)
    if pull.state != PullState.OPEN:
        return known
    try:
        return _asked(lab, project, pull, (ask or comparing.tips_of(lab, project, pull))())
    except SeamError as error:
        return MergeFacts(pull.state, pull.head, pull.base, pull.base, error=str(error))


def is_busy(pull: PullRequest, now: datetime) -> bool:
    """Whether somebody noted a merge that may still be on its way."""
    return pull.merge_at is not None and pull.merge_at >= now - LAPSE


def held_by_base(lab: Lab, project: Project, pull: PullRequest) -> str | None:
    """The tip of the base, when it holds what a pull request was opened with and all that came since.

    None when it does not, or when git could not say. By what was fetched last.
    """
    repo = project.repo(lab.paths)
    try:
        base = lab.repos.tip(repo, f"{REMOTE}{pull.base}")
        head = lab.repos.tip(repo, f"{REMOTE}{pull.head}")
        if base is None or not is_commit(pull.head_commit):
            return None
        wanted = {pull.head_commit} | ({head} if head is not None else set())
        is_held = not any(lab.repos.is_ahead(repo, commit, pull.base) for commit in wanted)
    except SeamError:
        return None
    return base if is_held else None


def _asked(lab: Lab, project: Project, pull: PullRequest, tips: Mapping[str, str]) -> MergeFacts:
    into = pull.base if REMOTE + pull.base in tips else project.default_branch
    head_tip, into_tip = tips.get(REMOTE + pull.head), tips.get(REMOTE + into)
    joined = None
    if head_tip and into_tip:
        joined = _joined(lab, project, into_tip, head_tip)
    return MergeFacts(
        state=pull.state,
        head=pull.head,
        base=pull.base,
        into=into,
        head_tip=head_tip,
        into_tip=into_tip,
        by=pull.merge_by,
        is_busy=is_busy(pull, lab.now()),
        joined=joined,
        is_delivered=_is_delivered(lab, project, pull, into)
        if joined and joined.way is Way.HELD
        else None,
    )


def _joined(lab: Lab, project: Project, into: str, head: str) -> Joined:
    repo = project.repo(lab.paths)
    ask: Callable[[], Joined] = lambda: lab.repos.join(repo, into, head)  # noqa: E731
    return _JOINED.get((repo, into, head), ask)


def _is_delivered(lab: Lab, project: Project, pull: PullRequest, into: str) -> bool | None:
    """Whether what it was opened with is in the base; None when git does not know that commit."""
    if not is_commit(pull.head_commit):
        return None
    try:
        return not lab.repos.is_ahead(project.repo(lab.paths), pull.head_commit, into)
    except SeamError:
        return None
