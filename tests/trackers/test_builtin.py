"""The built-in tracker beyond the seam: its writes, its numbers, and what a tick may cost."""

from __future__ import annotations

import threading

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.trackers.worlds import AT, READY, BuiltinWorld
from trackers.base import NewPull, NotFound, PullState, Refused
from trackers.builtin import store
from trackers.builtin.models import Issue, PullRequest, Root

A_PULL = NewPull("afk/7", "main", "Add retries", "Closes #7", "run 3", head_commit="a" * 40)


def an_issue(root: str, title: str = "Add retries", labels: tuple[str, ...] = ()) -> int:
    return store.create_issue(root, title=title, body="why", author="ada", labels=labels, at=AT)


@pytest.fixture
def root(db: None) -> str:
    return store.create_root("demo")


def test_a_new_tracker_has_the_labels_that_people_expect(root: str) -> None:
    labels = set(Root.objects.get(pk=root).labels.values_list("name", flat=True))

    assert labels == {"ready-for-agent", "bug", "enhancement", "question", "documentation"}


def test_issues_and_pull_requests_share_one_row_of_numbers(root: str) -> None:
    other = store.create_root("other")

    assert [an_issue(root), store.create_pull(root, A_PULL, at=AT), an_issue(root)] == [1, 2, 3]
    assert an_issue(other) == 1


@pytest.mark.postgres
def test_a_refused_pull_request_uses_up_no_number(root: str) -> None:
    store.create_pull(root, A_PULL, at=AT)
    with pytest.raises(Refused):
        store.create_pull(root, A_PULL, at=AT)

    assert an_issue(root) == 2


def test_an_unknown_label_is_refused_and_nothing_is_stored(root: str) -> None:
    with pytest.raises(Refused, match="no label “urgent”"):
        an_issue(root, labels=("bug", "urgent"))
    assert not Issue.objects.exists()

    number = an_issue(root, labels=("bug",))
    with pytest.raises(Refused, match="no label “urgent”"):
        store.set_labels(root, number, labels=["urgent"], by="ada", at=AT)
    assert [label.name for label in Issue.objects.get().labels.all()] == ["bug"]


def test_a_label_of_another_project_is_unknown(root: str) -> None:
    other = store.create_root("other")
    Root.objects.get(pk=other).labels.create(name="theirs")

    with pytest.raises(Refused, match="theirs"):
        an_issue(root, labels=("theirs",))


def test_doing_the_same_twice_changes_nothing_the_second_time(root: str) -> None:
    number = an_issue(root, labels=("bug",))
    pull = store.create_pull(root, A_PULL, at=AT)

    assert store.set_open(root, number, is_open=False, at=AT) is True
    assert store.set_open(root, number, is_open=False, at=AT) is False
    assert store.set_labels(root, number, labels=["bug", READY], by="ben", at=AT) is True
    assert store.set_labels(root, number, labels=[READY, "bug"], by="ada", at=AT) is False
    assert store.close_pull(root, pull, at=AT) is True
    assert store.close_pull(root, pull, at=AT) is False


def test_a_merged_pull_request_stays_merged(root: str) -> None:
    pull = store.create_pull(root, A_PULL, at=AT)
    PullRequest.objects.update(state=PullState.MERGED)

    assert store.close_pull(root, pull, at=AT) is False
    assert PullRequest.objects.get().state == PullState.MERGED


def test_what_is_not_there_is_not_found(root: str) -> None:
    acts = (
        lambda: store.edit_issue(root, 9, title="t", body="", at=AT),
        lambda: store.add_comment(root, 9, author="ada", body="b", at=AT),
        lambda: store.set_open(root, 9, is_open=True, at=AT),
        lambda: store.set_labels(root, 9, labels=(), by="ada", at=AT),
        lambda: store.close_pull(root, 9, at=AT),
    )
    for act in acts:
        with pytest.raises(NotFound):
            act()


def test_a_root_that_is_no_number_is_refused_and_not_a_crash(db: None) -> None:
    for root in ("", "x", "٧", "1" * 40, "-1", "12345"):
        with pytest.raises(Refused, match="no tracker"):
            an_issue(root)


def test_an_edit_keeps_number_state_and_comments(root: str) -> None:
    number = an_issue(root)
    store.add_comment(root, number, author="ada", body="keep me", at=AT)

    store.edit_issue(root, number, title="Better", body="new\ntext", at=AT)

    issue = Issue.objects.get()
    assert (issue.number, issue.title, issue.body, issue.is_open) == (
        1,
        "Better",
        "new\ntext",
        True,
    )
    assert issue.comments.get().body == "keep me"


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_many_writers_at_once_get_numbers_without_gap_or_clash() -> None:
    root = store.create_root("demo")
    errors: list[BaseException] = []

    def write(writer: int) -> None:
        try:
            for turn in range(5):
                if writer % 2:
                    an_issue(root)
                else:
                    store.create_pull(
                        root, NewPull(f"afk/{writer}-{turn}", "main", "t", "", "a"), at=AT
                    )
        except BaseException as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=write, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    used = [
        *Issue.objects.values_list("number", flat=True),
        *PullRequest.objects.values_list("number", flat=True),
    ]
    assert sorted(used) == list(range(1, 31))


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_two_agents_that_ask_at_once_get_one_open_pull_request() -> None:
    root = store.create_root("demo")
    barrier, answers = threading.Barrier(4), []

    def ask() -> None:
        barrier.wait()
        try:
            answers.append(store.create_pull(root, A_PULL, at=AT))
        except Refused:
            answers.append(None)
        finally:
            connection.close()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(answers, key=str) == [1, None, None, None]
    assert PullRequest.objects.count() == 1


@pytest.mark.row("LAB-12", level="contract")
@pytest.mark.parametrize("size", [1, 50])
def test_the_questions_of_a_tick_cost_the_same_for_one_row_and_for_fifty(
    db: None, size: int, django_assert_num_queries: object
) -> None:
    world = BuiltinWorld()
    roots = [world.root(f"project {n}") for n in range(size)]
    for root in roots:
        # Fifty issues in one of fifty projects: a question for each issue or project would show.
        for number in range(1, (size if root == roots[0] else 2) + 1):
            world.issue(root, number, "an issue", labels=[READY] if number < 3 else [])
        world.pull(root, "afk/7")

    with django_assert_num_queries(1):  # type: ignore[operator]
        found = world.tracker.pulls({root: ["afk/7", "afk/8"] for root in roots})
    with django_assert_num_queries(2):  # type: ignore[operator]
        world.tracker.queues(dict.fromkeys(roots, READY))
    with django_assert_num_queries(2):  # type: ignore[operator]
        world.tracker.open_issues(roots[0])

    assert all(pulls and pulls[0].head == "afk/7" for pulls in found.values())


@pytest.mark.skipif(connection.vendor != "sqlite", reason="asks SQLite for its plan")
def test_the_question_of_a_tick_does_not_walk_through_history(root: str) -> None:
    world = BuiltinWorld()
    with CaptureQueriesContext(connection) as asked:
        world.tracker.pulls({root: ["afk/7", "afk/8"]})
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {asked[0]['sql']}")
        plan = " ".join(str(row[-1]) for row in cursor.fetchall())
    assert "pull_of_head (root_id=? AND head=?)" in plan
