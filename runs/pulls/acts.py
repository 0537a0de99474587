"""Verbs on pull requests. One is opened only for work that is really on origin."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from django.db import transaction

from runs.core import writing
from runs.core.database import run_beside
from runs.core.ports import Lab, SeamError, UnknownCommitError
from runs.core.states import NoticeKind
from runs.forges import tracker_cache
from runs.lifecycle.recovery import BranchFacts, is_left_over
from runs.models import Notice, Project, Run
from runs.projects import git_credentials, sending
from runs.pulls import comparing, mergeable
from runs.pulls.comments import PullRefused, comment, comments
from runs.pulls.rules import Ends, Way
from runs.timeline import announce
from trackers.base import (
    Ability,
    NewPull,
    Pull,
    PullState,
    Refused,
    Tracker,
    Unreachable,
    best_pull,
)
from trackers.builtin import queries, store
from trackers.builtin.models import PullRequest

__all__ = ["PullRefused", "close", "comment", "comments", "create", "of_run"]

_BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/-]{0,199}")


def create(lab: Lab, run: Run, *, title: str, body: str = "", base: str = "", by: str = "") -> Pull:
    """Open the pull request of a run's branch, or return the one that is open already.

    Looks at origin itself and never claims what it did not see: the branch must be there and
    hold something that the base does not. Raises PullRefused, SeamError, TrackerError.
    """
    tracker = _able(lab, run.project)
    _check_active(run)
    standing = _standing(tracker, run)
    if standing is None:
        new = _request(lab, run, title, body, base, by)
        standing = _open(lab, tracker, run, new)
    elif standing.is_draft:
        raise PullRefused(
            f"Pull request {standing.number} of {run.branch} is a draft, which does not count as "
            "delivered. Mark it as ready for review on its forge, then run this again.",
            field="head",
        )
    else:
        standing = _take_over(lab, tracker, run, standing, by or run.agent)
    _look_after_commit(lab, run.project)
    return standing


def of_run(lab: Lab, run: Run) -> Pull | None:
    """The pull request that is shown for a run: open, merged or closed. Raises TrackerError."""
    tracker = lab.tracker_for(run.project.tracker)
    if tracker is None:
        raise Refused("This project has no tracker that labsite can read.")
    return best_pull(_pulls(tracker, run), run.branch)


def close(lab: Lab, project: Project, number: int, *, by: str) -> bool:
    """Close a pull request unmerged; False when it was not open. Raises NotFound, Refused."""
    if project.tracker != "builtin":
        raise Refused("This project keeps its pull requests on a tracker of its own.")
    pull = queries.pull(project.tracker_root, number)
    if pull.state == PullState.OPEN and mergeable.is_busy(pull, lab.now()):
        raise Refused(f"{pull.merge_by} is merging it just now, so it was not closed.")
    ends = _ends(lab, project, pull)
    with transaction.atomic():
        was_open = store.close_pull(project.tracker_root, number, at=lab.now())
        if was_open:
            _keep_ends(project, number, ends)
            text = f"pull request {number} closed without a merge"
            announce.tell(lab, NoticeKind.PULL_CHANGED, text, project=project, by=by)
    if was_open:
        _note_closed(lab, project, pull.head)
    return was_open


def reopen(lab: Lab, project: Project, number: int, *, by: str) -> bool:
    """Open a closed pull request again, whose branch origin still has; False when it was not closed.

    Raises NotFound, Refused, and SeamError when origin did not answer.
    """
    if project.tracker != "builtin":
        raise Refused("This project keeps its pull requests on a tracker of its own.")
    head = queries.pull(project.tracker_root, number).head
    token = git_credentials.of_git(lab, project)
    if lab.repos.pushed(project.repo(lab.paths), head, token, project.url) is None:
        raise Refused(f"Origin has no branch {head} any more, so it cannot be opened again.")
    with transaction.atomic():
        opened = store.reopen_pull(project.tracker_root, number, at=lab.now())
        if opened:
            text = f"pull request {number} opened again"
            announce.tell(lab, NoticeKind.PULL_CHANGED, text, project=project, by=by)
    if opened:
        _note_closed(lab, project, head)
    return opened


def _note_closed(lab: Lab, project: Project, head: str) -> None:
    """Whether a pull request of the branch waits for a decision now, closed as it is."""
    tracker = lab.tracker_for(project.tracker)
    if tracker is not None:
        claims = {branch for _, branch, *_ in project.pulls_closed} | {head}
        found = tracker.pulls({project.tracker_root: claims}).get(project.tracker_root)
        tracker_cache.note_closed(lab, project, found or ())


def _ends(lab: Lab, project: Project, pull: PullRequest) -> Ends:
    """The commits that a pull request compares, none when git could not say."""
    try:
        return comparing.ends_of(lab, project, pull)
    except SeamError:
        return Ends()


def _keep_ends(project: Project, number: int, ends: Ends) -> None:
    """What it compared when it ended: branches are merged, removed and used again after that."""
    if ends.are_known:
        store.keep_ends(project.tracker_root, number, base_commit=ends.base, head_commit=ends.head)


def _able(lab: Lab, project: Project) -> Tracker:
    tracker = lab.tracker_for(project.tracker)
    if tracker is not None and Ability.PULLS not in tracker.abilities:
        raise PullRefused(
            "This project has no pull requests. Name the issue in a commit message, push the "
            "branch, then run: labctl done",
            field="tracker",
        )
    if tracker is None or Ability.CREATE_PULL not in tracker.abilities:
        raise PullRefused(
            "labsite cannot open pull requests on this project's tracker; use its own.",
            field="tracker",
        )
    return tracker


def _check_active(run: Run) -> None:
    """Asked anew of the database: a run may end while its agent waits for git."""
    if not Run.objects.active().filter(pk=run.pk).exists():
        raise PullRefused("This run has ended, so no pull request was opened for it.", field="run")


def _standing(tracker: Tracker, run: Run) -> Pull | None:
    """The open pull request of the branch, if there is one."""
    is_open = (pull for pull in _pulls(tracker, run) if pull.state is PullState.OPEN)
    return best_pull(list(is_open), run.branch)


def _take_over(lab: Lab, tracker: Tracker, run: Run, standing: Pull, by: str) -> Pull:
    """The open one, with this run's work in it: an earlier run of the issue may have opened it."""
    commit = _delivered_commit(lab, run, standing.base or run.project.default_branch)
    if Ability.LOCAL not in tracker.abilities:
        _tell_once(lab, run, standing, by)
        return standing
    if standing.head_commit != commit:
        pull = queries.pull(run.project.tracker_root, standing.number)
        ends = (pull.base_commit, commit)
        store.keep_ends(
            run.project.tracker_root, standing.number, base_commit=ends[0], head_commit=ends[1]
        )
    return replace(standing, head_commit=commit)


