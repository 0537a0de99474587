"""What forges do wrong, met by the adapters: few typed errors, and one bad root spoils no other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from traceback import TracebackException
from typing import Any

import pytest

from tests.trackers.forge import faults
from tests.trackers.forge.faults import Fault
from tests.trackers.forge_worlds import FORGES, ForgeWorld
from tests.trackers.worlds import READY
from trackers.base import (
    NewIssue,
    NewPull,
    NotFound,
    NotUnderstood,
    PullState,
    RateLimited,
    Refused,
    TrackerError,
    Unreachable,
    best_pull,
)

# What goes wrong is met by the client and the adapter, and Forgejo's adapter is Gitea's.
ADAPTERS = sorted({*FORGES} - {"forgejo"})


@pytest.fixture(params=ADAPTERS)
def world(request: pytest.FixtureRequest) -> Iterator[ForgeWorld]:
    made = FORGES[request.param]()
    yield made
    made.forge.check()


def a_full_root(world: ForgeWorld, name: str) -> str:
    """A root with a ready issue 7, its comment, and a pull request 8 for it."""
    root = world.root(name)
    world.issue(root, 7, "Add retries", labels=[READY])
    world.remark(root, 7, "ada", "please")
    world.pull(root, "afk/7")
    return root


def place(root: str) -> str:
    return f"/repos/{root.partition('/')[2]}"


def slowly(world: ForgeWorld) -> Fault:
    return faults.slow(60, world.forge.clock.advance)


# One kind of error each.

Made = Callable[[ForgeWorld], Fault]
FAULTS: dict[str, tuple[Made, type[TrackerError]]] = {
    "500": (lambda w: faults.status(500), Unreachable),
    "502": (lambda w: faults.status(502), Unreachable),
    "503": (lambda w: faults.status(503), Unreachable),
    "504": (lambda w: faults.status(504), Unreachable),
    "dropped": (lambda w: faults.drop(), Unreachable),
    "lost answer": (lambda w: faults.lost(), Unreachable),
    "slow body": (slowly, Unreachable),
    "401": (lambda w: faults.status(401, "Bad credentials"), Refused),
    "403": (lambda w: faults.status(403, "Resource not accessible"), Refused),
    "404": (lambda w: faults.status(404, "Not Found"), Refused),
    "409": (lambda w: faults.status(409, "Conflict"), Refused),
    "422": (lambda w: faults.status(422, "Validation Failed"), Refused),
    "429": (lambda w: faults.limited(), RateLimited),
    "429 with seconds": (lambda w: faults.limited("120"), RateLimited),
    "403 secondary": (lambda w: faults.secondary(), RateLimited),
    "403 secondary with seconds": (lambda w: faults.secondary("90"), RateLimited),
    "403 primary": (
        lambda w: faults.primary(w.forge.now().timestamp() + 600), RateLimited,
    ),
    "truncated": (lambda w: faults.truncated(), NotUnderstood),
    "no JSON": (lambda w: faults.not_json(), NotUnderstood),
    "a web page": (lambda w: faults.html(), NotUnderstood),
    "null": (lambda w: faults.another_shape(None), NotUnderstood),
    "an object": (lambda w: faults.another_shape({"issues": []}), NotUnderstood),
    "a number": (lambda w: faults.another_shape(7), NotUnderstood),
    "too big": (lambda w: faults.big(40_000_000), NotUnderstood),
    "elsewhere": (lambda w: faults.redirect("https://elsewhere.test/"), Refused),
    "in circles": (lambda w: faults.redirect(w.forge.api + "/user"), NotUnderstood),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_one_kind_of_error(world: ForgeWorld, name: str) -> None:
    root = a_full_root(world, "demo")
    fault, kind = FAULTS[name]
    world.forge.faults.add(fault(world), times=faults.FOREVER)

    with pytest.raises(kind) as error:
        world.tracker.open_issues(root)

    assert type(error.value) is kind
    assert str(error.value)


@pytest.mark.row("LAB-13", level="contract")
@pytest.mark.parametrize("name", FAULTS)
def test_a_root_in_trouble_is_none_and_the_other_is_answered(world: ForgeWorld, name: str) -> None:
    """Nothing that goes wrong ends a run: "could not tell" is no answer, not an empty one."""
    bad, good = a_full_root(world, "bad"), a_full_root(world, "good")
    world.forge.faults.add(FAULTS[name][0](world), times=faults.FOREVER, path=place(bad))
    is_limit = FAULTS[name][1] is RateLimited

    for ask in (
        lambda roots: world.tracker.queues(dict.fromkeys(roots, READY)),
        lambda roots: world.tracker.pulls({root: ["afk/7"] for root in roots}),
        lambda roots: world.tracker.still_open({root: ["7"] for root in roots}),
    ):
        found = {**ask([good]), **ask([bad])}
        assert found[bad] is None
        if not is_limit:  # a limit is the whole credential's
            assert len(found[good] or ()) == 1


@pytest.mark.row("LAB-34", level="contract")
@pytest.mark.parametrize("what", ["/pulls", "/issues"])
@pytest.mark.parametrize("name", ["wrong types", "broken entries", "unknown fields"])
def test_entries_are_read_one_by_one(world: ForgeWorld, name: str, what: str) -> None:
    root = a_full_root(world, "demo")
    world.forge.faults.add(
        {
            "wrong types": faults.wrong_types(),
            "broken entries": faults.broken_entries(),
            "unknown fields": faults.unknown_fields(),
        }[name],
        times=faults.FOREVER,
        path=what,
    )

    issues = world.tracker.queues({root: READY})[root]
    pulls = world.tracker.pulls({root: ["afk/7"]})[root]

    if name == "wrong types":
        assert not (issues if what == "/issues" else pulls)
    else:
        assert [issue.key for issue in issues or ()] == ["7"]
        assert [pull.head for pull in pulls or ()] == ["afk/7"]


# Again, and when.


def test_a_read_is_tried_again_and_a_write_never(world: ForgeWorld) -> None:
    root = a_full_root(world, "demo")
    world.forge.faults.add(faults.status(502), times=2, method="GET")

    assert [issue.key for issue in world.tracker.open_issues(root)] == ["7"]
    assert len(world.forge.calls("/issues")) == 3

    for fault in (faults.status(502), faults.drop(), faults.lost(), slowly(world)):
        world.forge.faults.clear()
        world.forge.log.clear()
        world.forge.faults.add(fault, times=faults.FOREVER, method="POST")
        with pytest.raises(Unreachable):
            world.tracker.comment(root, "7", "run 3", "hello")
        assert len(world.forge.calls("/comments", "POST")) == 1


def test_a_lost_answer_to_a_new_pull_request_leaves_one_that_the_next_tick_finds(
    world: ForgeWorld,
) -> None:
    root = world.root("demo")
    world.forge.faults.add(faults.lost(), path="/pulls", method="POST")
    new = NewPull("afk/9", "main", "t", "Closes #9", "run 3")

    with pytest.raises(Unreachable):
        world.tracker.create_pull(root, new)

    assert [pull.state for pull in world.tracker.pulls({root: ["afk/9"]})[root] or ()] == [
        PullState.OPEN
    ]
    with pytest.raises(Refused, match="already an open pull request for afk/9"):
        world.tracker.create_pull(root, new)


@pytest.mark.parametrize(
    ("fault", "seconds"),
    [
        pytest.param(lambda now: faults.limited("120"), 120, id="seconds"),
        pytest.param(
            lambda now: faults.limited(format_datetime(now + timedelta(seconds=300), usegmt=True)),
            300,
            id="a date",
        ),
        pytest.param(lambda now: faults.limited("999999999"), 3600, id="absurd"),
        pytest.param(lambda now: faults.limited(), 60, id="nobody says"),
        pytest.param(lambda now: faults.secondary(), 60, id="secondary"),
        pytest.param(lambda now: faults.secondary("90", 429), 90, id="secondary with seconds"),
        pytest.param(lambda now: faults.primary(now.timestamp() + 600), 600, id="primary"),
        pytest.param(lambda now: faults.primary(now.timestamp() - 600), 60, id="in the past"),
    ],
)
def test_a_limit_says_until_when_and_nothing_is_sent_before(
    world: ForgeWorld, fault: Callable[[datetime], Fault], seconds: float
) -> None:
    root = a_full_root(world, "demo")
    now = world.forge.now().astimezone(UTC)
    world.forge.faults.add(fault(now))

    with pytest.raises(RateLimited) as limit:
        world.tracker.open_issues(root)
    with pytest.raises(RateLimited):
        world.tracker.comment(root, "7", "run 3", "hello")

    assert abs((limit.value.until - now).total_seconds() - seconds) <= 1
    assert len(world.forge.log) == 1
    world.forge.clock.advance(seconds + 1)
    assert [issue.key for issue in world.tracker.open_issues(root)] == ["7"]


# Long lists.


@pytest.mark.row("X-03", level="contract")
def test_the_oldest_of_250_pull_requests_is_found(world: ForgeWorld) -> None:
    root = world.root("demo")
    world.pull(root, "afk/7", "merged")
    for number in range(249):
        world.pull(root, f"other/{number}", "closed")

    pulls = world.tracker.pulls({root: ["afk/7"]})[root]

    assert [(pull.number, pull.state) for pull in pulls or ()] == [(1, PullState.MERGED)]


@pytest.mark.row("X-03", level="contract")
def test_an_empty_page_in_the_middle_is_not_the_end(world: ForgeWorld) -> None:
    root = world.root("demo")
    for number in range(1, 252):
        world.issue(root, number, f"issue {number}", labels=[READY])
    world.forge.faults.add(faults.empty_page(2), times=faults.FOREVER, path="/issues")

    found = world.tracker.queues({root: READY})[root] or ()

    size = world.forge.most_per_page
    assert len(found) == 251 - size
    assert {"1", "251"} <= {issue.key for issue in found}


@pytest.mark.row("X-03", level="contract")
@pytest.mark.parametrize(
    "dropped", [["link"], ["x-total-count"], ["link", "x-total-count"]], ids=str
)
def test_a_long_list_is_read_to_its_end_although_a_proxy_drops_headers(
    world: ForgeWorld, dropped: list[str]
) -> None:
    root = world.root("demo")
    for number in range(1, 232):
        world.issue(root, number, f"issue {number}", labels=[READY])
    world.forge.faults.add(faults.without_headers(*dropped), times=faults.FOREVER)

    assert len(world.tracker.queues({root: READY})[root] or ()) == 231


@pytest.mark.long
@pytest.mark.row("X-03", level="contract")
def test_a_server_that_gives_small_pages_is_read_to_its_end(world: ForgeWorld) -> None:
    """None while a long history is still being read, and never an answer that lacks some."""
    world.forge.max_items = 7
    root = world.root("demo")
    for number in range(1, 100):
        world.issue(root, number, f"issue {number}", labels=[READY])
    world.pull(root, "afk/7", "merged")
    for number in range(249):
        world.pull(root, f"other/{number}", "closed")

    assert len(world.tracker.queues({root: READY})[root] or ()) == 99
    for _ in range(4):
        pulls = world.tracker.pulls({root: ["afk/7"]})[root]
        if pulls is not None:
            break
    assert [pull.state for pull in pulls or ()] == [PullState.MERGED]


@pytest.mark.row("X-03", level="contract")
def test_an_empty_page_among_pull_requests_hides_none_behind_it(world: ForgeWorld) -> None:
    root = world.root("demo")
    world.pull(root, "afk/7", "merged")
    for number in range(249):
        world.pull(root, f"other/{number}", "closed")
    world.forge.faults.add(faults.empty_page(2), times=faults.FOREVER, path="/pulls")

    pulls = world.tracker.pulls({root: ["afk/7"]})[root]

    assert pulls is None or [pull.number for pull in pulls] == [1]


# Branches and names that changed.


def test_a_merged_pull_request_counts_although_its_branch_is_gone(world: ForgeWorld) -> None:
    root = world.root("demo")
    world.repo(root).pull("afk/7", "merged", is_branch_gone=True)

    best = best_pull(world.tracker.pulls({root: ["afk/7"]})[root] or (), "afk/7")

    assert best is not None
    assert (best.head, best.state, best.is_fork) == ("afk/7", PullState.MERGED, False)


def test_the_same_branch_in_a_fork_does_not_count_even_when_the_fork_is_gone(
    world: ForgeWorld,
) -> None:
    root = world.root("demo")
    for owner in ("eve", "mallory"):
        world.repo(root).pull("afk/7", fork=world.forge.repo(f"{owner}/demo"))
    gone = world.forge.find_repo("mallory/demo")
    assert gone is not None
    world.forge.remove(gone)

    pulls = world.tracker.pulls({root: ["afk/7"]})[root]

    assert pulls is not None
    assert best_pull(pulls, "afk/7") is None
    world.tracker.create_pull(root, NewPull("afk/7", "main", "ours", "", "run 3"))


def test_a_renamed_repository_is_read_and_written_under_its_old_name(world: ForgeWorld) -> None:
    root = a_full_root(world, "demo")
    repo = world.repo(root)
    world.forge.rename(repo, "acme/better")

    assert [issue.key for issue in world.tracker.queues({root: READY})[root] or ()] == ["7"]
    assert world.tracker.issue(root, "7").comments[0].body == "please"
    assert len(world.tracker.pulls({root: ["afk/7"]})[root] or ()) == 1
    world.tracker.comment(root, "7", "run 3", "hello")
    assert "hello" in repo.items[7].remarks[-1].body
    made = world.tracker.create_pull(root, NewPull("afk/9", "main", "t", "", "run 3"))
    assert repo.items[made.number].pull is not None


def test_a_redirect_to_another_place_is_not_followed(world: ForgeWorld) -> None:
    """A request to another host would be a violation of the double."""
    root = a_full_root(world, "demo")
    for code in (301, 302, 303, 307, 308):
        world.forge.faults.add(faults.redirect("https://elsewhere.test/steal", code))
        with pytest.raises(TrackerError):
            world.tracker.open_issues(root)


# Secrets.


@pytest.mark.long
@pytest.mark.row("X-05", level="contract")
@pytest.mark.parametrize("name", FAULTS)
def test_a_token_is_in_no_error_and_in_no_log(
    world: ForgeWorld, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    root = a_full_root(world, "demo")
    world.forge.faults.add(FAULTS[name][0](world), times=faults.FOREVER)

    told = _everything_told(world, root)

    assert len(told) > 500
    assert world.token not in told
    assert world.token not in caplog.text


@pytest.mark.row("X-05", level="contract")
@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 422, 500])
def test_a_forge_that_repeats_our_token_does_not_make_us_tell_it(
    world: ForgeWorld, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    root = a_full_root(world, "demo")
    echo = faults.status(status, f"the token {world.token} is not good")
    world.forge.faults.add(echo, times=faults.FOREVER)

    told = _everything_told(world, root)

    assert world.token not in told
    assert world.token not in caplog.text


def _everything_told(world: ForgeWorld, root: str) -> str:
    """Errors with their tracebacks and everything behind them, and what is shown of objects."""
    it: Any = world.tracker
    acts: list[Callable[[], object]] = [
        lambda: it.open_issues(root),
        lambda: it.open_count(root),
        lambda: it.issue(root, "7"),
        lambda: it.pull(root, 8),
        lambda: it.labels(root),
        lambda: it.checks(root, "a" * 40),
        lambda: it.comment(root, "7", "run 3", "hello"),
        lambda: it.add_label(root, "7", "bug"),
        lambda: it.close(root, "7"),
        lambda: it.create_issue(root, NewIssue("new")),
        lambda: it.create_pull(root, NewPull("afk/9", "main", "t", "", "run 3")),
        lambda: it.merge(root, 8, "a" * 40),
        lambda: it.examine(root, READY),
        lambda: it.queues({root: READY}),
        lambda: it.pulls({root: ["afk/7"]}),
    ]
    told = [repr(it), repr(vars(it))]
    for act in acts:
        try:
            told.append(repr(act()))
        except TrackerError as error:
            told += [str(error), repr(error), repr(vars(error))]
            within = error.__traceback__ and error.__traceback__.tb_next  # not this test's frame
            shown = TracebackException(type(error), error, within, capture_locals=True)
            told += shown.format()
    return "\n".join(told)


def test_a_missing_issue_in_a_repository_that_is_there_is_not_found(world: ForgeWorld) -> None:
    root = a_full_root(world, "demo")

    with pytest.raises(NotFound):
        world.tracker.issue(root, "77")
    with pytest.raises(NotFound):
        world.tracker.pull(root, 7)
