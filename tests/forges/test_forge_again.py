"""On forges: discarded and started again, and what comes of a pull request that was closed unmerged."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from runs import sweep
from runs.kept import discard
from runs.lifecycle.stop import stop
from runs.models import Notice, Project, Run
from runs.overview import board, digest
from runs.pulls import acts as pulls
from tests.forges.forge_house import a_run, again, commit_and_push, forge, project, repo_of
from tests.real import RealWorld, git
from tests.trackers.forge import Double
from tests.world.stories import begin, commit, look

pytestmark = pytest.mark.django_db(transaction=True)

__all__ = ["forge", "project"]


def ten_minutes_later(real: RealWorld, project: Project) -> None:
    real.offset += timedelta(minutes=11)
    sweep.carry_out(real.lab, project.pk)


@pytest.mark.row("LAB-77", level="real")
@pytest.mark.parametrize(
    ("forge", "has_closed"),
    [
        pytest.param("github", False, id="still open there"),
        pytest.param("gitea", True, id="closed there"),
    ],
    indirect=["forge"],
)
def test_discarded_with_an_open_pull_request_and_started_again_the_new_work_is_delivered(
    real: RealWorld, forge: Double, project: Project, has_closed: bool
) -> None:
    """A forge closes the pull request of a deleted branch, some sooner than others."""
    run = a_run(real, project)
    commit_and_push(run)
    first = pulls.create(real.lab, run, title="First")
    stop(real.lab, run, "anna")
    look(real)
    done = discard.discard(real.lab, project, "afk/7", "anna")
    assert "afk/7 was deleted on origin too" in done.on_origin
    if has_closed:
        repo_of(forge).close(repo_of(forge).items[first.number])

    run = begin(real, project, "7")
    look(real)
    assert again(run).is_active
    tip = commit(run, "second", "more.txt")
    look(real)
    assert again(run).is_active
    with pytest.raises(pulls.PullRefused, match="git push origin afk/7"):
        pulls.create(real.lab, run, title="Second")
    git(Path(run.worktree), "push", "-q", "origin", "afk/7")
    second = pulls.create(real.lab, run, title="Second")
    assert (second.number == first.number) is not has_closed
    item = repo_of(forge).items[second.number]
    assert item.pull is not None
    assert repo_of(forge).head_of(item.pull) == tip
    look(real)
    run = again(run)
    assert (run.outcome, run.commits, run.pull_number) == ("succeeded", 1, second.number)


def test_a_run_that_died_after_its_push_is_discarded_and_labctl_advises_a_push_that_works(
    real: RealWorld, forge: Double, project: Project
) -> None:
    run = a_run(real, project)
    commit_and_push(run)
    real.tmux("kill-session", "-t", run.session)
    look(real)
    assert again(run).outcome == "died"
    discard.discard(real.lab, project, "afk/7", "anna")

    run = begin(real, project, "7")
    commit(run, "second", "more.txt")
    with pytest.raises(pulls.PullRefused) as refused:
        pulls.create(real.lab, run, title="Second")
    advised = refused.value.text.partition("git ")[2].split("\n")[0].rstrip(".")
    git(Path(run.worktree), *advised.split())
    pulls.create(real.lab, run, title="Second")
    look(real)
    assert again(run).outcome == "succeeded"


@pytest.mark.parametrize("forge", ["gitea"], indirect=True)
def test_new_commits_beside_an_open_pull_request_are_missed_until_they_are_pushed(
    real: RealWorld, forge: Double, project: Project
) -> None:
    run = a_run(real, project)
    commit_and_push(run)
    pulls.create(real.lab, run, title="First")
    commit(run, "more", "more.txt")
    with pytest.raises(pulls.PullRefused, match="Push them first: git push origin afk/7"):
        pulls.create(real.lab, run, title="First")


def delivered(real: RealWorld, project: Project) -> Run:
    run = a_run(real, project)
    commit_and_push(run)
    pulls.create(real.lab, run, title="Add retries")
    look(real)
    assert again(run).outcome == "succeeded"
    return again(run)


def told(real: RealWorld) -> list[tuple[str, str]]:
    picture = board.load(real.lab, recent=50, with_waiting=True)
    rows = digest.needs(picture).rows
    needs = [row.need for row in rows]
    return [(one.title, one.what) for one in needs if one.title != "The worker"]


def test_a_pull_request_that_was_closed_unmerged_needs_somebody_until_it_is_decided(
    real: RealWorld, forge: Double, project: Project
) -> None:
    run = delivered(real, project)
    item = repo_of(forge).items[run.pull_number]
    ten_minutes_later(real, project)
    assert told(real) == [(f"demo #{item.number}", "waits for your review")]
    repo_of(forge).close(item)
    ten_minutes_later(real, project)
    ten_minutes_later(real, project)
    assert told(real) == [(f"demo #{item.number}", "was closed without merging")]
    text = f"pull request {item.number} of afk/7 was closed without merging"
    assert Notice.objects.filter(text=text).count() == 1

    item.is_open = True
    repo_of(forge).touch(item)
    ten_minutes_later(real, project)
    assert told(real) == [(f"demo #{item.number}", "waits for your review")]

    repo_of(forge).close(item)
    ten_minutes_later(real, project)
    discard.discard(real.lab, project, "afk/7", "anna")
    assert told(real) == []
    begin(real, project, "7")
    ten_minutes_later(real, project)
    assert told(real) == []


@pytest.mark.parametrize("forge", ["github"], indirect=True)
def test_a_closed_pull_request_of_an_earlier_run_is_not_told_of_a_later_one(
    real: RealWorld, forge: Double, project: Project
) -> None:
    run = delivered(real, project)
    repo_of(forge).close(repo_of(forge).items[run.pull_number])
    discard.discard(real.lab, project, "afk/7", "anna")
    run = begin(real, project, "7")
    commit(run, "lost", "more.txt")
    real.tmux("kill-session", "-t", run.session)
    look(real)
    ten_minutes_later(real, project)
    assert "was closed without merging" not in dict(told(real)).values()
