"""What every tracker promises that declares it: labels, closing, writing, blockers, checks, merging."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.trackers.forge_worlds import ForgeWorld
from tests.trackers.worlds import EACH, READY, WORLDS, World
from trackers.base import (
    Ability,
    CheckState,
    NewIssue,
    NewPull,
    NotFound,
    Pull,
    PullState,
    Refused,
)

pytestmark = pytest.mark.django_db

COMMIT = "a" * 40


@pytest.fixture(params=EACH)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """One tracker's world; a forge that was asked what it does not describe fails the test."""
    made = WORLDS[request.param]()
    yield made
    if isinstance(made, ForgeWorld):
        made.forge.check()


@pytest.fixture
def able(world: World) -> Callable[..., World]:
    """The world, when its tracker declares these abilities; that others refuse is shown elsewhere."""

    def given(*abilities: Ability) -> World:
        missing = set(abilities) - world.tracker.abilities
        if missing:
            pytest.skip(f"this tracker does not declare {', '.join(sorted(missing))}")
        return world

    return given


def a_pull(world: World, root: str) -> Pull:
    new = NewPull("afk/7", "main", "Add retries", "Closes #7", "run 3", head_commit=COMMIT)
    return world.tracker.create_pull(root, new)


# Issues.


@pytest.mark.row("X-01", level="contract")
def test_a_label_is_put_on_and_taken_off_and_twice_is_no_error(able: Callable[..., World]) -> None:
    world = able(Ability.LABEL, Ability.CREATE_LABEL)
    root = world.root("demo")
    world.issue(root, 7, "demo", labels=["bug"])
    world.tracker.create_label(root, READY)
    key = world.key(7)

    for _ in range(2):
        world.tracker.add_label(root, key, READY)
    assert [issue.key for issue in world.tracker.queues({root: READY})[root] or ()] == [key]
    assert set(world.tracker.issue(root, key).labels) == {"bug", READY}
    for _ in range(2):
        world.tracker.remove_label(root, key, READY)

    assert world.tracker.queues({root: READY})[root] == []
    assert set(world.tracker.issue(root, key).labels) == {"bug"}
    with pytest.raises(NotFound):
        world.tracker.add_label(root, world.key(8), READY)
    with pytest.raises(NotFound):
        world.tracker.remove_label(root, world.key(8), READY)


@pytest.mark.row("X-01", level="contract")
@pytest.mark.row("C-02", level="contract")
def test_an_issue_is_claimed_once_until_it_is_free_again(able: Callable[..., World]) -> None:
    world = able(Ability.STATUS)
    root, key = world.root("demo"), world.key(7)
    world.issue(root, 7, "demo", labels=[READY])

    for _ in range(2):
        world.tracker.claim(root, key)
        with pytest.raises(Refused, match="not claimed"):
            world.tracker.claim(root, key)
        world.tracker.set_status(root, key, False)

    with pytest.raises(NotFound):
        world.tracker.claim(root, world.key(8))


@pytest.mark.row("X-01", level="contract")
def test_a_label_is_made_once(able: Callable[..., World]) -> None:
    world = able(Ability.CREATE_LABEL)
    root = world.root("demo")

    for _ in range(2):
        world.tracker.create_label(root, READY)

    assert list(world.tracker.labels(root)).count(READY) == 1


@pytest.mark.row("X-01", level="contract")
def test_an_issue_is_closed_and_twice_is_no_error(able: Callable[..., World]) -> None:
    world = able(Ability.CLOSE)
    root = world.root("demo")
    world.issue(root, 7, "demo", labels=[READY])
    world.issue(root, 9, "other", labels=[READY])

    for _ in range(2):
        world.tracker.close(root, world.key(7))

    assert world.tracker.issue(root, world.key(7)).is_open is False
    assert [issue.key for issue in world.tracker.open_issues(root)] == [world.key(9)]
    assert world.tracker.open_count(root) == 1
    keys = [world.key(7), world.key(9), world.key(11)]
    found = world.tracker.still_open({root: keys})[root]
    assert [issue.key for issue in found or ()] == [world.key(9)]
    with pytest.raises(NotFound):
        world.tracker.close(root, world.key(8))


