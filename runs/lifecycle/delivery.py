"""Asks git and origin whether a run without pull requests has delivered, and takes the agent's word.

Its word is a request for one look: a look that finds something missing uses it up.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from concurrent.futures import TimeoutError as Overdue
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from django.db import transaction

from runs.core.ports import Lab, Repos, SeamError
from runs.core.states import NoticeKind, Outcome
from runs.forges import cadence, fan_out
from runs.forges.fan_out import DEADLINE_SECONDS, HANDS
from runs.lifecycle import delivery_rules
from runs.lifecycle.delivery_rules import Evidence, Said
from runs.models import Run
from runs.projects import git_credentials
from runs.timeline import announce
from trackers.base import PullState
from trackers.keys import evidence_of

logger = logging.getLogger(__name__)

MOST_COMMITS = 500

Fact = TypeVar("Fact")


class NothingToProve(Exception):
    """The run's tracker has pull requests, so the word of its agent asks for nothing."""


@dataclass(frozen=True, slots=True)
class Branch:
    """What is asked about; read off the rows beforehand, since threads leave the database alone."""

    repo: Path
    name: str
    fork_point: str
    base: str
    words: Sequence[str]
    token: str
    url: str


def begin(lab: Lab, runs: Sequence[Run]) -> Callable[[], Iterator[tuple[Run, Evidence]]]:
    """Start a look at each run's branch, side by side; what it returns gives them as they come.

    One deadline for all, as for trackers: what is late could not be told.
    """
    looks = {run: partial(look, lab.repos, branch_of(lab, run)) for run in runs}
    return _begin(lab, looks, Evidence())


def begin_pushes(lab: Lab, runs: Sequence[Run]) -> Callable[[], Iterator[tuple[Run, bool | None]]]:
    """The same for runs that add to an open pull request: whether origin has their new commits."""
    return _begin(lab, {run: _question(lab, run) for run in runs}, None)


def _begin(
    lab: Lab, asked: Mapping[Run, Callable[[], Fact]], unknown: Fact
) -> Callable[[], Iterator[tuple[Run, Fact]]]:
    if not asked:
        return lambda: iter(())
    pool = ThreadPoolExecutor(min(HANDS, len(asked)), thread_name_prefix="proof")
    looks = {pool.submit(ask): run for run, ask in asked.items()}
    until = lab.steady().seconds + DEADLINE_SECONDS
    pool.shutdown(wait=False)

    def collect() -> Iterator[tuple[Run, Fact]]:
        waiting = dict(looks)
        try:
            for done in as_completed(looks, timeout=max(0.1, until - lab.steady().seconds)):
                yield waiting.pop(done), _answer(done, unknown)
        except Overdue:
            for late, run in waiting.items():
                late.cancel()
                yield run, unknown

    return collect


def branch_of(lab: Lab, run: Run) -> Branch:
    """Everything that a look at a run's branch needs."""
    project = run.project
    return Branch(
        repo=project.repo(lab.paths),
        name=run.branch,
        fork_point=run.fork_point,
        base=project.default_branch,
        words=evidence_of(project.tracker, run.issue_key),
        token=project.git_token,
        url=project.url,
    )


def look(repos: Repos, branch: Branch) -> Evidence:
    """What is proven of a branch; origin is asked only when there is something to be there."""
    tip = _fact(lambda: repos.tip(branch.repo, f"refs/heads/{branch.name}") or "")
    if not tip:
        return Evidence() if tip is None else Evidence(commits=0)
    said = _fact(lambda: _since_fork(repos, branch, tip))
    if said is not None and not said:
        return Evidence(commits=0)
    pushed = _fact(lambda: repos.pushed(branch.repo, branch.name, branch.token, branch.url) or "")
    return Evidence(
        commits=None if said is None else len(said),
        is_pushed=None if pushed is None else pushed == tip,
        named_in=None if said is None else delivery_rules.naming_commit(said, branch.words),
        tip=tip,
    )


def ask(lab: Lab, run: Run, by: str) -> Evidence:
    """The agent says that it is done: look at once, and have the judge look too.

    A look that finds something missing uses the word up here already: one that the judge takes
    later would see commits that the word was not about. Safe to repeat. Raises NothingToProve where
    a pull request is what is needed.
    """
    if not cadence.is_without_pulls(lab, run.project):
        raise NothingToProve
    found = look(lab.repos, branch_of(lab, run))
    asked_at = None if delivery_rules.is_delivered(found) is False else lab.now()
    with transaction.atomic():
        rows = Run.objects.active().filter(pk=run.pk)
        is_first = rows.filter(look_asked_at=None, proven="").exists()
        if rows.update(look_asked_at=asked_at, proven=delivery_rules.told(found)) and is_first:
            text = f"the agent says that it is done: {delivery_rules.told(found) or 'git did not answer'}"
            announce.tell(lab, NoticeKind.RUN_STEP, text, run=run, by=by)
        slug = run.project.slug
        if asked_at is not None:
            transaction.on_commit(lambda: lab.bell.look(slug), robust=True)
    return found


