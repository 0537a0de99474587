"""Opening a pull request: only for work that is really on origin, and once per branch."""

from __future__ import annotations

import dataclasses
import subprocess
import threading
from pathlib import Path

import pytest
from django.db import connection

from runs.core.ports import SeamError
from runs.core.states import NoticeKind, Outcome
from runs.lifecycle import outcomes, reaper
from runs.models import Notice
from runs.pulls import acts as pulls
from runs.pulls import comparing
from runs.pulls.acts import PullRefused
from tests import make
from tests.desk import Desk
from tests.fakes import World
from tests.real import RealWorld, git
from trackers.base import NotFound, PullState, Refused, Unreachable
from trackers.builtin.models import PullRequest


@pytest.fixture
def desk(real: RealWorld) -> Desk:
    return Desk(real)


def refused(desk: Desk, says: str, **fields: str) -> PullRefused:
    """It was refused with these words, nothing was stored and nobody was woken."""
    with pytest.raises(PullRefused, match=says) as error:
        desk.ask(**fields)
    assert not PullRequest.objects.exists()
    assert not Notice.objects.filter(kind=NoticeKind.PULL_OPENED).exists()
    assert desk.real.bell.looks == []
    return error.value


@pytest.mark.row("LAB-30", level="real")
def test_pushed_work_gets_its_pull_request_and_the_run_is_looked_at_at_once(desk: Desk) -> None:
    head = desk.commit()
    desk.push()

    made = desk.ask(body="It retries now.")

    stored = PullRequest.objects.get()
    assert (stored.number, stored.head, stored.base) == (made.number, "afk/7", "main")
    assert stored.head_commit == head
    assert stored.body == "It retries now.\n\nCloses #7"
    assert stored.state == PullState.OPEN
    notice = Notice.objects.get(kind=NoticeKind.PULL_OPENED)
    assert (notice.run, notice.by) == (desk.run, "Test agent, run 1")
    assert notice.text == f"pull request {made.number} opened: Add retries"
    assert desk.real.bell.looks == ["demo"]


def has_commit(desk: Desk, commit: str) -> bool:
    """Whether the shared repository holds a commit."""
    asked = ["git", "-C", str(desk.repo), "cat-file", "-e", commit]
    return subprocess.run(asked, check=False, capture_output=True).returncode == 0


def test_nothing_is_brought_while_the_agent_waits_until_somebody_compares(desk: Desk) -> None:
    head = desk.commit()
    desk.push()
    desk.ask()
    assert not has_commit(desk, head)
    ends = comparing.ends_of(desk.real.lab, desk.project, PullRequest.objects.get())
    assert (ends.head, has_commit(desk, head)) == (head, True)


