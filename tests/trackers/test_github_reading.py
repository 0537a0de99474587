"""How GitHub's answers are read: examples written from its description, entry by entry."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from trackers.base import CheckState, PullState
from trackers.forges import github_reading, reading
from trackers.forges.repository import is_number, repository_of

ISSUE: dict[str, Any] = {
    "number": 7,
    "state": "open",
    "title": "Add retries",
    "body": "Blocked by #3",
    "user": {"login": "ada"},
    "labels": [{"name": "bug"}, "ready-for-agent", {"name": None}, 7],
    "html_url": "https://github.com/acme/shop/issues/7",
}
PULL: dict[str, Any] = {
    "number": 9,
    "state": "open",
    "title": "Add retries",
    "body": None,
    "html_url": "https://github.com/acme/shop/pull/9",
    "head": {"ref": "afk/7", "sha": "a" * 40, "repo": {"id": 1}},
    "base": {"ref": "main", "repo": {"id": 1}},
    "created_at": "2026-03-01T12:00:00Z",
    "merged_at": None,
    "merge_commit_sha": "c" * 40,
}
MERGED = PULL | {"state": "closed", "merged_at": "2026-03-02T12:00:00Z"}


@pytest.mark.row("LAB-34", level="pure")
def test_an_issue_is_read_without_what_cannot_be_read() -> None:
    issue = reading.issue(ISSUE)

    assert issue is not None
    assert (issue.key, issue.title, issue.body, issue.author) == (
        "7",
        "Add retries",
        "Blocked by #3",
        "ada",
    )
    assert issue.labels == ("bug", "ready-for-agent")
    assert issue.is_open
    assert issue.ready_by is None


@pytest.mark.row("X-02", "LAB-34", level="pure")
@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(ISSUE | {"pull_request": {"url": "…"}}, id="a pull request"),
        pytest.param(ISSUE | {"number": "7"}, id="number as text"),
        pytest.param(ISSUE | {"number": True}, id="number as yes"),
        pytest.param(ISSUE | {"number": 0}, id="number zero"),
        pytest.param(ISSUE | {"number": -7}, id="number below zero"),
        pytest.param(ISSUE | {"number": 7.5}, id="broken number"),
        pytest.param(ISSUE | {"number": None}, id="number null"),
        pytest.param(ISSUE | {"state": "merged"}, id="unknown state"),
        pytest.param({"title": "nothing else"}, id="nothing"),
        pytest.param(None, id="null"),
        pytest.param([ISSUE], id="a list"),
        pytest.param("7", id="a text"),
    ],
)
def test_what_is_no_issue_is_left_out(entry: Any) -> None:
    assert reading.issue(entry) is None


@pytest.mark.row("LAB-34", level="pure")
@pytest.mark.parametrize("field", ["title", "body", "user", "labels", "html_url"])
@pytest.mark.parametrize("value", [None, 7, True, [7], {"a": 1}], ids=str)
def test_a_field_of_another_type_does_not_cost_the_issue(field: str, value: Any) -> None:
    issue = reading.issue(ISSUE | {field: value, "from_the_future": {"a": []}})

    assert issue is not None
    assert issue.key == "7"


@pytest.mark.row("X-02", level="pure")
@pytest.mark.parametrize(
    ("entry", "state", "commit"),
    [
        pytest.param(PULL, PullState.OPEN, "", id="open, with a trial merge"),
        pytest.param(MERGED, PullState.MERGED, "c" * 40, id="merged"),
        pytest.param(PULL | {"state": "closed"}, PullState.CLOSED, "", id="closed"),
    ],
)
def test_merged_is_told_by_the_time_of_merging(entry: Any, state: PullState, commit: str) -> None:
    pull = github_reading.pull(entry)

    assert pull is not None
    assert (pull.state, pull.merge_commit) == (state, commit)
    assert (pull.head, pull.base, pull.head_commit) == ("afk/7", "main", "a" * 40)
    assert pull.created_at == datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("entry", "is_draft"),
    [
        pytest.param(PULL | {"draft": True}, True, id="draft"),
        pytest.param(PULL | {"draft": False}, False, id="ready"),
        pytest.param(PULL, False, id="not told"),
        pytest.param(PULL | {"draft": "true"}, False, id="a word"),
        pytest.param(MERGED | {"draft": True}, False, id="merged"),
        pytest.param(PULL | {"title": "WIP: one"}, False, id="a title says nothing here"),
    ],
)
def test_a_draft_is_told_while_it_is_open(entry: Any, is_draft: bool) -> None:
    pull = github_reading.pull(entry)

    assert pull is not None
    assert pull.is_draft is is_draft


@pytest.mark.row("LAB-34", level="pure")
@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(PULL | {"head": None}, id="no head"),
        pytest.param(PULL | {"head": {"ref": 7, "repo": {"id": 1}}}, id="head is a number"),
        pytest.param(PULL | {"number": "9"}, id="number as text"),
        pytest.param(PULL | {"state": "draft"}, id="unknown state"),
        pytest.param(None, id="null"),
    ],
)
def test_what_is_no_pull_request_is_left_out(entry: Any) -> None:
    assert github_reading.pull(entry) is None


@pytest.mark.row("LAB-29", level="pure")
@pytest.mark.parametrize(
    ("head", "base", "is_fork"),
    [
        pytest.param({"repo": {"id": 1}}, {"repo": {"id": 1}}, False, id="here"),
        pytest.param({"repo": {"id": 2}}, {"repo": {"id": 1}}, True, id="in a fork"),
        pytest.param({"repo": None}, {"repo": {"id": 1}}, True, id="fork is gone"),
        pytest.param({"repo": {"id": "1"}}, {"repo": {"id": 1}}, True, id="cannot be told"),
        pytest.param({"repo": None}, {"repo": None}, True, id="nothing is told"),
        pytest.param({"repo_id": 1}, {"repo_id": 1}, False, id="Gitea, here"),
        pytest.param({"repo_id": -1}, {"repo_id": 1}, True, id="Gitea, fork is gone"),
    ],
)
def test_a_head_in_another_repository_is_a_fork(head: Any, base: Any, is_fork: bool) -> None:
    assert reading.is_fork(head, base) is is_fork


@pytest.mark.parametrize(
    ("status", "conclusion", "state"),
    [
        ("completed", "success", CheckState.PASSED),
        ("completed", "neutral", CheckState.PASSED),
        ("completed", "skipped", CheckState.PASSED),
        ("completed", "failure", CheckState.FAILED),
        ("completed", "timed_out", CheckState.FAILED),
        ("completed", "cancelled", CheckState.FAILED),
        ("completed", "action_required", CheckState.FAILED),
        ("completed", "startup_failure", CheckState.FAILED),
        ("completed", "a new word", CheckState.RUNNING),
        ("completed", None, CheckState.RUNNING),
        ("queued", None, CheckState.RUNNING),
        ("in_progress", "success", CheckState.RUNNING),
    ],
)
def test_a_check_run_in_our_words(status: str, conclusion: str | None, state: CheckState) -> None:
    entry = {
        "name": "unit",
        "status": status,
        "conclusion": conclusion,
        "details_url": "https://ci",
    }

    check = github_reading.check_run(entry)

    assert check is not None
    assert (check.name, check.state, check.url) == ("unit", state, "https://ci")


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ("success", CheckState.PASSED),
        ("failure", CheckState.FAILED),
        ("error", CheckState.FAILED),
        ("pending", CheckState.RUNNING),
        ("a new word", CheckState.RUNNING),
    ],
)
def test_a_commit_status_in_our_words(told: str, state: CheckState) -> None:
    check = github_reading.status({"context": "ci", "state": told, "target_url": None})

    assert check is not None
    assert check.state is state


# Names.


@pytest.mark.parametrize(
    "root",
    [
        "",
        "1",
        "1/acme",
        "acme/shop",
        "1/acme/shop/issues",
        "1/../shop",
        "1/acme/..",
        "1/./shop",
        "1/acme/%2e%2e",
        "1/acme/a b",
        "1/acme/shop?x=1",
        "1/acme/shöp",
        "x/acme/shop",
        "-1/acme/shop",
        "1//shop",
        "1/acme/shop\n",
    ],
)
def test_a_root_that_could_make_another_path_is_none(root: str) -> None:
    assert repository_of(root) is None


def test_the_parts_of_a_path_are_quoted() -> None:
    repository = repository_of("1/acme/shop.js")

    assert repository is not None
    assert repository.path() == "/repos/acme/shop.js"
    assert repository.path("labels", "a/../b c?") == "/repos/acme/shop.js/labels/a%2F..%2Fb%20c%3F"


@pytest.mark.row("LAB-34", level="pure")
@pytest.mark.parametrize("key", ["0", "07", "-7", "7.0", "7/../8", "", "x", "٧", "7\n", "9" * 10])
def test_a_key_is_a_positive_number_without_zeros_before_it(key: str) -> None:
    assert not is_number(key)
    assert is_number("7")


def test_a_refusal_is_told_in_the_words_of_the_forge() -> None:
    told = {
        "message": "Validation Failed",
        "errors": [{"message": "No commits"}, "again", {"a": 1}],
    }

    assert reading.error_text(told) == "Validation Failed; No commits; again"
    assert reading.error_text(None) == ""
    assert reading.error_text({"message": 7}) == ""
