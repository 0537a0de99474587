"""What every tracker promises, asked of each of them in the same words (LAB-35)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from tests.trackers.forge_worlds import ForgeWorld
from tests.trackers.worlds import EACH, READY, WORLDS, World
from tests.world.memory_tracker import MemoryTracker
from trackers.base import (
    Ability,
    Comment,
    Issue,
    NewIssue,
    NewPull,
    NotFound,
    Pull,
    PullState,
    Refused,
    Tracker,
    TrackerError,
    best_pull,
    counts,
)
from trackers.registry import tracker as tracker_of

pytestmark = pytest.mark.django_db


@pytest.fixture(params=EACH)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """One tracker's world; a forge that was asked what it does not describe fails the test."""
    made = WORLDS[request.param]()
    yield made
    if isinstance(made, ForgeWorld):
        made.forge.check()


@pytest.fixture
def pulled(world: World) -> World:
    """A world whose tracker has pull requests; that others refuse is shown below."""
    if Ability.PULLS not in world.tracker.abilities:
        pytest.skip("this tracker declares no pull requests")
    return world


def keys(issues: object) -> list[str]:
    return [issue.key for issue in issues]  # type: ignore[attr-defined]


def ready_of(world: World, root: str) -> list[Issue]:
    found = world.tracker.queues({root: READY})[root]
    assert found is not None
    return list(found)


def pulls_of(world: World, root: str, *heads: str) -> list[Pull]:
    found = world.tracker.pulls({root: heads})[root]
    assert found is not None
    return list(found)


# The ready queue.


@pytest.mark.row("LAB-35", "LAB-54", level="contract")
def test_the_queue_is_the_open_issues_with_the_label_lowest_number_first(world: World) -> None:
    root = world.root("demo")
    for number in (9, 3, 12, 5):
        world.issue(root, number, f"issue {number}", labels=[READY, "bug"])
    world.issue(root, 1, "closed", labels=[READY], is_open=False)
    world.issue(root, 2, "not ready", labels=["bug"])
    world.issue(root, 4, "nearly", labels=["ready-for-agents"])

    assert keys(ready_of(world, root)) == [world.key(n) for n in (3, 5, 9, 12)]
    open_keys = [world.key(n) for n in (2, 3, 4, 5, 9, 12)]
    assert keys(world.tracker.open_issues(root)) == open_keys
    assert world.tracker.open_count(root) == len(open_keys)
    assert READY in ready_of(world, root)[0].labels


@pytest.mark.row("LAB-35", level="contract")
def test_a_queue_knows_only_its_own_root(world: World) -> None:
    ours, theirs = world.root("ours"), world.root("theirs")
    world.issue(theirs, 1, "not ours", labels=[READY])

    assert keys(ready_of(world, ours)) == []
    assert keys(world.tracker.open_issues(theirs)) == [world.key(1)]


@pytest.mark.row("LAB-34", level="contract")
def test_a_broken_entry_does_not_spoil_the_good_one(world: World) -> None:
    root = world.root("demo")
    world.issue(root, 7, "good", labels=[READY])
    world.break_an_issue(root)

    assert keys(ready_of(world, root)) == [world.key(7)]


@pytest.mark.row("LAB-34", level="contract")
def test_a_broken_pull_request_does_not_spoil_the_good_one(pulled: World) -> None:
    world, root = pulled, pulled.root("demo")
    world.pull(root, "afk/7")
    world.break_a_pull(root, "afk/7")

    assert [pull.state for pull in pulls_of(world, root, "afk/7", "")] == [PullState.OPEN]


@pytest.mark.row("LAB-35", level="contract")
def test_a_tracker_that_is_gone_is_an_error_and_never_an_empty_queue(world: World) -> None:
    root = world.root("demo")
    world.lose(root)

    for ask in (
        lambda: world.tracker.open_issues(root),
        lambda: world.tracker.issue(root, world.key(1)),
        lambda: world.tracker.create_pull(root, NewPull("afk/1", "main", "t", "", "ada")),
    ):
        with pytest.raises(TrackerError):
            ask()


