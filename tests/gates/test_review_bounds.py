"""What bounds a review: how much of the work was given, and how long reviews of a run may take."""

from __future__ import annotations

import pytest

from runs.models import Attempt
from runs.pulls import acts as pulls
from tests.fakes import World
from tests.gates.fake_review_desk import BLOCKING, FakeReviewDesk
from tests.pulls.review_desk import AFTER

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk(world: World) -> FakeReviewDesk:
    return FakeReviewDesk(world)


def comments(desk: FakeReviewDesk) -> list[tuple[str, str]]:
    return [(one.author, one.body) for one in pulls.comments(desk.project, desk.number)]


@pytest.mark.parametrize("findings", [(), (BLOCKING,)], ids=["passed", "failed"])
def test_a_pull_request_says_once_how_many_files_were_not_reviewed(
    world: World, findings: tuple[dict[str, object], ...]
) -> None:
    """The diff that a command is given holds 2 MB."""
    desk = FakeReviewDesk(world, {**AFTER, "zzz.txt": "x" * 2_000_000})
    desk.reviewer("eyes", *findings)
    for _ in range(2):
        assert desk.judge().passed is not bool(findings)
        Attempt.objects.update(artifacts={})  # killed after the comment and before it was noted
    said = comments(desk)
    commit = desk.head[:12]
    assert said[0] == (
        "reviewer eyes",
        f"Commit {commit} was not reviewed in full: 1 of 5 changed files did not fit into its diff.",
    )
    assert len(said) == 1 + len(findings)


def test_a_review_of_all_files_is_not_called_partial(desk: FakeReviewDesk) -> None:
    desk.reviewer("eyes")
    assert desk.judge().passed
    assert comments(desk) == []