@pytest.mark.parametrize("kind", ["gated", "loop", "amends", "unsure"])
def test_what_goes_on_after_its_pull_request_is_brought_at_once(
    desk: Desk, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = desk.commit()
    desk.push()
    if kind == "gated":
        monkeypatch.setattr(type(desk.run), "is_gated", True)
    desk.run.is_loop = kind == "loop"
    desk.run.amends = 3 if kind == "amends" else None
    if kind == "unsure":
        monkeypatch.setattr(desk.real.repos, "glimpse", lambda repo, branch: None)
    assert desk.ask().head_commit == head
    assert has_commit(desk, head)


def test_the_reap_brings_it_before_all_else(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while its agent is still let finish its turn."""
    head = desk.commit()
    desk.push()
    desk.ask()
    outcomes.record(desk.real.lab, desk.run, Outcome.SUCCEEDED, "delivered")
    monkeypatch.setattr(reaper, "_may_close", lambda lab, run: True)
    assert not reaper.settle(desk.real.lab, desk.run)
    assert has_commit(desk, head)


def test_a_branch_that_was_never_pushed_is_refused(desk: Desk) -> None:
    desk.commit()
    assert refused(desk, "origin has no branch afk/7 yet").field == "head"


def test_a_pushed_branch_without_new_work_is_refused(desk: Desk) -> None:
    desk.push()
    refused(desk, "holds no commit that main does not have")


def test_a_commit_that_was_not_pushed_with_the_rest_is_asked_for(desk: Desk) -> None:
    desk.commit()
    desk.push()
    desk.commit("and this too\n")
    refused(desk, "commits here that origin does not have")

    desk.push()
    assert desk.ask().head == "afk/7"


def test_work_that_was_pushed_from_elsewhere_counts(desk: Desk, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(desk.real.folder / "demo-origin.git"), str(other))
    git(other, "checkout", "-qb", "afk/7")
    (other / "hello.txt").write_text("from elsewhere\n")
    git(other, "commit", "-qam", "feat: from elsewhere")
    git(other, "push", "-q", "origin", "afk/7")

    assert desk.ask().head_commit == git(other, "rev-parse", "HEAD")


@pytest.mark.parametrize("move", [["branch", "-m", "other"], ["checkout", "-q", "-b", "other"]])
def test_work_on_a_branch_of_another_name_counts_once_it_is_pushed_as_the_run_s(
    desk: Desk, move: list[str]
) -> None:
    git(desk.tree, *move)
    head = desk.commit()
    git(desk.tree, "push", "-q", "origin", "HEAD:refs/heads/afk/7")
    assert desk.ask().head_commit == head


def test_another_base_must_be_on_origin(desk: Desk) -> None:
    desk.commit()
    desk.push()
    refused(desk, "origin has no branch release", base="release")
    for base in ("-x", "a..b", "afk/7", "$(id)", "a b"):
        refused(desk, "cannot go into that branch", base=base)

    git(desk.tree, "push", "-q", "origin", "origin/main:refs/heads/release")
    assert desk.ask(base="release").base == "release"


def test_a_closing_word_is_not_said_twice(desk: Desk) -> None:
    desk.commit()
    desk.push()
    desk.ask(body="Fixes #7.")
    assert PullRequest.objects.get().body == "Fixes #7."


def test_asking_again_gives_the_same_one_and_rings_again(desk: Desk) -> None:
    desk.commit()
    desk.push()

    first, second = desk.ask(), desk.ask(title="other words")

    assert (first.number, second.number) == (1, 1)
    assert second.title == "Add retries"
    assert Notice.objects.filter(kind=NoticeKind.PULL_OPENED).count() == 1
    assert desk.real.bell.looks == ["demo", "demo"]


def test_two_that_ask_at_once_get_the_same_one(desk: Desk) -> None:
    desk.commit()
    desk.push()
    numbers: list[int] = []
    barrier = threading.Barrier(3)

    def ask() -> None:
        barrier.wait()
        numbers.append(desk.ask().number)
        connection.close()

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert numbers == [1, 1, 1]
    assert PullRequest.objects.count() == 1


@pytest.mark.row("LAB-31", level="real")
def test_after_a_closed_one_a_new_one_may_be_opened(desk: Desk) -> None:
    desk.commit()
    desk.push()
    first = desk.ask()
    assert pulls.close(desk.real.lab, desk.project, first.number, by="anna") is True
    assert pulls.close(desk.real.lab, desk.project, first.number, by="anna") is False

    shown = pulls.of_run(desk.real.lab, desk.run)
    assert shown is not None
    assert shown.state is PullState.CLOSED
    assert desk.ask().number == 2
    told = Notice.objects.filter(kind=NoticeKind.PULL_CHANGED).values_list("text", "by")
    assert list(told) == [("pull request 1 closed without a merge", "anna")]


def test_a_run_that_has_ended_opens_none(desk: Desk) -> None:
    desk.commit()
    desk.push()
    outcomes.record(desk.real.lab, desk.run, Outcome.STOPPED, "stopped by anna", by="anna")
    desk.real.bell.looks.clear()
    assert refused(desk, "This run has ended").field == "run"


def test_a_run_that_ends_while_git_is_asked_opens_none(desk: Desk) -> None:
    desk.commit()
    desk.push()
    lab = desk.real.lab

    class StoppedMeanwhile(type(desk.real.repos)):  # type: ignore[misc]
        def is_ahead(self, *asked: object) -> bool:
            outcomes.record(lab, desk.run, Outcome.STOPPED, "stopped by anna", by="anna")
            return bool(super().is_ahead(*asked))

    repos = StoppedMeanwhile(desk.real.repos._git)
    with pytest.raises(PullRefused, match="This run has ended"):
        pulls.create(dataclasses.replace(lab, repos=repos), desk.run, title="t", by="agent")
    assert not PullRequest.objects.exists()


@pytest.mark.parametrize(
    ("fields", "field"), [({"title": " "}, "title"), ({"body": "x" * 200_001}, "body")]
)
def test_a_text_that_cannot_be_kept_is_refused_at_its_field(
    desk: Desk, fields: dict[str, str], field: str
) -> None:
    desk.commit()
    desk.push()
    assert refused(desk, "Write a title|at most", **fields).field == field


def test_an_origin_that_does_not_answer_is_no_verdict_about_the_branch(desk: Desk) -> None:
    desk.commit()
    desk.push()
    (desk.real.folder / "demo-origin.git").rename(desk.real.folder / "away")

    with pytest.raises(SeamError, match="ls-remote"):
        desk.ask()
    assert not PullRequest.objects.exists()

    (desk.real.folder / "away").rename(desk.real.folder / "demo-origin.git")
    assert desk.ask().number == 1


# What needs no git.


@pytest.mark.django_db
def test_a_tracker_that_cannot_open_pull_requests_is_not_asked(world: World) -> None:
    run = make.a_run(make.a_project(tracker=""))
    with pytest.raises(PullRefused, match="cannot open pull requests") as error:
        pulls.create(world.lab, run, title="t", by="agent")
    assert error.value.field == "tracker"
    with pytest.raises(Refused):
        pulls.of_run(world.lab, run)
    with pytest.raises(Refused):
        pulls.close(world.lab, run.project, 1, by="anna")


@pytest.mark.django_db
def test_a_tracker_that_is_silent_is_no_answer(world: World) -> None:
    world.tracker.add_root("demo")
    run = make.a_run(make.a_project())
    assert pulls.of_run(world.lab, run) is None
    world.tracker.fail("demo")
    with pytest.raises(Unreachable, match="answered 500"):
        pulls.create(world.lab, run, title="t", by="agent")


@pytest.mark.django_db
def test_a_race_that_another_tracker_refuses_gives_the_standing_one(world: World) -> None:
    world.tracker.add_root("demo")
    run = make.a_run(make.a_project(), fork_point="f" * 40)
    repo = run.project.repo(world.lab.paths)
    world.repos.origins[str(repo)] = {"afk/7": "a" * 40}
    made = pulls.create(world.lab, run, title="t", by="agent")
    again = pulls.create(dataclasses.replace(world.lab), run, title="t", by="agent")
    assert again.number == made.number == 1


@pytest.mark.django_db
def test_a_draft_is_not_taken_for_a_delivery(world: World) -> None:
    world.tracker.add_root("demo")
    run = make.a_run(make.a_project(), fork_point="f" * 40)
    world.tracker.add_pull("demo", "afk/7", number=3, is_draft=True)
    with pytest.raises(PullRefused, match="Pull request 3 of afk/7 is a draft"):
        pulls.create(world.lab, run, title="t", by="agent")


@pytest.mark.django_db
def test_closing_what_is_not_there_is_not_found(world: World) -> None:
    from trackers.builtin import store

    project = make.a_project(tracker="builtin", tracker_root=store.create_root("demo"))
    with pytest.raises(NotFound):
        pulls.close(world.lab, project, 4, by="anna")