# One issue.


@pytest.mark.row("LAB-35", level="contract")
def test_an_issue_comes_with_its_comments_oldest_first(world: World) -> None:
    root = world.root("demo")
    world.issue(root, 7, "<script>alert(1)</script>", labels=["bug"])
    key = world.key(7)
    world.remark(root, 7, "ada", "first\nline two")
    world.remark(root, 7, "eve", "second")

    issue = world.tracker.issue(root, key)

    assert (issue.key, issue.title, issue.is_open) == (key, "<script>alert(1)</script>", True)
    assert [(c.author, c.body) for c in issue.comments] == [
        ("ada", "first\nline two"),
        ("eve", "second"),
    ]


@pytest.mark.row("LAB-35", level="contract")
def test_our_comment_comes_after_the_others_with_its_whole_text(world: World) -> None:
    """A forge shows its own account as the author."""
    root = world.root("demo")
    world.issue(root, 7, "demo")
    world.remark(root, 7, "ada", "first")

    world.tracker.comment(root, world.key(7), "run 3", "second\nline two")

    first, ours = world.tracker.issue(root, world.key(7)).comments
    assert (first.author, first.body) == ("ada", "first")
    assert ours.body == "second\nline two"
    assert ours.author


@pytest.mark.row("LAB-35", level="contract")
@pytest.mark.parametrize("key", ["8", "", "x", "7/../8", "-7", "7.0", "٧", "9" * 40])
def test_an_unknown_issue_is_not_found(world: World, key: str) -> None:
    root = world.root("demo")
    world.issue(root, 7, "the only one")

    with pytest.raises(NotFound):
        world.tracker.issue(root, key)
    with pytest.raises(NotFound):
        world.tracker.comment(root, key, "ada", "hello")


# Pull requests.


@pytest.mark.row("LAB-29", level="contract")
def test_only_exactly_the_asked_heads_are_listed(pulled: World) -> None:
    world = pulled
    root = world.root("demo")
    for head in ("afk/6", "afk/63", "afk/7x", "AFK/7", "feature/7", "afk/77"):
        world.pull(root, head)

    assert pulls_of(world, root, "afk/7") == []
    assert [pull.head for pull in pulls_of(world, root, "afk/6")] == ["afk/6"]
    assert {pull.head for pull in pulls_of(world, root, "afk/6", "afk/63")} == {"afk/6", "afk/63"}


@pytest.mark.row("LAB-30", "LAB-31", "LAB-32", level="contract")
@pytest.mark.parametrize(
    ("state", "is_done"), [("open", True), ("merged", True), ("closed", False)], ids=str
)
def test_all_states_are_listed_and_only_open_and_merged_count(
    pulled: World, state: str, is_done: bool
) -> None:
    world = pulled
    root = world.root("demo")
    number = world.pull(root, "afk/7", state)

    best = best_pull(pulls_of(world, root, "afk/7"), "afk/7")

    assert best is not None
    assert (best.number, best.state) == (number, PullState(state))
    assert counts(best) is is_done


@pytest.mark.row("LAB-33", level="contract")
@pytest.mark.parametrize("live", ["open", "merged"])
def test_the_live_one_counts_when_a_closed_one_shares_its_head(pulled: World, live: str) -> None:
    world = pulled
    root = world.root("demo")
    world.pull(root, "afk/7", "closed")
    number = world.pull(root, "afk/7", live)
    world.pull(root, "afk/7", "closed")

    best = best_pull(pulls_of(world, root, "afk/7"), "afk/7")

    assert best is not None
    assert best.number == number
    assert counts(best)


@pytest.mark.row("LAB-35", level="contract")
def test_many_roots_are_asked_at_once_and_each_has_its_own_answer(pulled: World) -> None:
    world = pulled
    ours, theirs, empty = world.root("ours"), world.root("theirs"), world.root("empty")
    world.pull(ours, "afk/7")
    world.pull(theirs, "afk/7", "merged")
    world.pull(theirs, "afk/8")
    world.pull(ours, "afk/8")

    found = world.tracker.pulls({ours: ["afk/7"], theirs: {"afk/8", "afk/7"}, empty: ["afk/7"]})

    assert {
        root: sorted((p.head, p.state.value) for p in pulls or ()) for root, pulls in found.items()
    } == {
        ours: [("afk/7", "open")],
        theirs: [("afk/7", "merged"), ("afk/8", "open")],
        empty: [],
    }
    assert found[empty] is not None
    assert world.tracker.pulls({}) == {}


