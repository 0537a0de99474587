"""Asks git what a pull request changes. Answers are kept by the ids of commits, so never stale."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from runs.core.history_ports import EMPTY_TREE, Change, Commit
from runs.core.ports import Lab, Repos, SeamError
from runs.core.recent import Recent
from runs.models import Project
from runs.pulls import rules
from runs.pulls.rules import Ends, PullFacts
from trackers.base import PullState
from trackers.builtin.models import PullRequest

PATCH_BYTES = 400_000
FILE_BYTES = 600_000
COMMITS = 250

Tips = Callable[[], Mapping[str, str]]

_LISTS: Recent[Sequence[Change]] = Recent(20_000, len)
_COMMITS: Recent[Sequence[Commit]] = Recent(2_000, len)
_PATCHES: Recent[str] = Recent(4_000_000, len)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What lies between two commits. `error` says why that could not be told."""

    ends: Ends
    files: Sequence[Change] = ()
    commits: Sequence[Commit] = ()
    has_more_commits: bool = False
    error: str = ""

    @property
    def added(self) -> int:
        return sum(change.added or 0 for change in self.files)

    @property
    def removed(self) -> int:
        return sum(change.removed or 0 for change in self.files)


def tips_of(lab: Lab, project: Project, pull: PullRequest) -> Tips:
    """Asks for the branches that a pull request is about, when it is first called, and once."""
    names = dict.fromkeys((pull.base, pull.head, project.default_branch))
    refs = [f"refs/remotes/origin/{name}" for name in names]
    return functools.cache(lambda: lab.repos.tips(project.repo(lab.paths), refs))


def ends_of(lab: Lab, project: Project, pull: PullRequest, ask: Tips | None = None) -> Ends:
    """The commits that a pull request compares now; one look at git. Raises SeamError."""
    base, head = (f"refs/remotes/origin/{name}" for name in (pull.base, pull.head))
    is_open = pull.state == PullState.OPEN
    # One that has ended needs no look, unless it was stored without its base.
    needs_look = is_open or not pull.base_commit
    tips = (ask or tips_of(lab, project, pull))() if needs_look else {}
    return rules.ends(
        PullFacts(
            is_open=is_open,
            base=pull.base,
            head=pull.head,
            stored_base=pull.base_commit,
            stored_head=pull.head_commit,
            base_tip=tips.get(base),
            head_tip=tips.get(head),
        )
    )


def of_pull(lab: Lab, project: Project, pull: PullRequest, ask: Tips | None = None) -> Comparison:
    """Files and commits of a pull request; at most three git processes, one when nothing moved."""
    try:
        ends = ends_of(lab, project, pull, ask)
    except SeamError as error:
        return Comparison(Ends(), error=_sentence(error))
    if not ends.are_known:
        return Comparison(ends, error=ends.note)
    return between(lab, project, ends)


def between(lab: Lab, project: Project, ends: Ends) -> Comparison:
    """Files and commits between two commits."""
    repo = project.repo(lab.paths)
    try:
        files = _files(lab.repos, repo, ends.base, ends.head)
        commits = _commits(lab.repos, repo, ends.base, ends.head)
    except SeamError as error:
        return Comparison(ends, error=_why(lab, repo, ends, error))
    return Comparison(ends, files, commits[:COMMITS], has_more_commits=len(commits) > COMMITS)


def of_commit(lab: Lab, project: Project, commit: Commit) -> Comparison:
    """What one commit changed against its first parent."""
    base = commit.parents[0] if commit.parents else EMPTY_TREE
    ends = Ends(base, commit.id)
    repo = project.repo(lab.paths)
    try:
        return Comparison(ends, _files(lab.repos, repo, ends.base, ends.head), [commit])
    except SeamError as error:
        return Comparison(ends, error=_why(lab, repo, ends, error))


def patch(lab: Lab, project: Project, ends: Ends) -> str:
    """The first files' diff, whole files only. Empty when git could not say."""
    repo = project.repo(lab.paths)
    try:
        return _PATCHES.get(
            (repo, ends.base, ends.head),
            lambda: lab.repos.patch(repo, ends.base, PATCH_BYTES, ends.head),
        )
    except SeamError:
        return ""


def patch_of(lab: Lab, project: Project, change: Change) -> str:
    """The diff of one file, however far down the list it stands. Raises SeamError."""
    repo = project.repo(lab.paths)
    return _PATCHES.get((repo, change), lambda: lab.repos.patch_of(repo, change, FILE_BYTES))


def _files(repos: Repos, repo: Path, base: str, head: str) -> Sequence[Change]:
    return _LISTS.get((repo, base, head), lambda: tuple(repos.changes(repo, base, head)))


def _commits(repos: Repos, repo: Path, base: str, head: str) -> Sequence[Commit]:
    return _COMMITS.get(
        (repo, base, head), lambda: tuple(repos.commits(repo, base, head, COMMITS + 1))
    )


def _why(lab: Lab, repo: Path, ends: Ends, error: SeamError) -> str:
    """Why two commits could not be compared: one is gone, or what git said."""
    for commit in (ends.head, ends.base):
        try:
            if commit != EMPTY_TREE and lab.repos.tip(repo, commit) is None:
                return (
                    f"The commit {commit[:12]} is not in labsite's repository any more, so these "
                    "changes cannot be shown. Text and comments are kept."
                )
        except SeamError:
            break
    return _sentence(error)


def _sentence(error: SeamError) -> str:
    return f"git could not say what changed: {error}"