def _pulls(tracker: Tracker, run: Run) -> Sequence[Pull]:
    root = run.project.tracker_root
    found = tracker.pulls({root: [run.branch]})[root]
    if found is None:
        why = tracker.trouble(root)
        raise why or Unreachable("The project's tracker could not be read just now. Try again.")
    return found


def _request(lab: Lab, run: Run, title: str, body: str, base: str, by: str) -> NewPull:
    try:
        title, body = writing.title(title), writing.body(body)
    except writing.WrongText as error:
        raise PullRefused(error.text, field=error.field) from error
    base = _base(lab, run, base)
    commit = _delivered_commit(lab, run, base)
    if not writing.closes(body, run.issue_key):
        body = f"{body}\n\nCloses #{run.issue_key}".strip()
    return NewPull(
        run.branch,
        base,
        title,
        body,
        author=by or run.agent,
        head_commit=commit,
        base_commit=lab.repos.ref(run.project.repo(lab.paths), f"refs/remotes/origin/{base}") or "",
    )


def _base(lab: Lab, run: Run, base: str) -> str:
    """The base branch: the default one, or another that origin really has."""
    project = run.project
    if not base or base == project.default_branch:
        return project.default_branch
    if base == run.branch or not _BRANCH.fullmatch(base) or ".." in base:
        raise PullRefused(
            "A pull request cannot go into that branch. Leave --base out.", field="base"
        )
    token = git_credentials.of_git(lab, project)
    if lab.repos.pushed(project.repo(lab.paths), base, token, project.url) is None:
        raise PullRefused(f"origin has no branch {base}. Leave --base out.", field="base")
    return base


def _delivered_commit(lab: Lab, run: Run, base: str) -> str:
    """Return what origin has of the run's branch. Raises PullRefused where that is no delivery.

    Where files tell that it is what this run committed, and the base as last fetched does not hold it,
    nothing is brought here while its agent waits: a run that ends with it is reaped at once, and who
    reaps has it brought first.
    """
    project, repo = run.project, run.project.repo(lab.paths)
    token = git_credentials.of_git(lab, project)
    asked = run_beside(
        "origin-branch", lambda: lab.repos.pushed(repo, run.branch, token, project.url)
    )
    goes_on = run.is_gated or run.is_loop or run.amends is not None
    head = None if goes_on else lab.repos.glimpse(repo, run.branch)
    is_new = head not in (None, run.fork_point) and _is_new(lab, repo, str(head), base)
    commit = asked.result()
    if commit is None:
        raise PullRefused(
            f"origin has no branch {run.branch} yet, so no pull request was opened. "
            f"Push first: git push origin {run.branch}",
            field="head",
        )
    if is_new and commit == head:
        return commit
    if _is_left_over(lab, run, commit):
        raise PullRefused(
            f"what origin has on {run.branch} was there before this run began, and nothing was "
            f"committed here yet. Commit your work, then: git push --force origin {run.branch}",
            field="head",
        )
    _check_ahead(lab, run, commit, base)
    _check_complete(lab, run, commit)
    return commit


def _is_new(lab: Lab, repo: Path, commit: str, base: str) -> bool:
    """Return whether a base as last fetched lacks a commit that a run made; False when unsure."""
    try:
        if lab.repos.ref(repo, f"refs/remotes/origin/{base}") is None:
            return False
        return lab.repos.is_ahead(repo, commit, base)
    except UnknownCommitError:
        return True  # the history of the base is here, and the commit is not
    except SeamError:
        return False