def has_new_commits(lab: Lab, run: Run) -> bool | None:
    """Whether origin has the run's last commit, and had another one when it went on; None: unknown."""
    return _question(lab, run)()


def may_have_pushed(lab: Lab, run: Run) -> bool:
    """Whether git here notes that it pushed new commits, without asking origin."""
    repo = run.project.repo(lab.paths)
    tip = _fact(lambda: lab.repos.tip(repo, f"refs/heads/{run.branch}"))
    there = _fact(lambda: lab.repos.tip(repo, f"refs/remotes/origin/{run.branch}"))
    return tip is not None and tip != run.head_before and tip == there


def _question(lab: Lab, run: Run) -> Callable[[], bool | None]:
    """What is asked about new commits; the rest of it may run in a thread of its own."""
    try:
        token = git_credentials.of_git(lab, run.project)
    except SeamError as error:
        logger.info("origin was not asked", extra={"run_id": run.pk, "error": str(error)})
        return lambda: None
    branch = replace(branch_of(lab, run), token=token)
    return partial(_has_pushed, lab.repos, branch, run.head_before)


def _has_pushed(repos: Repos, branch: Branch, before: str) -> bool | None:
    tip = _fact(lambda: repos.tip(branch.repo, f"refs/heads/{branch.name}") or "")
    if tip is None or tip in ("", before):
        return None if tip is None else False
    pushed = _fact(lambda: repos.pushed(branch.repo, branch.name, branch.token, branch.url) or "")
    return None if pushed is None else pushed == tip


def ask_amended(lab: Lab, run: Run, by: str) -> bool | None:
    """The agent of a run that adds to an open pull request says that it is done; whether it is.

    Its word stands unless nothing new is on origin for sure. Safe to repeat.
    """
    found = has_new_commits(lab, run)
    if found is False:
        return False
    rows = Run.objects.active().filter(pk=run.pk, look_asked_at=None)
    with transaction.atomic():
        if rows.update(look_asked_at=lab.now()):
            text = "the agent says that it is done"
            announce.tell(lab, NoticeKind.RUN_STEP, text, run=run, by=by)
        slug = run.project.slug
        transaction.on_commit(lambda: lab.bell.look(slug), robust=True)
    return found


def tell_elsewhere(lab: Lab, run: Run, outcome: Outcome | str) -> str:
    """Return what is known of pull requests that a run opened from other branches than its own.

    Asked once, of a run that ends without one; what cannot be told is left out.
    """
    project, has_none = run.project, outcome in (Outcome.DIED, Outcome.TIMED_OUT)
    if not has_none or not run.worktree or run.is_loop or cadence.is_without_pulls(lab, project):
        return ""
    refs = _fact(lambda: lab.repos.own_refs(Path(run.worktree))) or {}
    heads = delivery_rules.branches_beside(refs, run.branch, project.default_branch, run.fork_point)
    if not heads:
        return ""
    root = (project.tracker, project.tracker_root)
    found = fan_out.ask_roots(lab, {root: heads}, lambda tracker, roots: tracker.pulls(roots))
    pulls = found.get(root, ())
    if isinstance(pulls, fan_out.Silence):
        return ""
    mine = [
        (one.number, one.head)
        for one in pulls
        if one.head in heads
        and not one.is_fork
        and one.state is not PullState.CLOSED
        and (one.created_at is None or one.created_at >= run.requested_at)
    ]
    return delivery_rules.elsewhere(mine, run.branch)


def use_up(run: Run, proven: str) -> None:
    """The look that was asked for has found something missing; a later word asks anew."""
    Run.objects.active().filter(pk=run.pk, look_asked_at=run.look_asked_at).update(
        look_asked_at=None, proven=proven
    )


def _since_fork(repos: Repos, branch: Branch, tip: str) -> list[Said]:
    """The newest commits since the fork point. An adopted run forked off the default branch."""
    fork = branch.fork_point or repos.tip(branch.repo, f"refs/remotes/origin/{branch.base}")
    if not fork:
        raise SeamError(f"nothing is known of where {branch.name} began")
    found = repos.commits(branch.repo, fork, tip, MOST_COMMITS)
    return [Said(one.id, f"{one.subject}\n\n{one.body}") for one in found]


def _fact(ask: Callable[[], Fact]) -> Fact | None:
    try:
        return ask()
    except SeamError as error:
        logger.info("a delivery was not looked at whole", extra={"error": str(error)})
        return None


def _answer(done: Future[Fact], unknown: Fact) -> Fact:
    try:
        return done.result()
    except Exception:
        logger.exception("a delivery was not looked at by a mistake of ours")
        return unknown
