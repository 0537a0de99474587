"""What pages say of forges and beads: addresses that exist, counts of all, and true reasons."""

from __future__ import annotations

import pytest

from runs.dispatch import why
from runs.dispatch.eligibility import Act, Candidate, Change
from runs.dispatch.rules import Queue, Refusal, Room, decide_start
from runs.forges import tracker_card
from runs.models import Project, Settings
from runs.overview import board, digest
from tests import make
from tests.fakes import World
from trackers.keys import KeyRule

ISSUE = Candidate("7", "Retry", url="https://forge.example/sub/acme/shop/issues/7")
ROOM = Room(taken=(), occupied=0, cap=4)


@pytest.mark.parametrize(
    ("target", "url"),
    [
        ("3", "https://forge.example/sub/acme/shop/issues/3"),
        ("acme/lib#3", "https://forge.example/sub/acme/lib/issues/3"),
    ],
)
def test_a_blocker_is_linked_where_it_is(target: str, url: str) -> None:
    project = Project(tracker="gitea")
    button = why.button(project, None, ISSUE, Change(Act.CLOSE, "Close it", target))
    assert button.url == url


@pytest.mark.parametrize("error", ["The forge said: try again.", "The forge said: try again"])
def test_a_refusal_has_one_full_stop(error: str) -> None:
    queue = Queue(has_tracker=True, ready=None, claims=frozenset(), active=(), tracker_error=error)
    refused = decide_start(queue, ROOM)
    assert isinstance(refused, Refusal)
    assert refused.text == (
        "The tracker did not answer: The forge said: try again. Nothing was claimed."
    )


def test_a_bead_that_is_not_ready_is_not_refused_for_its_label_alone() -> None:
    queue = Queue(
        has_tracker=True, ready=(), claims=frozenset(), active=(), wanted="bd-1",
        keys=KeyRule.WORD,
    )  # fmt: skip
    refused = decide_start(queue, ROOM)
    assert isinstance(refused, Refusal)
    assert "not in progress and not blocked" in refused.text


@pytest.mark.django_db
def test_merging_is_not_offered_for_a_forge(world: World) -> None:
    project = make.a_project(tracker="memory", tracker_root="demo")
    card = tracker_card.of(world.lab, project, Settings.current())
    assert "merging" not in card.can
    assert "merging here" in card.cannot
    own = make.a_project("own", tracker="builtin")
    card = tracker_card.of(world.lab, own, Settings.current())
    assert "merging" in card.can  # on the page of a pull request
    assert "merging here" not in card.cannot


@pytest.mark.django_db
def test_all_ready_issues_are_counted_although_the_first_alone_are_listed(world: World) -> None:
    listed = [[str(n), f"Issue {n}", ""] for n in range(1, 31)]
    project = make.a_project(
        tracker="memory", tracker_root="demo", queue_seen=listed, queue_count=300
    )
    picture = board.load(world.lab, recent=5, with_waiting=True)
    assert picture.free_count(project) == 300
    assert digest.stats(picture).ready == 300