@pytest.mark.row("LAB-13", level="contract")
def test_a_root_that_cannot_be_read_is_none_and_the_others_are_answered(pulled: World) -> None:
    world = pulled
    good, bad = world.root("good"), world.root("bad")
    world.pull(good, "afk/7")
    world.lose(bad)

    found = world.tracker.pulls({good: ["afk/7"], bad: ["afk/7"], "no such root": ["afk/7"]})

    assert [pull.head for pull in found[good] or ()] == ["afk/7"]
    assert found[bad] is None
    assert found["no such root"] is None


@pytest.mark.row("LAB-35", level="contract")
def test_what_was_said_on_a_pull_request_comes_oldest_first(pulled: World) -> None:
    """With the line that it is about; when, as far as the tracker tells it."""
    world, root = pulled, pulled.root("demo")
    number, other = world.pull(root, "afk/7"), world.pull(root, "afk/8")
    if world.tracker.kind == "builtin":
        assert world.tracker.pull_comments(root, number) == ()  # they are read from its tables
        return
    first, on_line, last = (
        Comment("ada", "Not yet."),
        Comment("eve", "Why twice?", place="src/a.py:12", quote="    retry()"),
        Comment("ada", "See\nabove."),
    )
    for one in (first, on_line, last):
        world.said(root, number, one)

    told = world.tracker.pull_comments(root, number)

    assert [replace(one, at=None, is_outsider=False) for one in told] == [first, on_line, last]
    times = [one.at for one in told if one.at]
    assert times == sorted(times)
    assert list(world.tracker.pull_comments(root, other)) == []
    with pytest.raises(NotFound):
        world.tracker.pull_comments(root, 99)


@pytest.mark.row("LAB-35", level="contract")
def test_a_new_pull_request_is_open_and_listed(pulled: World) -> None:
    world = pulled
    root = world.root("demo")
    new = NewPull("afk/7", "main", "Add retries", "Closes #7", "run 3", head_commit="a" * 40)

    made = world.tracker.create_pull(root, new)

    assert made.state is PullState.OPEN
    assert pulls_of(world, root, "afk/7") == [made]
    assert (made.base, made.title, made.body, made.head_commit) == (
        "main",
        "Add retries",
        "Closes #7",
        "a" * 40,
    )


@pytest.mark.postgres
@pytest.mark.row("LAB-35", level="contract")
def test_a_branch_has_one_open_pull_request_and_any_number_of_ended_ones(pulled: World) -> None:
    world = pulled
    root = world.root("demo")
    world.pull(root, "afk/7", "closed")
    world.pull(root, "afk/7", "merged")
    new = NewPull("afk/7", "main", "again", "", "run 3")
    world.tracker.create_pull(root, new)

    with pytest.raises(Refused, match="already an open pull request for afk/7"):
        world.tracker.create_pull(root, new)

    assert len(pulls_of(world, root, "afk/7")) == 3
    world.tracker.create_pull(root, NewPull("afk/8", "main", "other branch", "", "run 3"))


@pytest.mark.row("LAB-35", level="contract")
def test_every_tracker_says_what_it_can_do(world: World) -> None:
    assert world.tracker.abilities <= set(Ability)
    assert world.tracker.kind


