"""What the adapters cost: how many calls, and how many of them are counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.trackers.forge_worlds import FORGES, ForgeWorld, GitHubWorld
from tests.trackers.worlds import READY
from trackers.base import PullState

HEADS = ["afk/7", "afk/8", "afk/9"]


@pytest.fixture(params=FORGES)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ForgeWorld]:
    made = FORGES[request.param](tmp_path / "answers")
    yield made
    made.forge.check()


def tick(world: ForgeWorld, root: str, *heads: str) -> list[tuple[str, PullState]]:
    """What one tick asks of one project; the log begins anew."""
    world.forge.clock.advance(10)
    world.forge.log.clear()
    found = world.tracker.pulls({root: heads or HEADS})[root]
    assert found is not None
    return sorted((pull.head, pull.state) for pull in found)


@pytest.mark.row("LAB-12", level="contract")
def test_one_list_a_tick_whatever_the_number_of_runs(world: ForgeWorld) -> None:
    root = world.root("demo")
    world.pull(root, "afk/8", "merged")

    for _ in range(3):
        assert tick(world, root) == [("afk/8", PullState.MERGED)]
        assert len(world.forge.log) == 1
    world.pull(root, "afk/7")
    assert tick(world, root) == [("afk/7", PullState.OPEN), ("afk/8", PullState.MERGED)]

    assert len(world.forge.log) == 1
    assert world.tracker.pulls({}) == {}
    assert world.forge.calls() == world.forge.log[:1]


@pytest.mark.row("LAB-12", "X-03", level="contract")
def test_in_a_long_list_old_ones_are_looked_up_once_and_then_it_is_one_call_again(
    world: ForgeWorld,
) -> None:
    root = world.root("demo")
    repo = world.repo(root)
    repo.pull("afk/7", "merged", is_branch_gone=True)
    for number in range(249):
        world.pull(root, f"other/{number}", "closed")

    assert tick(world, root) == [("afk/7", PullState.MERGED)]
    assert 1 < len(world.forge.log) <= 8
    assert tick(world, root) == [("afk/7", PullState.MERGED)]
    assert len(world.forge.log) == 1
    world.pull(root, "afk/9")
    for number in range(30):
        repo.touch(repo.items[number + 5])

    assert tick(world, root) == [("afk/7", PullState.MERGED), ("afk/9", PullState.OPEN)]
    assert len(world.forge.log) == 1


@pytest.mark.row("LAB-12", "X-03", level="contract")
def test_a_pull_request_that_moved_far_down_between_two_ticks_is_not_lost(
    world: ForgeWorld,
) -> None:
    root = world.root("demo")
    repo = world.repo(root)
    for number in range(250):
        world.pull(root, f"other/{number}", "closed")
    assert tick(world, root) == []

    world.pull(root, "afk/8")
    for number in range(130):
        repo.touch(repo.items[number + 1])

    assert tick(world, root) == [("afk/8", PullState.OPEN)]


def test_a_pull_request_that_was_merged_is_seen_as_merged_in_the_next_tick(
    world: ForgeWorld,
) -> None:
    root = world.root("demo")
    for number in range(120):
        world.pull(root, f"other/{number}", "closed")
    number = world.pull(root, "afk/7")
    assert tick(world, root) == [("afk/7", PullState.OPEN)]

    repo = world.repo(root)
    repo.merge(repo.items[number], "c" * 40)

    assert tick(world, root) == [("afk/7", PullState.MERGED)]


def test_an_unchanged_list_costs_no_quota_on_github(tmp_path: Path) -> None:
    world = GitHubWorld(tmp_path)
    root = world.root("demo")
    world.issue(root, 7, "Add retries", labels=[READY])
    world.pull(root, "afk/7")

    for turn in range(60):
        tick(world, root)
        assert world.tracker.queues({root: READY})[root]
        assert [line.status for line in world.forge.log] == [200 if turn == 0 else 304] * 2
        assert [line.is_counted for line in world.forge.log] == [turn == 0] * 2
    world.forge.check()


def test_what_was_kept_is_still_good_after_a_restart(tmp_path: Path) -> None:
    first = GitHubWorld(tmp_path)
    root = first.root("demo")
    first.issue(root, 7, "Add retries", labels=[READY])
    assert first.tracker.queues({root: READY})[root]

    again = GitHubWorld(tmp_path)
    again.forge.repos, again.forge.tokens = first.forge.repos, first.forge.tokens
    again.tracker._accounts = first.tracker._accounts  # type: ignore[attr-defined]

    assert [issue.key for issue in again.tracker.queues({root: READY})[root] or ()] == ["7"]
    assert [line.status for line in again.forge.log] == [304]


@pytest.mark.row("X-02", level="contract")
def test_a_pull_request_with_the_ready_label_is_no_issue(world: ForgeWorld) -> None:
    root = world.root("demo")
    world.issue(root, 3, "an issue", labels=[READY])
    repo = world.repo(root)
    item = repo.items[world.pull(root, "afk/9")]
    repo.put_label(item, repo.label(READY))

    assert [issue.key for issue in world.tracker.queues({root: READY})[root] or ()] == ["3"]
    assert [issue.key for issue in world.tracker.open_issues(root)] == ["3"]
    assert world.tracker.open_count(root) == 1
    assert world.tracker.still_open({root: ["3", str(item.number)]})[root] is not None
    found = world.tracker.still_open({root: ["3", str(item.number)]})[root] or ()
    assert [issue.key for issue in found] == ["3"]


def test_a_ready_label_that_nobody_made_makes_nothing_ready(world: ForgeWorld) -> None:
    """Gitea leaves a label that it does not know out of the question and lists everything."""
    root = world.root("demo")
    for number in (9, 3, 12, 5):
        world.issue(root, number, "not ready", labels=["bug"])

    assert world.tracker.queues({root: READY, "none": READY})[root] == []


@pytest.mark.row("X-03", "LAB-54", level="contract")
def test_a_long_queue_begins_with_its_lowest_number_whatever_the_order_of_the_pages(
    world: ForgeWorld,
) -> None:
    root = world.root("demo")
    for number in range(130, 0, -1):
        world.issue(root, number, "ready", labels=[READY])

    found = world.tracker.queues({root: READY})[root] or ()

    assert [issue.key for issue in found] == [str(number) for number in range(1, 131)]
