"""A ready queue of many pages on Gitea: what changed is read, and the whole list now and then."""

from __future__ import annotations

import pytest

from tests.trackers.forge import Gitea
from tests.trackers.stand import READY, ROOT, Stand, a_stand

ISSUES = 120


@pytest.fixture
def stand() -> Stand:
    made = a_stand(Gitea())
    for number in range(1, ISSUES + 1):
        made.repo.issue(f"issue {number}", number=number, labels=[READY])
    made.forge.clock.advance(60)
    assert _keys(made) == list(range(1, ISSUES + 1))
    return made


def _keys(stand: Stand) -> list[int]:
    """The queue as it is told."""
    return [int(one.key) for one in stand.ready() or ()]


def _costs(stand: Stand) -> tuple[list[int], int]:
    stand.forge.clock.advance(45)
    before = stand.count()
    found = _keys(stand)
    return found, stand.count() - before


def test_an_unchanged_queue_costs_one_question(stand: Stand) -> None:
    found, cost = _costs(stand)
    assert (len(found), cost) == (ISSUES, 1)


def test_what_happens_to_issues_is_seen_by_that_question(stand: Stand) -> None:
    repo, everything = stand.repo, set(range(1, ISSUES + 1))
    repo.close(repo.items[3])
    repo.take_label(repo.items[5], repo.label(READY))
    repo.issue("new", number=200, labels=[READY])
    repo.issue("not ready", number=201)
    repo.pull("afk/9", number=202)
    assert _costs(stand) == (sorted(everything - {3, 5} | {200}), 1)

    repo.items[3].is_open = True
    repo.touch(repo.items[3])
    repo.put_label(repo.items[5], repo.label(READY))
    repo.items[7].title = "another title"
    repo.touch(repo.items[7])
    assert _costs(stand) == (sorted(everything | {200}), 1)
    assert {one.title for one in stand.ready() or () if one.key == "7"} == {"another title"}


def test_an_issue_that_was_deleted_leaves_within_half_an_hour(stand: Stand) -> None:
    del stand.repo.items[4]
    assert 4 in _costs(stand)[0]
    stand.forge.clock.advance(1800)
    found, cost = _costs(stand)
    assert 4 not in found and cost == 4
    assert _costs(stand)[1] == 1


def test_one_that_turns_out_to_be_deleted_has_the_list_read_again(stand: Stand) -> None:
    del stand.repo.items[4]
    stand.waits("4")
    assert 4 not in _costs(stand)[0]


def test_so_many_changes_that_the_list_is_read_again(stand: Stand) -> None:
    for number in range(300, 300 + 160):
        stand.repo.issue("not ready", number=number)
    found, cost = _costs(stand)
    assert found == list(range(1, ISSUES + 1))
    assert cost == 3 + 4
    assert _costs(stand)[1] == 1


def test_two_labels_are_two_lists(stand: Stand) -> None:
    for number in range(1, 61):
        item = stand.repo.items[number]
        stand.repo.put_label(item, stand.repo.label("other"))
    for _ in range(2):
        found = stand.tracker.queues({ROOT: "other"})[ROOT]
        assert [int(one.key) for one in found or ()] == list(range(1, 61))
        assert len(_keys(stand)) == ISSUES
