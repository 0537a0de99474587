"""Comments on pull requests: kept with the line they are about, told once, refused in words."""

from __future__ import annotations

import dataclasses

import pytest
from django.db import IntegrityError, transaction

from runs.core.states import NoticeKind
from runs.models import Notice
from runs.pulls import acts as pulls
from runs.pulls import comparing
from runs.pulls.acts import PullRefused
from tests import make
from tests.fakes import START, World
from trackers import registry
from trackers.base import NewPull, NotFound, Refused
from trackers.builtin import store
from trackers.builtin.models import PullComment, PullRequest

pytestmark = pytest.mark.django_db

ORIGIN = "refs/remotes/origin/"


class Desk:
    """A pull request with two files, on the fake git."""

    def __init__(self, world: World) -> None:
        world.lab = dataclasses.replace(world.lab, tracker_for=registry.tracker)
        self.world, self.git = world, world.repos
        self.project = make.a_project(tracker="builtin", tracker_root=store.create_root("demo"))
        self.base = self.git.commit({"app.py": "one\ntwo\n"}, subject="chore: begin")
        self.head = self.git.commit({"app.py": "one\n2\n", "new.py": "x = 1\n"}, self.base)
        self.git.refs = {f"{ORIGIN}main": self.base, f"{ORIGIN}afk/1": self.head}
        new = NewPull("afk/1", "main", "Add it", "", "Claude", self.head, self.base)
        self.number = store.create_pull(self.project.tracker_root, new, at=START)

    @property
    def pull(self) -> PullRequest:
        return PullRequest.objects.get(number=self.number)

    def say(self, body: str = "Why?", **more):
        return pulls.comment(
            self.world.lab, self.project, self.number, body=body, by="anna", **more
        )


@pytest.fixture
def desk(world: World) -> Desk:
    return Desk(world)


def test_a_comment_is_stored_and_told(desk: Desk) -> None:
    run = make.a_run(desk.project, "1")
    desk.say("It **works**.\r\n")
    pulls.comment(desk.world.lab, desk.project, desk.number, body="Thanks", by="Claude", run=run)

    first, second = pulls.comments(desk.project, desk.number)
    assert (first.author, first.body, first.at) == ("anna", "It **works**.", START)
    assert (first.path, first.line, first.commit) == ("", None, "")
    assert second.author == "Claude"
    told = Notice.objects.filter(kind=NoticeKind.PULL_COMMENTED).order_by("pk")
    assert [(n.text, n.by, n.run) for n in told] == [
        ("comment on pull request 1: It **works**.", "anna", None),
        ("comment on pull request 1: Thanks", "Claude", run),
    ]


@pytest.mark.parametrize(("side", "quote"), [("new", "2"), ("old", "two")])
def test_a_comment_on_a_line_keeps_the_line_and_its_commit(
    desk: Desk, side: str, quote: str
) -> None:
    desk.say(path="app.py", line=2, side=side, commit=desk.head)
    found = PullComment.objects.get()
    assert (found.path, found.line, found.side) == ("app.py", 2, side)
    assert (found.commit, found.quote) == (desk.head, quote)
    assert Notice.objects.get().text == "comment on pull request 1 on app.py:2: Why?"


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ({"body": " \n"}, "comment", "Write a comment first"),
        ({"body": "x" * 200_001}, "comment", "at most"),
        ({"path": "other.py", "line": 1}, "path", "does not change this file"),
        ({"path": "../../etc/passwd", "line": 1}, "path", "does not change this file"),
        ({"path": "app.py"}, "line", "does not show"),
        ({"path": "app.py", "line": 77}, "line", "does not show the new line 77"),
        ({"path": "app.py", "line": 0}, "line", "does not show"),
        ({"path": "app.py", "line": -2}, "line", "does not show"),
        ({"path": "new.py", "line": 1, "side": "old"}, "line", "does not show"),
        ({"path": "app.py", "line": 1, "side": "up"}, "side", "old or on the new"),
        ({"line": 1}, "path", "does not change this file"),
        ({"path": "app.py", "line": 1, "commit": "f" * 40}, "line", "has moved on"),
    ],
)
def test_what_cannot_be_kept_is_refused_at_its_field(
    desk: Desk, fields: dict, field: str, says: str
) -> None:
    with pytest.raises(PullRefused, match=says) as error:
        desk.say(**fields)
    assert error.value.field == field
    assert not PullComment.objects.exists()
    assert not Notice.objects.exists()


