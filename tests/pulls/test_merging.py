"""Merging a pull request on real git: once, by one person, and origin's branch is the truth."""

from __future__ import annotations

import dataclasses
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection

from runs import sweep
from runs.core.ports import SeamError
from runs.core.states import NoticeKind
from runs.machine.worktrees import GitWorktrees
from runs.models import Notice, Project, Run
from runs.pulls import acts as pulls
from runs.pulls import mergeable, merging
from runs.pulls.merging import Merged, MergeRefused
from runs.pulls.rules import MergeKind
from tests.desk import Desk
from tests.real import RealWorld, git
from tests.repositories import a_checkout
from trackers.base import NotFound, Refused
from trackers.builtin import store
from trackers.builtin.models import Issue, PullRequest


class Review(Desk):
    """A desk whose agent has opened its pull request, seen by those who merge."""

    def __init__(self, real: RealWorld) -> None:
        super().__init__(real)
        self.origin = real.folder / "demo-origin.git"
        self.issue = self.new_issue()
        self.head = self.commit()
        self.push()
        self.number = self.ask(body=f"Closes #{self.issue}").number
        real.bell.looks.clear()
        self.lab = real.lab

    def new_issue(self) -> int:
        now = self.real.lab.now()
        root = self.project.tracker_root
        return store.create_issue(root, title="x", body="", author="anna", labels=(), at=now)

    @property
    def pull(self) -> PullRequest:
        return PullRequest.objects.get(number=self.number)

    @property
    def main(self) -> str:
        return self.at("main")

    def at(self, branch: str) -> str:
        return git(self.origin, "rev-parse", f"refs/heads/{branch}")

    def merge(self, by: str = "anna", **more: str) -> Merged:
        project = Project.objects.get(pk=self.project.pk)
        return merging.merge(self.lab, project, self.number, by=by, seen=merging.Seen(**more))

    def refused(self, code: str, says: str, **more: str) -> MergeRefused:
        """It was refused with this code and these words, and nothing was changed."""
        before = self.main
        with pytest.raises(MergeRefused, match=says) as error:
            self.merge(**more)
        assert error.value.code == code
        assert self.main == before
        assert self.pull.state == "open"
        assert self.pull.merge_at is None
        assert not Notice.objects.filter(kind=NoticeKind.PULL_MERGED).exists()
        return error.value

    def go_on(self, text: str = "other\n", name: str = "other.txt", branch: str = "main") -> str:
        """Somebody else pushes to a branch of origin."""
        folder = self.real.folder / f"elsewhere-{branch}-{name}"
        git(self.real.folder, "clone", "-q", "-b", branch, str(self.origin), str(folder))
        (folder / name).write_text(text)
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", "feat: from elsewhere")
        git(folder, "push", "-q", "origin", branch)
        return git(folder, "rev-parse", "HEAD")

    def with_repos(self, kind: type) -> None:
        self.lab = dataclasses.replace(self.lab, repos=kind(self.real.repos._git))

    def told(self, kind: NoticeKind) -> list[tuple[str, str]]:
        return list(Notice.objects.filter(kind=kind).values_list("text", "by"))


@pytest.fixture
def review(real: RealWorld) -> Review:
    return Review(real)


def test_the_base_moves_forward_when_that_is_enough(review: Review) -> None:
    base = review.main
    assert review.merge().closed == [review.issue]

    pull = review.pull
    assert review.main == review.head
    assert (pull.state, pull.merge_by, pull.merge_commit) == ("merged", "anna", review.head)
    assert (pull.base_commit, pull.head_commit) == (base, review.head)
    assert pull.merge_at is not None
    number = review.number
    assert review.told(NoticeKind.PULL_MERGED) == [
        (f"pull request {number} merged into main: Add retries", "anna")
    ]
    assert (f"issue closed by pull request {number}", "anna") in review.told(
        NoticeKind.ISSUE_CHANGED
    )
    assert not Issue.objects.get(number=review.issue).is_open
    assert review.real.bell.looks[-1] == "demo"


def test_a_base_that_went_on_gets_a_merge_commit(review: Review) -> None:
    base = review.go_on()
    made = review.merge().commit
    assert review.main == made
    parents = git(review.origin, "show", "-s", "--format=%P|%an|%s", made)
    assert parents == f"{base} {review.head}|anna|Merge pull request #{review.number} from afk/7"
    shown = (
        git(review.origin, "show", f"{made}:hello.txt"),
        git(review.origin, "show", f"{made}:other.txt"),
    )
    assert shown == ("hello again", "other")


