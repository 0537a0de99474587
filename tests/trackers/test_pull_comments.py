"""What forges tell of a review: in time, with its lines, and with no more requests than it takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.trackers.forge import Gitea, GitHub, faults
from tests.trackers.forge.state import Item
from tests.trackers.stand import FORGES, ROOT, Stand, a_stand, tracker_on
from trackers.base import Comment, NotFound, Refused, Unreachable

HUNK = "@@ -1,2 +1,2 @@\n kept\n-was\n+is"


@pytest.fixture(params=FORGES)
def stand(request: pytest.FixtureRequest) -> Iterator[Stand]:
    made = a_stand(FORGES[request.param]())
    yield made
    made.forge.check()


@pytest.fixture
def pull(stand: Stand) -> Item:
    return stand.repo.pull("afk/7", number=7)


def told(stand: Stand) -> list[Comment]:
    stand.forge.log.clear()
    return list(stand.tracker.pull_comments(ROOT, 7))


def bodies(stand: Stand) -> list[str]:
    return [one.body for one in told(stand)]


def test_the_thread_the_reviews_and_their_lines_are_one_conversation(
    stand: Stand, pull: Item
) -> None:
    repo, ada = stand.repo, stand.forge.person("ada")
    repo.remark(pull, ada, "first")
    review = repo.review(pull, ada, "second")
    repo.remark_on_line(pull, review, "third", "src/a.py", 2, HUNK)
    repo.remark(pull, ada, "fourth")

    found = told(stand)

    assert [(one.body, one.place, one.quote) for one in found] == [
        ("first", "", ""),
        ("second", "", ""),
        ("third", "src/a.py:2", "is"),
        ("fourth", "", ""),
    ]
    moments = [one.at for one in found if one.at is not None]
    assert len(moments) == 4
    assert moments == sorted(moments)
    # Gitea is asked once more who may write.
    assert len(stand.forge.log) == (3 if stand.forge.style == "github" else 4)


def test_who_may_not_write_to_the_repository_is_told_of_each_comment(
    stand: Stand, pull: Item
) -> None:
    repo, forge = stand.repo, stand.forge
    repo.remark(pull, repo.owner, "of the owner")
    repo.remark(pull, forge.person("bot"), "of one who may write")
    repo.remark(pull, forge.person("eve"), "of a stranger")
    review = repo.review(pull, forge.person("eve"), "a stranger's review")
    repo.remark_on_line(pull, review, "on a line", "src/a.py", 2, HUNK)

    expected = {
        "of the owner": False,
        "of one who may write": False,
        "of a stranger": True,
        "a stranger's review": True,
        "on a line": True,
    }
    assert {one.body: one.is_outsider for one in told(stand)} == expected
    issue = repo.issue("demo", number=8)
    repo.remark(issue, repo.owner, "mine")
    repo.remark(issue, forge.person("eve"), "hers")
    thread = stand.tracker.issue(ROOT, "8").comments
    assert [one.is_outsider for one in thread] == [False, True]


def test_where_gitea_does_not_say_who_may_write_nobody_is_placed() -> None:
    stand = a_stand(Gitea())
    item = stand.repo.issue("demo", number=7)
    stand.repo.remark(item, stand.repo.owner, "please")
    stand.forge.faults.add(faults.status(403), path="/repos/acme/shop/assignees")
    (said,) = stand.tracker.issue(ROOT, "7").comments
    assert (said.body, said.is_outsider) == ("please", None)


def test_a_review_without_words_and_one_that_is_not_handed_in_are_left_out(
    stand: Stand, pull: Item
) -> None:
    repo, ada = stand.repo, stand.forge.person("ada")
    repo.review(pull, ada, state="APPROVED")
    draft = repo.review(pull, ada, "still writing", state="PENDING")
    repo.remark_on_line(pull, draft, "this too", "src/a.py", 2, HUNK)

    assert bodies(stand) == []


def test_who_is_gone_has_no_name_and_what_is_outdated_its_first_line(
    stand: Stand, pull: Item
) -> None:
    review = stand.repo.review(pull, None, "from nobody")
    stand.repo.remark_on_line(pull, review, "gone", "src/a.py", 2, HUNK).line = None

    assert [(one.author, one.place) for one in told(stand)] == [("", ""), ("", "src/a.py:2")]


def test_more_reviews_than_a_page_are_all_read(stand: Stand, pull: Item) -> None:
    ada = stand.forge.person("ada")
    for number in range(120):
        stand.repo.review(pull, ada, f"review {number}")

    assert bodies(stand) == [f"review {number}" for number in range(120)]


def test_a_token_that_may_not_read_pull_requests_is_told_what_it_takes(
    stand: Stand, pull: Item
) -> None:
    is_github = stand.forge.style == "github"
    may = {"issues": "read", "metadata": "read"} if is_github else {"issue": "read"}
    token = stand.forge.token("bot", permissions=may)

    with pytest.raises(Refused, match="To read pull requests, it takes"):
        tracker_on(stand.forge, token).pull_comments(ROOT, 7)


@pytest.mark.parametrize("operation", ["comments", "reviews", "comments on lines"])
def test_a_part_that_is_not_answered_is_an_error_and_never_half_a_review(
    stand: Stand, pull: Item, operation: str
) -> None:
    review = stand.repo.review(pull, stand.forge.person("ada"), "second")
    stand.repo.remark_on_line(pull, review, "third", "src/a.py", 2, HUNK)
    told(stand)
    [path] = [line.path for line in stand.forge.log if line.operation == operation]
    stand.forge.faults.add(faults.status(503), times=faults.FOREVER, path=path)

    with pytest.raises(Unreachable):
        told(stand)


def test_an_unknown_pull_request_is_not_found(stand: Stand) -> None:
    with pytest.raises(NotFound):
        told(stand)


# Gitea has a list of comments for each review.


def lines_asked_for(forge: Gitea) -> list[Any]:
    return [line for line in forge.log if line.operation == "comments on lines"]


def test_only_reviews_with_comments_on_lines_are_asked_for_them(gitea: Gitea) -> None:
    stand = a_stand(gitea)
    pull = stand.repo.pull("afk/7", number=7)
    for number in range(3):
        stand.repo.review(pull, gitea.person("ada"), f"review {number}")

    told(stand)

    assert lines_asked_for(gitea) == []


def test_of_many_reviews_the_lines_of_the_twenty_newest_are_told(gitea: Gitea) -> None:
    stand = a_stand(gitea)
    pull = stand.repo.pull("afk/7", number=7)
    for number in range(23):
        review = stand.repo.review(pull, gitea.person("ada"), f"review {number}")
        stand.repo.remark_on_line(pull, review, f"line {number}", "a.py", 2, HUNK)

    found = bodies(stand)

    assert [body for body in found if body.startswith("line")] == [
        f"line {number}" for number in range(3, 23)
    ]
    assert [body for body in found if body.startswith("review")] == [
        f"review {number}" for number in range(23)
    ]
    assert len(lines_asked_for(gitea)) == 20


def test_a_review_that_is_removed_meanwhile_takes_only_its_own_lines_along(gitea: Gitea) -> None:
    stand = a_stand(gitea)
    pull = stand.repo.pull("afk/7", number=7)
    for number in range(2):
        review = stand.repo.review(pull, gitea.person("ada"))
        stand.repo.remark_on_line(pull, review, f"line {number}", "a.py", 2, HUNK)
    gitea.faults.add(
        faults.status(404), times=faults.FOREVER, path=f"/reviews/{review.id}/comments"
    )

    assert bodies(stand) == ["line 0"]


def test_a_server_that_knows_no_reviews_tells_the_thread() -> None:
    stand = a_stand(Gitea(version="1.11.0"))
    pull = stand.repo.pull("afk/7", number=7)
    stand.repo.remark(pull, stand.forge.person("ada"), "first")
    stand.repo.review(pull, stand.forge.person("ada"), "second")

    assert bodies(stand) == ["first"]
    stand.forge.check()


def test_pull_requests_that_are_switched_off_are_said_to_be(gitea: Gitea) -> None:
    stand = a_stand(gitea)
    stand.repo.pull("afk/7", number=7)
    stand.repo.has_pulls = False

    with pytest.raises(Refused, match="Pull requests are switched off"):
        told(stand)


def test_an_unchanged_review_costs_no_quota(github: GitHub, tmp_path: Any) -> None:
    stand = a_stand(github, tmp_path)
    pull = stand.repo.pull("afk/7", number=7)
    review = stand.repo.review(pull, github.person("ada"), "second")
    stand.repo.remark_on_line(pull, review, "third", "a.py", 2, HUNK)
    before = told(stand)

    assert told(stand) == before
    assert [line.is_counted for line in github.log] == [False] * 3
