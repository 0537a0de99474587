"""Writing issues: what is kept, what is refused, and that the timeline tells of it."""

from __future__ import annotations

import dataclasses

import pytest
from django.db import transaction

from runs.core import writing
from runs.core.states import NoticeKind
from runs.issues import acts as issues
from runs.issues.acts import IssueRefused
from runs.models import Notice, Project
from tests import make
from tests.fakes import World
from trackers import registry
from trackers.base import NotFound, Refused
from trackers.builtin import store
from trackers.builtin.models import Issue, IssueComment

pytestmark = pytest.mark.django_db

NASTY = "Say \"hi\" $(reboot) `id`\n<script>alert('x')</script> & \U0001f600"


@pytest.fixture
def project(world: World) -> Project:
    world.lab = dataclasses.replace(world.lab, tracker_for=registry.tracker)
    return make.a_project(tracker="builtin", tracker_root=store.create_root("demo"))


def write(world: World, project: Project, **fields: object) -> int:
    given: dict[str, object] = {"title": "Add retries", "body": "why", "by": "anna", **fields}
    return issues.create(world.lab, project, **given)  # type: ignore[arg-type]


def told() -> list[tuple[str, str, str, str]]:
    return [(n.kind, n.issue_key, n.by, n.text) for n in Notice.objects.order_by("pk")]


def test_a_written_issue_is_kept_and_told(world: World, project: Project) -> None:
    number = write(world, project, labels=["bug", "ready-for-agent"])

    issue = Issue.objects.get()
    assert (issue.number, issue.title, issue.body, issue.author) == (
        number,
        "Add retries",
        "why",
        "anna",
    )
    assert issue.created_at == world.clock.now
    assert told() == [(NoticeKind.ISSUE_CHANGED, "1", "anna", "issue written: Add retries")]
    assert Notice.objects.get().project == project


@pytest.mark.row("X-14", level="contract")
def test_a_title_is_kept_on_one_line_whatever_it_holds(world: World, project: Project) -> None:
    write(world, project, title=f"  {NASTY}  ", body=NASTY.replace("\n", "\r\n") + "\0")

    issue = Issue.objects.get()
    assert issue.title == NASTY.replace("\n", " ")
    assert issue.body == NASTY
    assert told()[0][3].startswith('issue written: Say "hi" $(reboot) `id` <script>')


def test_half_a_letter_is_replaced_and_never_a_crash(world: World, project: Project) -> None:
    write(world, project, title="half \ud800 letter")

    assert Issue.objects.get().title == "half ? letter"


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ({"title": " \n "}, "title", "Write a title"),
        ({"title": "x" * 10_001}, "title", "at most 10,000 characters; this one has 10,001"),
        ({"body": "x" * 200_001}, "body", "at most 200,000 characters"),
        ({"labels": ["bug", "urgent"]}, "labels", "no label “urgent”"),
    ],
)
def test_what_cannot_be_kept_is_refused_at_its_field(
    world: World, project: Project, fields: dict[str, object], field: str, says: str
) -> None:
    with pytest.raises(IssueRefused, match=says) as refused:
        write(world, project, **fields)

    assert refused.value.field == field
    assert not Issue.objects.exists()
    assert not Notice.objects.exists()


def test_the_longest_title_is_kept_whole_and_told_short(world: World, project: Project) -> None:
    write(world, project, title="x" * 10_000)

    assert len(Issue.objects.get().title) == 10_000
    assert len(told()[0][3]) < 200


def test_an_edit_is_told_once(world: World, project: Project) -> None:
    number = write(world, project)
    for _ in range(2):
        issues.edit(world.lab, project, number, title="Better", body="new", by="bert")

    assert Issue.objects.get().title == "Better"
    assert [row[2:] for row in told()[1:]] == [("bert", "issue edited: Better")]
    with pytest.raises(IssueRefused, match="Write a title"):
        issues.edit(world.lab, project, number, title="", body="new", by="bert")


def test_a_comment_is_kept_and_told(world: World, project: Project) -> None:
    number = write(world, project)
    issues.comment(world.lab, project, str(number), body="first", by="anna")

    comment = IssueComment.objects.get()
    assert (comment.author, comment.body) == ("anna", "first")
    assert told()[-1] == (NoticeKind.ISSUE_COMMENTED, "1", "anna", "comment: first")


def test_a_comment_that_is_sent_again_is_kept_once(world: World, project: Project) -> None:
    number = write(world, project)
    for body in ("done?", "done?", "yes", "done?"):
        issues.comment(world.lab, project, str(number), body=body, by="run 3")
    issues.comment(world.lab, project, str(number), body="done?", by="anna")

    bodies = list(IssueComment.objects.values_list("author", "body"))
    assert bodies == [("run 3", "done?"), ("run 3", "yes"), ("run 3", "done?"), ("anna", "done?")]