def test_a_conflict_names_its_files_and_changes_nothing(review: Review) -> None:
    review.go_on("hello there\n", "hello.txt")
    error = review.refused("conflict", "hello.txt.*Nothing was changed")
    assert error.files == ("hello.txt",)


def test_a_protected_branch_is_explained_and_nothing_is_changed(review: Review) -> None:
    hook = review.origin / "hooks" / "update"
    hook.write_text("#!/bin/sh\n[ $1 != refs/heads/main ] || { echo 'ask bert first'; exit 1; }\n")
    hook.chmod(0o755)
    review.refused("protected", "does not let labsite change main.*")
    hook.unlink()
    assert review.merge().into == "main"


def test_a_head_that_vanished_is_explained(review: Review) -> None:
    git(review.origin, "update-ref", "-d", "refs/heads/afk/7")
    review.refused("head_gone", "Origin has no branch afk/7 any more")


def test_an_origin_that_is_away_is_no_answer(review: Review) -> None:
    review.origin.rename(review.real.folder / "away")
    with pytest.raises(SeamError):
        review.merge()
    assert (review.pull.state, review.pull.merge_at) == ("open", None)


def test_a_default_branch_with_another_name_takes_the_merge(review: Review) -> None:
    git(review.origin, "branch", "-m", "main", "trunk")
    assert review.merge().into == "trunk"
    assert review.at("trunk") == review.head
    assert review.pull.base == "trunk"
    assert Project.objects.get().default_branch == "trunk"
    assert not Issue.objects.get(number=review.issue).is_open


def test_what_the_person_saw_is_what_is_merged(review: Review) -> None:
    seen = review.head
    review.commit("later\n")
    review.push()
    review.refused("head_moved", "New commits have come", head=seen)
    review.refused("base_moved", "would go into main now", into="trunk")
    assert review.merge(head=git(review.tree, "rev-parse", "HEAD"), into="main").into == "main"


def test_a_branch_that_was_emptied_has_nothing_to_merge(review: Review) -> None:
    git(review.tree, "reset", "-q", "--hard", "HEAD~1")
    review.push("--force")
    review.refused("nothing", "There is nothing to merge")


def test_what_was_merged_by_hand_is_marked(review: Review) -> None:
    git(review.origin, "update-ref", "refs/heads/main", review.head)
    review.merge()
    assert review.pull.state == "merged"
    assert review.told(NoticeKind.PULL_MERGED)[0][0].startswith(
        f"pull request {review.number} found merged into main"
    )


def test_words_in_title_and_commits_close_issues_too(review: Review) -> None:
    title, message, none = review.new_issue(), review.new_issue(), review.new_issue()
    PullRequest.objects.update(title=f"FIXES #{title}")
    (review.tree / "hello.txt").write_text("more\n")
    git(review.tree, "commit", "-qam", f"feat: more\n\nresolves: #{message}, see #{none}")
    review.push()
    assert review.merge().closed == [review.issue, title, message]
    assert Issue.objects.get(number=none).is_open


def test_only_what_reaches_the_default_branch_closes_issues(review: Review) -> None:
    git(review.origin, "branch", "release", "main")
    PullRequest.objects.update(base="release")
    assert review.merge().closed == []
    assert Issue.objects.get(number=review.issue).is_open
    assert review.at("release") == review.head != review.main


def test_a_merge_that_was_done_says_so(review: Review) -> None:
    review.merge()
    with pytest.raises(MergeRefused, match="was merged by anna already") as error:
        review.merge(by="bert")
    assert error.value.code == "merged"
    assert review.pull.merge_by == "anna"


def test_a_closed_one_is_not_merged(review: Review) -> None:
    pulls.close(review.lab, review.project, review.number, by="anna")
    with pytest.raises(MergeRefused, match="closed without a merge"):
        review.merge()
    assert review.main != review.head


