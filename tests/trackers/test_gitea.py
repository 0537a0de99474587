"""What is special of Gitea and Forgejo: labels by number, long histories, older servers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.trackers.forge import SHA, Gitea, faults
from tests.trackers.forge.state import Label
from tests.trackers.forge.visitor import a_client
from tests.trackers.stand import READY, ROOT, Stand, a_stand
from trackers.account import Account
from trackers.base import NewIssue, NewPull, NotFound, Refused, Unreachable
from trackers.forges.gitea import GiteaTracker


@pytest.fixture
def stand(gitea: Gitea) -> Iterator[Stand]:
    return a_stand(gitea)


def heads(stand: Stand, *wanted: str) -> list[str] | None:
    found = stand.pulls(*wanted)
    return None if found is None else [pull.head for pull in found]


# The history of pull requests.


@pytest.mark.row("X-03", level="contract")
def test_a_long_history_on_a_slow_server_is_read_over_several_ticks(stand: Stand) -> None:
    stand.repo.pull("afk/7", "merged", is_branch_gone=True)
    for number in range(160):
        stand.repo.pull(f"feature/{number}", "closed")
    slow = faults.slow(6, pause=stand.forge.clock.advance)
    stand.forge.faults.add(slow, times=faults.FOREVER, path="/pulls")

    answers = [heads(stand, "afk/7") for _ in range(5)]

    assert answers == [None, None, None, ["afk/7"], ["afk/7"]]
    seen = [
        line.query.get("page", "1") for line in stand.forge.log if line.query["sort"] == "oldest"
    ]
    assert seen == ["1", "2", "3", "4"]


def test_pull_requests_that_come_meanwhile_are_not_missed(stand: Stand) -> None:
    for number in range(160):
        stand.repo.pull(f"feature/{number}", "closed")
    slow = faults.slow(6, pause=stand.forge.clock.advance)
    stand.forge.faults.add(slow, times=faults.FOREVER, path="/pulls")

    assert heads(stand, "afk/8") is None
    stand.repo.pull("afk/8")
    for number in range(70):
        stand.repo.pull(f"later/{number}", "closed")
    found = None
    for _ in range(6):
        found = found or heads(stand, "afk/8")

    assert found == ["afk/8"]


def test_a_history_that_came_with_holes_is_read_again(stand: Stand) -> None:
    stand.repo.pull("afk/7", "merged")
    for number in range(160):
        stand.repo.pull(f"feature/{number}", "closed")
    hole = faults.empty_page(1)
    stand.forge.faults.planned.append(faults.Fault(change=_only_oldest(hole), page=1, times=9))

    assert heads(stand, "afk/7") == ["afk/7"]


def _only_oldest(hole: faults.Fault) -> faults.Change:
    """The hole in the first page of the history, the first time that it is read."""
    made: list[int] = []

    def change(asked: faults.Asked, told: faults.Told) -> faults.Told:
        if asked.query.get("sort") != "oldest" or made or hole.change is None:
            return told
        made.append(1)
        return hole.change(asked, told)

    return change


def test_a_server_that_gives_fewer_than_asked_is_read_whole(stand: Stand) -> None:
    stand.forge.most_per_page = 20
    stand.repo.pull("afk/7", "merged")
    for number in range(90):
        stand.repo.pull(f"feature/{number}", "closed")
        stand.repo.issue("ready", labels=[READY])

    assert heads(stand, "afk/7") == ["afk/7"]
    assert len(stand.ready() or ()) == 90
    stand.forge.violations.clear()


def test_a_server_that_thinks_it_has_another_name_is_asked_by_ours(stand: Stand) -> None:
    stand.forge.public_url = "http://localhost:3000"  # type: ignore[attr-defined]
    stand.repo.pull("afk/7", "merged")
    for number in range(90):
        stand.repo.pull(f"feature/{number}", "closed")
        stand.repo.issue("ready", labels=[READY])

    assert heads(stand, "afk/7") == ["afk/7"]
    assert len(stand.ready() or ()) == 90


# Labels.


def test_labels_of_the_organisation_can_be_used(stand: Stand) -> None:
    stand.forge.organisation_labels["acme"] = [Label(77, "shared")]
    stand.repo.issue("i", number=7)

    assert stand.tracker.labels(ROOT) == {"shared"}
    stand.tracker.add_label(ROOT, "7", "shared")
    assert stand.tracker.issue(ROOT, "7").labels == ("shared",)
    stand.tracker.remove_label(ROOT, "7", "shared")
    assert stand.tracker.issue(ROOT, "7").labels == ()


def test_a_token_that_may_not_see_the_organisation_still_labels(gitea: Gitea) -> None:
    stand = a_stand(gitea)
    stand.repo.label("bug")
    stand.repo.issue("i", number=7)
    token = gitea.token("bot", permissions={"issue": "write", "repository": "write"})
    tracker = GiteaTracker(a_client(gitea), lambda: {"1": Account(gitea.api, token)}, gitea.now)

    assert tracker.labels(ROOT) == {"bug"}
    tracker.add_label(ROOT, "7", "bug")
    with pytest.raises(Refused, match="no label “urgent”"):
        tracker.add_label(ROOT, "7", "urgent")


def test_an_unknown_ready_label_lists_nothing_although_gitea_lists_all(stand: Stand) -> None:
    stand.repo.issue("i", number=7, labels=["bug"])

    assert stand.ready() == []
    assert len(stand.forge.calls("/issues")) == 1


def test_an_older_server_takes_labels_by_number() -> None:
    stand = a_stand(Gitea(version="1.19.4"))
    stand.repo.label("bug")

    made = stand.tracker.create_issue(ROOT, NewIssue("i", "", ("bug",)))
    stand.tracker.add_label(ROOT, made.key, "bug")

    assert stand.tracker.issue(ROOT, made.key).labels == ("bug",)
    stand.forge.check()


# Blockers.


def test_dependencies_that_are_switched_off_are_asked_for_once_an_hour(stand: Stand) -> None:
    stand.repo.has_dependencies = False
    stand.repo.issue("i", number=7, labels=[READY])

    for _ in range(3):
        stand.ready()
        assert stand.waits("7") == {}

    assert len(stand.forge.calls("/dependencies")) == 2


def test_an_issue_of_another_repository_is_named_with_it(stand: Stand) -> None:
    library = stand.forge.repo("acme/lib", roles={"bot": "read"})
    waits = library.issue("first this", number=3)
    stand.repo.issue("i", number=7).blocked_by.append((library, waits))

    assert stand.waits("7") == {"7": ["acme/lib#3"]}


def test_after_a_rename_its_own_issues_are_still_its_own(stand: Stand) -> None:
    waits = stand.repo.issue("first this", number=3)
    stand.repo.issue("i", number=7, labels=[READY]).blocked_by.append((stand.repo, waits))
    stand.forge.rename(stand.repo, "acme/store")

    stand.ready()

    assert stand.waits("7") == {"7": ["3"]}


def test_what_begins_to_wait_is_noticed_and_what_is_free_is_looked_at_again(stand: Stand) -> None:
    one, waits = stand.repo.issue("i", number=1, labels=[READY]), stand.repo.issue("w", number=2)
    stand.ready()
    assert stand.waits("1") == {}

    one.blocked_by.append((stand.repo, waits))
    stand.repo.touch(one)
    stand.ready()
    assert stand.waits("1") == {"1": ["2"]}
    one.blocked_by.clear()
    stand.repo.touch(one)
    stand.ready()
    assert stand.waits("1") == {}
    one.blocked_by.append((stand.repo, waits))
    stand.forge.clock.advance(601)
    assert stand.waits("1") == {"1": ["2"]}


# Acts.


def test_an_issue_that_waits_is_not_closed(stand: Stand) -> None:
    one, waits = stand.repo.issue("i", number=1), stand.repo.issue("w", number=2)
    one.blocked_by.append((stand.repo, waits))

    with pytest.raises(Refused, match="still has open dependencies"):
        stand.tracker.close(ROOT, "1")


def test_a_merge_that_is_still_being_looked_into_may_be_tried_again(stand: Stand) -> None:
    pull = stand.repo.pull("afk/7", number=9)
    assert pull.pull is not None
    pull.pull.not_mergeable = "Please try again later"

    with pytest.raises(Unreachable, match="Try again in a moment"):
        stand.tracker.merge(ROOT, 9, SHA)


def test_issues_that_are_switched_off(stand: Stand) -> None:
    stand.repo.pull("afk/7")
    stand.repo.has_issues = False

    assert stand.ready() is None
    with pytest.raises(Refused, match="Issues are switched off in acme/shop"):
        stand.tracker.open_issues(ROOT)
    with pytest.raises(Refused, match="Issues are switched off in acme/shop"):
        stand.tracker.open_count(ROOT)


def test_a_comment_on_nothing_is_not_found_although_gitea_answers_500(stand: Stand) -> None:
    with pytest.raises(NotFound, match="no issue 99"):
        stand.tracker.comment(ROOT, "99", "ada", "hello")
    assert not stand.forge.calls(method="POST")


def test_a_merge_that_conflicts_says_so(stand: Stand) -> None:
    stand.repo.pull("afk/7", number=9)
    stand.forge.faults.add(faults.status(409, ""), path="/merge")

    with pytest.raises(Refused, match="does not merge pull request 9"):
        stand.tracker.merge(ROOT, 9, SHA)


def test_an_archived_repository_takes_no_pull_request(stand: Stand) -> None:
    stand.repo.is_archived = True

    with pytest.raises(Refused, match="archived"):
        stand.tracker.create_pull(ROOT, NewPull("afk/7", "main", "t", "", "ada"))


def test_a_scope_that_is_missing_is_named(gitea: Gitea) -> None:
    stand = a_stand(gitea)
    stand.repo.issue("i", number=7)
    token = gitea.token("bot", permissions={"issue": "read", "repository": "read"})
    tracker = GiteaTracker(a_client(gitea), lambda: {"1": Account(gitea.api, token)}, gitea.now)

    with pytest.raises(Refused, match=r"write:issue.*it takes “write:issue”"):
        tracker.comment(ROOT, "7", "ada", "hello")