def test_a_comment_of_a_run_is_on_that_runs_timeline(world: World, project: Project) -> None:
    for number in (1, 2):
        assert write(world, project) == number
    run = make.a_run(project, "1")
    issues.comment(world.lab, project, "01", body="mine", by="run", run=run)
    issues.comment(world.lab, project, "2", body="another issue", by="run", run=run)

    mine, other = Notice.objects.order_by("-pk")[:2][::-1]
    assert (mine.run, mine.issue_key) == (run, "1")
    assert (other.run, other.issue_key) == (None, "2")


@pytest.mark.parametrize("body", ["", "  \n\t", "\0"])
def test_an_empty_comment_is_refused(world: World, project: Project, body: str) -> None:
    number = write(world, project)
    with pytest.raises(IssueRefused, match="Write a comment") as refused:
        issues.comment(world.lab, project, str(number), body=body, by="anna")
    assert refused.value.field == "comment"


def test_closing_twice_is_told_once(world: World, project: Project) -> None:
    number = write(world, project)

    assert issues.set_open(world.lab, project, number, is_open=False, by="anna") is True
    assert issues.set_open(world.lab, project, number, is_open=False, by="anna") is False
    assert issues.set_open(world.lab, project, number, is_open=True, by="anna") is True

    assert [row[3] for row in told()[1:]] == ["issue closed", "issue opened again"]


def test_labels_are_told_with_their_new_names(world: World, project: Project) -> None:
    number = write(world, project)

    assert issues.set_labels(world.lab, project, number, labels=["question", "bug"], by="anna")
    assert not issues.set_labels(world.lab, project, number, labels=["bug", "question"], by="anna")
    assert issues.set_labels(world.lab, project, number, labels=[], by="anna")
    with pytest.raises(IssueRefused, match="urgent"):
        issues.set_labels(world.lab, project, number, labels=["urgent"], by="anna")

    assert [row[3] for row in told()[1:]] == [
        "labels are now: bug, question",
        "labels are now: none",
    ]


def test_what_is_not_there_is_not_found_and_not_told(world: World, project: Project) -> None:
    acts = (
        lambda: issues.edit(world.lab, project, 9, title="t", body="", by="anna"),
        lambda: issues.comment(world.lab, project, "9", body="b", by="anna"),
        lambda: issues.set_open(world.lab, project, 9, is_open=True, by="anna"),
        lambda: issues.set_labels(world.lab, project, 9, labels=[], by="anna"),
    )
    for act in acts:
        with pytest.raises(NotFound):
            act()
    assert not Notice.objects.exists()


def test_a_project_with_a_tracker_of_its_own_is_left_alone(world: World) -> None:
    project = make.a_project(tracker="")

    with pytest.raises(Refused, match="tracker of its own"):
        write(world, project)
    with pytest.raises(IssueRefused, match="does not take comments"):
        issues.comment(world.lab, project, "1", body="b", by="anna")


def test_the_change_and_its_timeline_entry_are_one(
    world: World, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = dataclasses.replace(world.lab, now=iter([world.clock.now]).__next__)
    with pytest.raises(StopIteration), transaction.atomic():
        issues.create(broken, project, title="half", by="anna")

    assert not Issue.objects.exists()
    assert not Notice.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_browsers_are_woken_after_the_commit(world: World, project: Project) -> None:
    write(world, project)
    assert world.bell.rings == 1


@pytest.mark.parametrize(
    ("text", "does"),
    [
        ("Closes #7", True),
        ("closes: #7.", True),
        ("This fixes #7, at last", True),
        ("Resolved #7", True),
        ("Closes #70", False),
        ("see #7", False),
        ("Closes 7", False),
        ("", False),
    ],
)
def test_a_text_closes_an_issue_only_by_saying_so(text: str, does: bool) -> None:
    assert writing.closes(text, "7") is does


def test_an_edit_keeps_what_it_does_not_name(world: World, project: Project) -> None:
    number = write(world, project)

    assert issues.edit(world.lab, project, number, body="New", by="anna")
    assert issues.edit(world.lab, project, number, title="Better", by="anna")
    assert not issues.edit(world.lab, project, number, title="Better", body="New", by="anna")
    assert not issues.edit(world.lab, project, number, by="anna")

    stored = Issue.objects.get()
    assert (stored.title, stored.body) == ("Better", "New")
    assert [text for *_, text in told()[1:]] == [
        "issue edited: Add retries",
        "issue edited: Better",
    ]