def test_of_several_that_merge_at_once_exactly_one_does(review: Review) -> None:
    review.go_on()
    before = review.main
    answers: list[object] = []
    barrier = threading.Barrier(3)

    def press(name: str) -> None:
        barrier.wait()
        try:
            answers.append(review.merge(by=name))
        except (MergeRefused, SeamError) as error:
            answers.append(error)
        connection.close()

    threads = [threading.Thread(target=press, args=(n,)) for n in ("anna", "bert", "cleo")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    done = [one for one in answers if isinstance(one, Merged)]
    told = [one for one in answers if isinstance(one, MergeRefused)]
    assert len(done) == 1, answers
    assert len(told) == 2, answers
    assert {one.code for one in told} <= {"merged", "busy"}
    assert git(review.origin, "rev-list", "--merges", f"{before}..main").count("\n") == 0
    assert review.main == done[0].commit == review.pull.merge_commit
    assert [by for _, by in review.told(NoticeKind.PULL_MERGED)] == [review.pull.merge_by]


def test_who_comes_second_in_the_last_moment_is_told_and_pushes_nothing(review: Review) -> None:
    at = review.real.lab.now()

    class Late(GitWorktrees):
        def commits(self, *asked):  # type: ignore[no-untyped-def]
            store.begin_merge(
                review.project.tracker_root,
                review.number,
                by="bert",
                commit="b" * 40,
                base="main",
                ends=("", review.head),
                at=at,
                lapsed=at - mergeable.LAPSE,
            )
            return super().commits(*asked)

        def push_commit(self, *asked):  # type: ignore[no-untyped-def]
            raise AssertionError("two were pushing at once")

    review.with_repos(Late)
    with pytest.raises(MergeRefused, match="bert is merging it just now") as error:
        review.merge()
    assert error.value.code == "busy"
    assert review.pull.merge_by == "bert"


def test_a_base_that_moves_meanwhile_is_merged_as_it_is_then(review: Review) -> None:
    moved: list[str] = []

    class Racing(GitWorktrees):
        def make_merge(self, repo, wanted):  # type: ignore[no-untyped-def]
            made = super().make_merge(repo, wanted)
            if len(moved) < 1:
                moved.append(review.go_on(name="late.txt"))
            return made

    review.go_on()
    review.with_repos(Racing)
    made = review.merge().commit
    assert git(review.origin, "show", "-s", "--format=%P", made).startswith(moved[0])


def test_a_base_that_never_rests_is_given_up(review: Review) -> None:
    count: list[int] = []

    class Racing(GitWorktrees):
        def push_commit(self, *asked):  # type: ignore[no-untyped-def]
            count.append(1)
            review.go_on(name=f"late{len(count)}.txt")
            super().push_commit(*asked)

    review.with_repos(Racing)
    with pytest.raises(MergeRefused, match="again and again") as error:
        review.merge()
    assert (error.value.code, len(count)) == ("moved", merging.TRIES)
    assert (review.pull.state, review.pull.merge_at) == ("open", None)


class Killed(BaseException):
    """The process was killed just then."""


class KilledAfter(GitWorktrees):
    def push_commit(self, *asked):  # type: ignore[no-untyped-def]
        super().push_commit(*asked)
        raise Killed


class KilledBefore(GitWorktrees):
    def push_commit(self, *asked):  # type: ignore[no-untyped-def]
        raise Killed


def killed(review: Review, kind: type) -> None:
    """Anna merges, and the process is killed on the way; then the product is started again."""
    review.with_repos(kind)
    with pytest.raises(Killed):
        review.merge()
    review.lab = review.real.lab
    assert (review.pull.state, review.pull.merge_by) == ("open", "anna")


def test_a_kill_after_the_push_is_finished_by_the_next_sweep(review: Review) -> None:
    killed(review, KilledAfter)
    assert merging.recover(review.lab, review.project) == 0  # somebody may still be at it
    Project.objects.update(parked=0, swept_at=review.lab.now())
    assert sweep.ask(review.lab) == 0
    review.real.offset += 2 * mergeable.LAPSE
    assert sweep.ask(review.lab) == 1
    sweep.carry_out(review.lab, review.real.queue.sweeps.pop())
    assert merging.recover(review.lab, review.project) == 0
    assert (review.pull.state, review.pull.merge_by) == ("merged", "anna")
    assert not Issue.objects.get(number=review.issue).is_open
    assert len(review.told(NoticeKind.PULL_MERGED)) == 1


def test_a_kill_after_the_push_is_finished_by_whoever_presses_next(review: Review) -> None:
    killed(review, KilledAfter)
    with pytest.raises(MergeRefused, match="was merged by anna already"):
        review.merge(by="bert")
    assert (review.pull.state, review.pull.merge_by) == ("merged", "anna")


def test_a_kill_before_the_push_is_taken_back(review: Review) -> None:
    killed(review, KilledBefore)
    with pytest.raises(MergeRefused, match="anna is merging it just now"):
        review.merge(by="bert")
    with pytest.raises(Refused, match="anna is merging it"):
        pulls.close(review.lab, review.project, review.number, by="bert")
    said = mergeable.verdict(review.lab, review.project, review.pull)
    assert said.kind is MergeKind.BUSY

    review.real.offset += 2 * mergeable.LAPSE
    assert merging.recover(review.lab, review.project) == 0
    assert (review.pull.state, review.pull.merge_by, review.pull.merge_at) == ("open", "", None)
    review.merge(by="bert")
    assert review.pull.merge_by == "bert"


def test_a_merge_of_which_nothing_is_known_stays_noted(review: Review) -> None:
    killed(review, KilledAfter)
    review.real.offset += 2 * mergeable.LAPSE
    review.origin.rename(review.real.folder / "away")
    with pytest.raises(SeamError):
        merging.recover(review.lab, review.project)
    assert review.pull.merge_by == "anna"
    (review.real.folder / "away").rename(review.origin)
    assert merging.recover(review.lab, review.project) == 1


def test_a_push_without_an_answer_is_asked_after(review: Review) -> None:
    class Silent(GitWorktrees):
        does = True

        def push_commit(self, *asked):  # type: ignore[no-untyped-def]
            if self.does:
                super().push_commit(*asked)
            raise SeamError("git push gave no answer within 60 seconds")

    review.with_repos(Silent)
    Silent.does = False
    with pytest.raises(SeamError, match="Nothing was changed"):
        review.merge()
    assert (review.pull.state, review.pull.merge_at) == ("open", None)
    Silent.does = True
    assert review.merge().commit == review.main
    assert review.pull.state == "merged"


def test_a_project_whose_origin_is_ours_is_merged_there(real: RealWorld, tmp_path: Path) -> None:
    from runs.projects import acts as projects
    from runs.projects.acts import Project as Row

    source = a_checkout(tmp_path / "own")
    made: Row = projects.add(real.lab, name="own", source=str(source), token="", by="anna")
    real.work()
    project = Project.objects.get(pk=made.pk)
    assert project.is_hosted
    repo, origin = project.repo(real.paths), project.origin(real.paths)
    tree = tmp_path / "tree"
    real.repos.add_worktree(repo, tree, "afk/1", real.repos.upstream(repo, "main"))
    (tree / "new.txt").write_text("n\n")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "feat: new")
    git(tree, "push", "-q", "origin", "afk/1")
    head = git(tree, "rev-parse", "HEAD")
    from trackers.base import NewPull

    number = store.create_pull(
        project.tracker_root,
        NewPull("afk/1", "main", "New", "", "x", head, git(tree, "rev-parse", "HEAD~1")),
        at=real.lab.now(),
    )
    merging.merge(real.lab, project, number, by="anna")
    assert git(origin, "rev-parse", "main") == head
    assert git(source, "rev-parse", "main") != head  # the checkout is the operator's own
    assert git(source, "status", "--porcelain") == ""


@pytest.mark.row("LAB-139", level="real")
@pytest.mark.parametrize("goes_on", [False, True], ids=["forward", "merge commit"])
def test_after_a_merge_the_branch_is_collected_by_the_sweep(review: Review, goes_on: bool) -> None:
    at = review.real.lab.now()
    Run.objects.update(
        state="ended", outcome="succeeded", ended_at=at, settled_at=at, worktree=str(review.tree)
    )
    if goes_on:
        review.go_on()
    sweep.carry_out(review.lab, review.project.pk)
    claims = lambda: review.real.repos.claims(review.repo)  # noqa: E731
    assert claims() == {"7"}
    review.merge()
    review.real.offset += timedelta(minutes=10)
    sweep.carry_out(review.lab, review.project.pk)
    assert claims() == frozenset()


def test_what_is_not_there_is_not_found(review: Review) -> None:
    with pytest.raises(NotFound):
        merging.merge(review.lab, review.project, 99, by="anna")
    review.project.tracker = "gitea"
    with pytest.raises(Refused):
        merging.merge(review.lab, review.project, review.number, by="anna")
