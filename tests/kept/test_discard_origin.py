"""Discard and start again after work had reached origin: on real git, with the built-in tracker."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from runs import sweep
from runs.core.ports import SeamError
from runs.core.states import Outcome
from runs.kept import discard, parked
from runs.lifecycle.stop import stop
from runs.models import Notice, Project, Rescue, Run
from runs.pulls import acts as pulls
from runs.pulls import merging
from tests.real import RealWorld, git
from tests.world.stories import begin, commit, look, press_start, project_with_an_issue
from trackers.builtin import queries
from trackers.builtin.models import Issue, PullRequest

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project(real: RealWorld) -> Project:
    return project_with_an_issue(real)


def push(run: Run) -> None:
    """As an agent does: never by force."""
    git(Path(run.worktree), "push", "-q", "origin", run.branch)


def on_origin(project: Project) -> list[str]:
    listed = git(Path(project.url), "for-each-ref", "--format=%(refname:strip=2)", "refs/heads")
    return sorted(listed.split())


def delivered_and_parked(real: RealWorld, project: Project) -> tuple[Run, str]:
    """A run that pushed and opened a pull request, and that a person stopped before the tick."""
    run = begin(real, project)
    tip = commit(run, "first")
    push(run)
    pulls.create(real.lab, run, title="First")
    stop(real.lab, run, "anna")
    return run, tip


def test_a_discard_takes_branch_and_pull_request_along_and_the_issue_is_delivered_again(
    real: RealWorld, project: Project
) -> None:
    _, tip = delivered_and_parked(real, project)
    assert on_origin(project) == ["afk/1", "main"]
    done = discard.discard(real.lab, project, "afk/1", "anna")
    assert done.on_origin == "Pull request 2 was closed. afk/1 was deleted on origin too."
    assert on_origin(project) == ["main"]
    assert queries.pull(project.tracker_root, 2).state == "closed"
    assert done.rescue.tip == tip
    assert "Pull request 2 was closed" in Notice.objects.get(kind="work.discarded").text

    again = begin(real, project)
    look(real)
    again.refresh_from_db()
    assert again.is_active
    commit(again, "second")
    push(again)
    assert pulls.create(real.lab, again, title="Second").number == 3
    look(real)
    again.refresh_from_db()
    assert (again.outcome, again.commits, again.pull_number) == (Outcome.SUCCEEDED, 1, 3)


def test_what_only_origin_has_is_rescued_too(real: RealWorld, project: Project) -> None:
    run, tip = delivered_and_parked(real, project)
    git(Path(run.worktree), "reset", "-q", "--hard", "HEAD~1")
    other = commit(run, "other")
    discard.discard(real.lab, project, "afk/1", "anna")
    assert set(Rescue.objects.values_list("tip", flat=True)) == {tip, other}


def test_a_branch_that_is_on_origin_alone_is_discarded_too(
    real: RealWorld, project: Project
) -> None:
    _, tip = delivered_and_parked(real, project)
    repo = project.repo(real.paths)
    real.repos.force_remove(repo, Path(Run.objects.get().worktree))
    real.repos.delete_branch(repo, "afk/1", tip)
    (shown,) = parked.listing(real.lab, project).entries
    assert (shown.branch, shown.is_remote, shown.run_id) == ("afk/1", True, Run.objects.get().pk)
    assert discard.discard(real.lab, project, "afk/1", "anna").rescue.tip == tip
    assert on_origin(project) == ["main"]
    assert not parked.listing(real.lab, project).entries
    with pytest.raises(discard.DiscardRefused, match="no branch afk/1 any more"):
        discard.discard(real.lab, project, "afk/1", "anna")


def test_what_the_base_holds_already_stays_on_origin(real: RealWorld, project: Project) -> None:
    run, _ = delivered_and_parked(real, project)
    git(Path(run.worktree), "push", "-q", "origin", "afk/1:main")
    real.repos.fetch(project.repo(real.paths))
    discard.discard(real.lab, project, "afk/1", "anna")
    assert on_origin(project) == ["afk/1", "main"]


def test_an_origin_that_keeps_its_branch_is_told_and_the_work_here_goes(
    real: RealWorld, project: Project
) -> None:
    run, _ = delivered_and_parked(real, project)
    git(Path(project.url), "config", "receive.denyDeletes", "true")
    done = discard.discard(real.lab, project, "afk/1", "anna")
    assert "Origin kept its branch afk/1" in done.on_origin
    assert not Path(run.worktree).exists()
    assert on_origin(project) == ["afk/1", "main"]


def test_a_start_is_refused_while_origin_has_other_commits_under_the_name(
    real: RealWorld, project: Project
) -> None:
    delivered_and_parked(real, project)
    git(Path(project.url), "config", "receive.denyDeletes", "true")
    discard.discard(real.lab, project, "afk/1", "anna")
    asked = press_start(real, project, wanted="1")
    assert "origin has a branch afk/1 with other commits" in asked.text
    assert not Run.objects.active().exists()


def test_an_origin_that_is_away_keeps_nobody_from_discarding(
    real: RealWorld, project: Project
) -> None:
    delivered_and_parked(real, project)
    Project.objects.update(url=f"{project.url}.away")
    project.refresh_from_db()
    done = discard.discard(real.lab, project, "afk/1", "anna")
    assert "Origin could not be asked whether it has afk/1 too" in done.on_origin


@pytest.mark.row("LAB-77", level="real")
def test_an_open_pull_request_of_an_earlier_run_is_no_delivery_until_it_has_this_run_s_commits(
    real: RealWorld, project: Project
) -> None:
    run, tip = delivered_and_parked(real, project)
    repo = project.repo(real.paths)
    real.repos.force_remove(repo, Path(run.worktree))
    real.repos.delete_branch(repo, "afk/1", tip)
    git(
        Path(project.url), "branch", "-q", "-D", "afk/1"
    )  # by hand, and its pull request stays open
    again = begin(real, project)
    look(real)
    again.refresh_from_db()
    assert again.is_active
    commit(again, "second")
    with pytest.raises(pulls.PullRefused, match="git push origin afk/1"):
        pulls.create(real.lab, again, title="Second")
    push(again)
    assert pulls.create(real.lab, again, title="Second").number == 2
    look(real)
    again.refresh_from_db()
    assert (again.outcome, again.commits, again.pull_number) == (Outcome.SUCCEEDED, 1, 2)


def test_commits_that_are_not_pushed_are_missed_although_a_pull_request_is_open(
    real: RealWorld, project: Project
) -> None:
    run = begin(real, project)
    commit(run, "first")
    push(run)
    pulls.create(real.lab, run, title="First")
    commit(run, "more")
    with pytest.raises(pulls.PullRefused, match="Push them first: git push origin afk/1"):
        pulls.create(real.lab, run, title="First")
    git(Path(run.worktree), "commit", "-q", "--amend", "-m", "feat: amended")
    git(Path(run.worktree), "reset", "-q", "--hard", "HEAD~2")
    commit(run, "rewritten")
    with pytest.raises(pulls.PullRefused, match="git rebase origin/afk/1"):
        pulls.create(real.lab, run, title="First")


@pytest.mark.parametrize("is_deleted", [False, True], ids=["branch stays", "branch deleted"])
def test_what_somebody_merged_with_git_on_origin_is_merged_here_and_its_issue_closed(
    real: RealWorld, project: Project, is_deleted: bool
) -> None:
    run = begin(real, project)
    commit(run, "first")
    push(run)
    pulls.create(real.lab, run, title="First")
    git(Path(run.worktree), "push", "-q", "origin", "afk/1:main")
    if is_deleted:
        git(Path(run.worktree), "push", "-q", "origin", "--delete", "afk/1")
    look(real)
    real.offset += timedelta(minutes=11)
    sweep.carry_out(real.lab, project.pk)
    assert queries.pull(project.tracker_root, 2).state == "merged"
    assert not Issue.objects.get(number=1).is_open
    told = Notice.objects.get(kind="pull.merged")
    assert (told.by, told.text) == ("", "pull request 2 found merged into main: First")
    assert press_start(real, project).text.startswith("Nothing is ready")


def test_an_open_pull_request_with_new_commits_after_a_merge_stays_open(
    real: RealWorld, project: Project
) -> None:
    run = begin(real, project)
    commit(run, "first")
    push(run)
    pulls.create(real.lab, run, title="First")
    git(Path(run.worktree), "push", "-q", "origin", "afk/1:main")
    commit(run, "second")
    push(run)
    real.repos.fetch(project.repo(real.paths), url=project.url)
    assert merging.notice_merged(real.lab, project) == 0
    assert queries.pull(project.tracker_root, 2).state == "open"


def test_an_empty_branch_never_passes_for_a_merged_pull_request(
    real: RealWorld, project: Project
) -> None:
    run, tip = delivered_and_parked(real, project)
    repo = project.repo(real.paths)
    real.repos.force_remove(repo, Path(run.worktree))
    real.repos.delete_branch(repo, "afk/1", tip)
    git(Path(project.url), "branch", "-q", "-D", "afk/1")
    again = begin(real, project)
    push(again)
    with pytest.raises(pulls.PullRefused, match="holds no commit that main does not have"):
        pulls.create(real.lab, again, title="Nothing")
    assert merging.notice_merged(real.lab, project) == 0
    assert queries.pull(project.tracker_root, 2).state == "open"


def test_nothing_is_taken_from_under_a_merge(real: RealWorld, project: Project) -> None:
    delivered_and_parked(real, project)
    PullRequest.objects.update(merge_at=real.lab.now(), merge_by="ben")
    with pytest.raises(discard.DiscardRefused, match="Somebody is merging afk/1"):
        discard.discard(real.lab, project, "afk/1", "anna")
    assert on_origin(project) == ["afk/1", "main"]


def test_an_origin_that_cannot_be_asked_is_not_said_to_have_nothing(
    real: RealWorld, project: Project
) -> None:
    Project.objects.update(url=f"{project.url}.away")
    project.refresh_from_db()
    with pytest.raises(SeamError, match="origin could not be asked"):
        discard.discard(real.lab, project, "afk/1", "anna")