def _check_ahead(lab: Lab, run: Run, commit: str, base: str) -> None:
    """A pull request without a commit would be found merged at once."""
    if not _is_ahead(lab, run.project, commit, base):
        raise PullRefused(
            f"{run.branch} on origin holds no commit that {base} does not have. "
            f"Commit your work, then: git push origin {run.branch}",
            field="head",
        )


def _check_complete(lab: Lab, run: Run, commit: str) -> None:
    """A pull request ends the run, so nothing that was committed may be missing on origin."""
    if _is_behind(lab, run, commit):
        raise PullRefused(
            f"{run.branch} has commits here that origin does not have, and a pull request ends "
            f"the run. {_push_words(lab, run, commit)}",
            field="head",
        )


def _push_words(lab: Lab, run: Run, commit: str) -> str:
    """The push that works. What origin has and the branch here has not may be somebody else's."""
    repo = run.project.repo(lab.paths)
    head = lab.repos.tip(repo, f"refs/heads/{run.branch}")
    try:
        goes_on = head is not None and lab.repos.join(repo, head, commit).way is Way.HELD
    except SeamError:
        goes_on = True
    if goes_on:
        return f"Push them first: git push origin {run.branch}"
    return (
        f"Origin has other commits on it: git fetch origin && git rebase origin/{run.branch}, then "
        f"git push origin {run.branch}. Only if all of those are older versions of your own: "
        f"git push --force-with-lease={run.branch}:{commit} origin {run.branch}"
    )


def _is_ahead(lab: Lab, project: Project, commit: str, base: str) -> bool:
    """Fetches when git does not know the commit or the base yet: it was pushed from elsewhere."""
    repo = project.repo(lab.paths)
    try:
        return lab.repos.is_ahead(repo, commit, base)
    except SeamError:
        lab.repos.fetch(repo, git_credentials.of_git(lab, project), url=project.url)
        return lab.repos.is_ahead(repo, commit, base)


def _is_behind(lab: Lab, run: Run, pushed: str) -> bool:
    """Whether the branch here is not what origin has; False when unsure.

    Commits that were not pushed would be cut off by the reap. A branch that never moved here was
    pushed from elsewhere.
    """
    repo = run.project.repo(lab.paths)
    try:
        head = lab.repos.ref(repo, f"refs/heads/{run.branch}")
        if head in (None, pushed):
            return False
        return head != run.fork_point and lab.repos.is_ahead(repo, str(head), run.branch)
    except SeamError:
        return False


def _is_left_over(lab: Lab, run: Run, pushed: str) -> bool:
    repo = run.project.repo(lab.paths)
    known = lab.repos.ref(repo, f"refs/remotes/origin/{run.branch}")
    head = lab.repos.ref(repo, f"refs/heads/{run.branch}")
    if head == run.fork_point and pushed == known and run.worktree:
        # It may have worked on a branch of another name, and pushed that as its own.
        with contextlib.suppress(SeamError):
            head = lab.repos.progress(Path(run.worktree), run.fork_point).head
    return is_left_over(BranchFacts(pushed, known, head, run.fork_point))


def _open(lab: Lab, tracker: Tracker, run: Run, new: NewPull) -> Pull:
    """Store it and tell of it. The second of two that ask at once gets the first one's.

    Elsewhere it is opened first and told after, since nothing waits for a network in a transaction.
    """
    try:
        if Ability.LOCAL not in tracker.abilities:
            return _open_elsewhere(lab, tracker, run, new)
        with transaction.atomic():
            _check_active(run)
            pull = tracker.create_pull(run.project.tracker_root, new)
            _tell_opened(lab, run, pull, new.author)
    except Refused:
        standing = _standing(tracker, run)
        if standing is None:
            raise
        return standing
    return pull


def _open_elsewhere(lab: Lab, tracker: Tracker, run: Run, new: NewPull) -> Pull:
    _check_active(run)
    with sending.alone(lab, run.project, "pull request", new.head):
        standing = _standing(tracker, run)
        pull = standing or tracker.create_pull(run.project.tracker_root, new)
    _tell_once(lab, run, pull, new.author)
    return pull


def _tell_once(lab: Lab, run: Run, pull: Pull, by: str) -> None:
    """Also of one that was opened before labsite was interrupted, or by the agent itself."""
    with transaction.atomic():
        Project.objects.hold(run.project_id)
        told = Notice.objects.filter(run=run, kind=NoticeKind.PULL_OPENED)
        if not told.filter(text__startswith=f"pull request {pull.number} opened").exists():
            _tell_opened(lab, run, pull, by)


def _tell_opened(lab: Lab, run: Run, pull: Pull, by: str) -> None:
    text = f"pull request {pull.number} opened: {writing.one_line(pull.title)}"
    announce.tell(lab, NoticeKind.PULL_OPENED, text, run=run, by=by)


def _look_after_commit(lab: Lab, project: Project) -> None:
    """Have the run reaped now, not at the next tick. Rung each time: a ring may get lost."""
    transaction.on_commit(lambda: lab.bell.look(project.slug), robust=True)