@pytest.mark.row("X-01", level="contract")
def test_a_new_issue_is_open_and_carries_its_labels(able: Callable[..., World]) -> None:
    world = able(Ability.CREATE_ISSUE, Ability.CREATE_LABEL)
    root = world.root("demo")
    world.tracker.create_label(root, READY)

    made = world.tracker.create_issue(root, NewIssue("Add <b>", "why", (READY,), "ada"))

    assert (made.title, made.is_open, made.labels) == ("Add <b>", True, (READY,))
    assert [issue.key for issue in world.tracker.queues({root: READY})[root] or ()] == [made.key]
    assert "why" in world.tracker.issue(root, made.key).body


def test_a_new_issue_with_a_label_that_is_not_there_is_refused_and_not_written(
    able: Callable[..., World],
) -> None:
    world = able(Ability.CREATE_ISSUE, Ability.CREATE_LABEL)
    root = world.root("demo")

    with pytest.raises(Refused, match="nowhere"):
        world.tracker.create_issue(root, NewIssue("new", "", ("nowhere",), "ada"))

    assert world.tracker.open_issues(root) == []


@pytest.mark.row("X-01", level="contract")
def test_an_issue_waits_for_the_open_ones_that_block_it(able: Callable[..., World]) -> None:
    world = able(Ability.BLOCKERS, Ability.CLOSE)
    root, other = world.root("demo"), world.root("other")
    for number in (3, 5, 7, 9):
        world.issue(root, number, f"issue {number}", labels=[READY])
    world.issue(other, 7, "in another place")
    for blocker in (3, 5):
        world.block(root, 7, blocker)
    world.tracker.close(root, world.key(5))
    asked = {root: [world.key(7), world.key(9)], other: [world.key(7)]}

    found = world.tracker.blockers(asked)

    told = {key: list(by) for key, by in (found[root] or {}).items()}
    assert told == {world.key(7): [world.key(3)]}
    assert found[other] == {}
    world.lose(other)
    assert world.tracker.blockers(asked)[other] is None


# Pull requests.


@pytest.mark.row("X-01", level="contract")
def test_a_pull_request_is_found_by_its_number(able: Callable[..., World]) -> None:
    world = able(Ability.PULLS, Ability.CREATE_PULL)
    root = world.root("demo")
    made = a_pull(world, root)

    assert world.tracker.pull(root, made.number) == made
    with pytest.raises(NotFound):
        world.tracker.pull(root, made.number + 1)


def test_a_merge_names_the_head_that_was_looked_at(able: Callable[..., World]) -> None:
    world = able(Ability.MERGE, Ability.CREATE_PULL)
    root = world.root("demo")
    made = a_pull(world, root)

    with pytest.raises(Refused):
        world.tracker.merge(root, made.number, "f" * 40)
    assert world.tracker.pull(root, made.number).state is PullState.OPEN
    commit = world.tracker.merge(root, made.number, COMMIT)

    merged = world.tracker.pull(root, made.number)
    assert (merged.state, merged.merge_commit) == (PullState.MERGED, commit)
    assert len(commit) == 40
    found = world.tracker.pulls({root: ["afk/7"]})[root]
    assert [pull.state for pull in found or ()] == [PullState.MERGED]
    with pytest.raises((Refused, NotFound)):
        world.tracker.merge(root, made.number + 1, COMMIT)


def test_the_checks_of_a_commit_are_told_by_name(able: Callable[..., World]) -> None:
    world = able(Ability.CHECKS)
    root = world.root("demo")
    for name, state in (
        ("build", CheckState.PASSED),
        ("lint", CheckState.FAILED),
        ("slow", CheckState.RUNNING),
    ):
        world.check(root, COMMIT, name, state)

    told = {check.name: check.state for check in world.tracker.checks(root, COMMIT)}

    assert told == {
        "build": CheckState.PASSED,
        "lint": CheckState.FAILED,
        "slow": CheckState.RUNNING,
    }
    assert list(world.tracker.checks(root, "b" * 40)) == []


# The connection test.


def test_examining_changes_nothing_and_never_raises(world: World) -> None:
    root = world.root("demo")
    world.issue(root, 7, "demo", labels=[READY])

    good = world.tracker.examine(root, READY)
    world.lose(root)
    bad = world.tracker.examine(root, READY)

    assert good
    assert all(finding.ok is not False and finding.text for finding in good), good
    assert any(not finding.ok for finding in bad), bad
    assert all(finding.text for finding in bad)