REFUSED: dict[Ability, Callable[[Tracker, str, str], object]] = {
    Ability.PULLS: lambda it, root, key: it.pulls({root: ["afk/7"]}),
    Ability.COMMENT: lambda it, root, key: it.comment(root, key, "ada", "hello"),
    Ability.LABEL: lambda it, root, key: it.add_label(root, key, READY),
    Ability.CLOSE: lambda it, root, key: it.close(root, key),
    Ability.CREATE_ISSUE: lambda it, root, key: it.create_issue(root, NewIssue("new")),
    Ability.CREATE_LABEL: lambda it, root, key: it.create_label(root, READY),
    Ability.CREATE_PULL: lambda it, root, key: it.create_pull(
        root, NewPull("afk/1", "main", "t", "", "ada")
    ),
    Ability.CHECKS: lambda it, root, key: it.checks(root, "a" * 40),
    Ability.MERGE: lambda it, root, key: it.merge(root, 1, "a" * 40),
    Ability.BLOCKERS: lambda it, root, key: it.blockers({root: [key]}),
    Ability.STATUS: lambda it, root, key: it.set_status(root, key, True),
}


@pytest.mark.row("X-01", level="contract")
def test_what_a_tracker_does_not_declare_it_refuses(world: World) -> None:
    root = world.root("demo")
    world.issue(root, 7, "only")

    for ability in REFUSED.keys() - world.tracker.abilities:
        with pytest.raises(Refused, match="cannot do that"):
            REFUSED[ability](world.tracker, root, world.key(7))


def test_an_issue_names_its_milestone(world: World) -> None:
    if Ability.MILESTONES not in world.tracker.abilities:
        pytest.skip("this tracker declares no milestones")
    root = world.root("demo")
    for number in (3, 5):
        world.issue(root, number, f"issue {number}", labels=[READY])
    world.milestone(root, 5, "Version 2")

    assert [one.milestone for one in world.tracker.open_issues(root)] == ["", "Version 2"]


# The rule beside the seam, and what only the fake can show.


@pytest.mark.row("LAB-29", level="pure")
def test_the_same_head_in_a_fork_does_not_count() -> None:
    fork = Pull(9, "afk/7", PullState.OPEN, is_fork=True)
    own = Pull(4, "afk/7", PullState.CLOSED)

    assert best_pull([fork], "afk/7") is None
    assert best_pull([fork, own], "afk/7") == own
    assert not counts(best_pull([fork, own], "afk/7"))
    assert not counts(None)


def test_the_newest_of_several_live_ones_is_shown() -> None:
    merged, opened = Pull(4, "afk/7", PullState.MERGED), Pull(6, "afk/7", PullState.OPEN)

    assert best_pull([opened, merged, Pull(8, "afk/7", PullState.CLOSED)], "afk/7") == opened


def test_a_fork_of_the_same_name_does_not_keep_the_branch_from_its_own_pull_request() -> None:
    fake = MemoryTracker()
    fake.add_root("demo")
    fake.add_pull("demo", "afk/7", is_fork=True)

    assert fake.create_pull("demo", NewPull("afk/7", "main", "ours", "", "run 3")).number == 2


@pytest.mark.row("LAB-35", level="contract")
def test_an_ability_that_was_not_declared_is_refused() -> None:
    fake = MemoryTracker(abilities=())
    fake.add_root("demo")
    fake.add_issue("demo", "read only")

    with pytest.raises(Refused, match="cannot do that"):
        fake.comment("demo", "1", "ada", "hello")
    with pytest.raises(Refused, match="cannot do that"):
        fake.create_pull("demo", NewPull("afk/1", "main", "t", "", "ada"))
    assert fake.issue("demo", "1").comments == ()


def test_the_fake_can_fail_as_a_whole_and_counts_what_it_was_asked() -> None:
    fake = MemoryTracker()
    fake.add_root("demo")
    fake.fail()

    with pytest.raises(TrackerError, match="500"):
        fake.pulls({"demo": ["afk/7"]})
    fake.heal()

    assert fake.pulls({"demo": ["afk/7"]}) == {"demo": []}
    assert fake.calls["pulls"] == 2


@pytest.mark.row("LAB-64", level="contract")
def test_a_kind_that_labsite_cannot_drive_has_no_tracker() -> None:
    assert tracker_of("") is None
    assert tracker_of("jira") is None
    found = tracker_of("builtin")
    assert found is not None
    assert found.kind == "builtin"