def test_the_same_words_sent_again_are_kept_once(desk: Desk) -> None:
    keys = [
        desk.say(),
        desk.say(),
        desk.say(path="app.py", line=2),
        desk.say(path="app.py", line=2),
    ]
    assert len(set(keys)) == 2
    assert PullComment.objects.count() == 2
    assert Notice.objects.count() == 2


def test_a_git_that_is_silent_stores_nothing_on_a_line_and_takes_other_comments(
    desk: Desk,
) -> None:
    desk.git.broken_history = "git for-each-ref gave no answer within 15 seconds"
    from runs.core.ports import SeamError

    with pytest.raises(SeamError):
        desk.say(path="app.py", line=2)
    assert not PullComment.objects.exists()
    desk.say()
    assert PullComment.objects.count() == 1


def test_another_tracker_and_an_unknown_pull_request_are_refused(desk: Desk) -> None:
    with pytest.raises(NotFound):
        pulls.comment(desk.world.lab, desk.project, 99, body="x", by="anna")
    other = make.a_project("other")
    with pytest.raises(Refused):
        pulls.comment(desk.world.lab, other, 1, body="x", by="anna")
    assert pulls.comments(other, 1) == ()


@pytest.mark.postgres
@pytest.mark.every_case
@pytest.mark.parametrize(
    "fields",
    [
        {"line": 3},
        {"path": "a"},
        {"path": "a", "line": 0, "side": "new", "commit": "c"},
        {"path": "a", "line": 1, "side": "up", "commit": "c"},
        {"path": "a", "line": 1, "side": "new"},
    ],
)
def test_the_database_refuses_half_a_place(desk: Desk, fields: dict) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        PullComment.objects.create(pull=desk.pull, author="a", body="b", at=START, **fields)


# What is compared.


def test_an_open_one_follows_its_branch_and_a_closed_one_keeps_what_it_was(desk: Desk) -> None:
    lab = desk.world.lab
    more = desk.git.commit({"app.py": "one\n2\n3\n"}, desk.head)
    desk.git.refs[f"{ORIGIN}afk/1"] = more
    assert [c.path for c in comparing.of_pull(lab, desk.project, desk.pull).files] == ["app.py"]

    assert pulls.close(lab, desk.project, desk.number, by="anna")
    assert (desk.pull.base_commit, desk.pull.head_commit) == (desk.base, more)
    desk.git.refs = {f"{ORIGIN}main": more, f"{ORIGIN}afk/1": desk.base}
    kept = comparing.of_pull(lab, desk.project, desk.pull)
    assert [(c.path, c.added) for c in kept.files] == [("app.py", 2)]
    assert len(kept.commits) == 2


def test_a_branch_that_vanished_shows_what_was_last_seen_of_it(desk: Desk) -> None:
    del desk.git.refs[f"{ORIGIN}afk/1"]
    found = comparing.of_pull(desk.world.lab, desk.project, desk.pull)
    assert "not on origin any more" in found.ends.note
    assert len(found.files) == 2


def test_a_commit_that_is_gone_is_said_in_words(desk: Desk) -> None:
    del desk.git.refs[f"{ORIGIN}afk/1"]
    PullRequest.objects.update(head_commit="9" * 40)
    found = comparing.of_pull(desk.world.lab, desk.project, desk.pull)
    assert found.error.startswith("The commit 999999999999 is not in labsite's repository any more")
    assert not found.files


def test_git_is_asked_at_most_four_times_and_then_once(desk: Desk) -> None:
    for times in (4, 1):
        desk.git.asked.clear()
        found = comparing.of_pull(desk.world.lab, desk.project, desk.pull)
        assert comparing.patch(desk.world.lab, desk.project, found.ends)
        assert len(desk.git.asked) == times
