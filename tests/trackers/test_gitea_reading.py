"""How answers of Gitea and Forgejo are read: examples written from its types, entry by entry."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from trackers.base import CheckState, Comment, PullState
from trackers.forges import gitea_reading, reading

ISSUE: dict[str, Any] = {
    "number": 7,
    "state": "open",
    "title": "Add retries",
    "body": "why",
    "user": {"login": "ada"},
    "original_author": "",
    "labels": [{"id": 1, "name": "bug"}],
    "pull_request": None,
    "html_url": "https://git.example/acme/shop/issues/7",
}
HERE = {"repo_id": 1, "repo": {"id": 1}}
PULL: dict[str, Any] = {
    "number": 9,
    "state": "open",
    "title": "Add retries",
    "head": {"label": "afk/7", "ref": "afk/7", "sha": "a" * 40, **HERE},
    "base": {"label": "main", "ref": "main", **HERE},
    "merged": False,
    "merge_commit_sha": None,
}
MERGED = PULL | {"state": "closed", "merged": True, "merge_commit_sha": "c" * 40}


LINE: dict[str, Any] = {
    "user": {"login": "eve"},
    "body": "Why twice?",
    "created_at": "2026-03-01T12:00:00Z",
    "path": "a.py",
    "position": 3,
    "original_position": 0,
    "diff_hunk": "@@ -1 +1,3 @@\n kept\n+one\n+  two",
}


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        pytest.param(LINE, ("eve", "a.py:3", "  two"), id="a new line"),
        pytest.param(
            LINE | {"position": 0, "original_position": 8, "diff_hunk": "@@ -8 +8 @@\n-was\n"},
            ("eve", "a.py:8", "was"),
            id="a line that was removed",
        ),
        pytest.param(LINE | {"position": 0}, ("eve", "a.py", ""), id="no line"),
        pytest.param(LINE | {"position": None}, ("eve", "a.py", ""), id="null line"),
        pytest.param(LINE | {"position": True}, ("eve", "a.py", ""), id="line as a boolean"),
        pytest.param(LINE | {"position": -3}, ("eve", "a.py", ""), id="line below zero"),
        pytest.param(LINE | {"user": None}, ("", "a.py:3", "  two"), id="deleted user"),
        pytest.param(LINE | {"diff_hunk": None}, ("eve", "a.py:3", ""), id="null hunk"),
        pytest.param(LINE | {"diff_hunk": "@@ -1 +1 @@"}, ("eve", "a.py:3", ""), id="no lines"),
        pytest.param(LINE | {"body": None}, None, id="null body"),
        pytest.param(LINE | {"body": " \n"}, None, id="nothing said"),
        pytest.param(LINE | {"path": None}, None, id="no file"),
        pytest.param("a.py:3", None, id="no object"),
    ],
)
def test_a_comment_on_a_line(entry: Any, told: tuple[str, str, str] | None) -> None:
    found = gitea_reading.on_line(entry)

    assert (found and (found.author, found.place, found.quote)) == told
    assert found is None or found.at == datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("hunk", "line"),
    [
        ("@@ -1 +1 @@\n-old\n+new", "new"),
        ("@@ -1 +1 @@\n-old\n+new\n\\ No newline at end of file", "new"),
        ("@@ -1 +1 @@ def f():\n+new\r\n", "new"),
        ("@@ -1 +1 @@\n+new\n ", ""),
        ("@@ -1 +1 @@\n+a\x0cb", "a\x0cb"),
        ("", ""),
    ],
)
def test_the_line_that_a_comment_is_about_is_the_last_of_its_hunk(hunk: str, line: str) -> None:
    assert reading.last_line(hunk) == line


def test_of_many_reviews_the_newest_with_comments_are_read() -> None:
    reviews = [
        {"id": number, "comments_count": 1, "submitted_at": f"2026-03-{day:02}T12:00:00Z"}
        for number, day in ((1, 9), (2, 3), (3, 8))
    ]
    odd = [
        reviews[0] | {"id": 4, "comments_count": 0},
        reviews[0] | {"id": 5, "comments_count": None},
        reviews[0] | {"id": 6, "state": "PENDING"},
        reviews[0] | {"id": None},
        None,
    ]

    assert gitea_reading.commented([*odd, *reviews], 2) == [3, 1]
    assert gitea_reading.commented([*reviews, reviews[0] | {"id": 7, "submitted_at": None}], 9) == [
        *(7, 2, 3, 1)
    ]


REVIEW: dict[str, Any] = {
    "user": {"login": "ada"},
    "body": "Not yet.",
    "state": "REQUEST_CHANGES",
    "submitted_at": "2026-03-01T12:00:00Z",
}


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        pytest.param(REVIEW, ("ada", "Not yet."), id="a review"),
        pytest.param(REVIEW | {"user": None}, ("", "Not yet."), id="deleted user"),
        pytest.param(REVIEW | {"state": None}, ("ada", "Not yet."), id="null state"),
        pytest.param(REVIEW | {"state": "PENDING"}, None, id="not handed in"),
        pytest.param(REVIEW | {"body": ""}, None, id="an approval without words"),
        pytest.param(REVIEW | {"body": None}, None, id="null body"),
        pytest.param([], None, id="no object"),
    ],
)
def test_what_a_review_says(entry: Any, told: tuple[str, str] | None) -> None:
    found = reading.review(entry)

    assert (found and (found.author, found.body)) == told


def test_comments_without_a_time_come_before_the_others() -> None:
    early, late = (Comment("a", "b", datetime(2026, 3, day, tzinfo=UTC)) for day in (1, 2))

    assert reading.by_time([late, Comment("a", "?"), early]) == (Comment("a", "?"), early, late)


@pytest.mark.row("X-02", "LAB-34", level="pure")
@pytest.mark.parametrize(
    ("entry", "is_one"),
    [
        pytest.param(ISSUE, True, id="an issue"),
        pytest.param(ISSUE | {"pull_request": {"merged": False}}, False, id="a pull request"),
        pytest.param(ISSUE | {"number": "7"}, False, id="number as text"),
        pytest.param(ISSUE | {"state": None}, False, id="no state"),
        pytest.param(None, False, id="null"),
    ],
)
def test_what_is_an_issue(entry: Any, is_one: bool) -> None:
    assert (reading.issue(entry) is not None) is is_one


def test_an_imported_issue_names_who_wrote_it() -> None:
    issue = reading.issue(ISSUE | {"original_author": "grace"})

    assert issue is not None
    assert issue.author == "grace"


@pytest.mark.row("X-02", level="pure")
@pytest.mark.parametrize(
    ("entry", "state", "commit"),
    [
        pytest.param(PULL, PullState.OPEN, "", id="open"),
        pytest.param(MERGED, PullState.MERGED, "c" * 40, id="merged"),
        pytest.param(PULL | {"state": "closed"}, PullState.CLOSED, "", id="closed"),
        pytest.param(
            PULL | {"state": "closed", "merged": "yes"}, PullState.CLOSED, "", id="no flag"
        ),
    ],
)
def test_merged_is_told_by_the_flag(entry: Any, state: PullState, commit: str) -> None:
    pull = gitea_reading.pull(entry)

    assert pull is not None
    assert (pull.state, pull.merge_commit, pull.is_fork) == (state, commit, False)


@pytest.mark.parametrize(
    ("entry", "is_draft"),
    [
        pytest.param(PULL | {"draft": True}, True, id="told"),
        pytest.param(PULL | {"title": "WIP: Add retries"}, True, id="by its title"),
        pytest.param(PULL | {"title": "[wip] Add retries"}, True, id="by the other prefix"),
        pytest.param(PULL | {"title": "Wipe the cache"}, False, id="another word"),
        pytest.param(PULL, False, id="ready"),
        pytest.param(MERGED | {"title": "WIP: Add retries"}, False, id="merged"),
    ],
)
def test_a_draft_is_told_by_the_flag_or_by_its_title(entry: Any, is_draft: bool) -> None:
    pull = gitea_reading.pull(entry)

    assert pull is not None
    assert pull.is_draft is is_draft


@pytest.mark.row("LAB-29", level="pure")
@pytest.mark.parametrize(
    ("label", "ref", "head"),
    [
        pytest.param("afk/7", "afk/7", "afk/7", id="branch is there"),
        pytest.param("afk/7", "refs/pull/9/head", "afk/7", id="branch is gone"),
        pytest.param("acme:afk/7", "refs/pull/9/head", "afk/7", id="label with an owner"),
        pytest.param(None, "afk/7", "afk/7", id="no label"),
        pytest.param(None, "refs/pull/9/head", None, id="no label, branch is gone"),
        pytest.param("", "refs/pull/9/head", None, id="pushed for review without a branch"),
        pytest.param("", "afk/7", None, id="pushed for review beside a branch of that name"),
        pytest.param(None, None, None, id="nothing"),
    ],
)
def test_the_branch_of_a_pull_request(label: Any, ref: Any, head: str | None) -> None:
    pull = gitea_reading.pull(PULL | {"head": {"label": label, "ref": ref, **HERE}})

    assert (pull.head if pull else None) == head


def test_the_newest_status_of_each_name_counts() -> None:
    told = [
        {"id": 3, "context": "unit", "status": "success", "target_url": "https://ci/3"},
        {"id": 1, "context": "unit", "status": "failure"},
        {"id": 2, "context": "lint", "status": "pending"},
        {"id": 4, "context": "docs", "status": "skipped"},
        {"id": 5, "context": "slow", "status": "warning"},
        {"id": 6, "context": "new", "status": "a new word"},
        {"context": "", "status": "success"},
        None,
    ]

    assert [(check.name, check.state) for check in gitea_reading.checks(told, "")] == [
        ("docs", CheckState.PASSED),
        ("lint", CheckState.RUNNING),
        ("new", CheckState.RUNNING),
        ("slow", CheckState.FAILED),
        ("unit", CheckState.PASSED),
    ]


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        pytest.param({"number": 3, "state": "open"}, "3", id="here"),
        pytest.param(
            {"number": 3, "state": "open", "repository": {"full_name": "Acme/Shop"}}, "3", id="case"
        ),
        pytest.param(
            {"number": 3, "state": "open", "repository": {"full_name": "acme/lib"}},
            "acme/lib#3",
            id="elsewhere",
        ),
        pytest.param({"number": 3, "state": "closed"}, None, id="closed"),
        pytest.param({"number": 0, "state": "open", "title": "HIDDEN"}, None, id="hidden"),
    ],
)
def test_what_an_issue_waits_for(entry: Any, key: str | None) -> None:
    assert gitea_reading.blocker(entry, "acme/shop") == key


@pytest.mark.parametrize(
    ("told", "version"),
    [
        ("1.23.4", (1, 23)),
        ("1.24.0+dev-12-gabcdef", (1, 24)),
        ("v1.20.0", (1, 20)),
        ("11.0.1+gitea-1.22.0", (1, 22)),
        ("7.0.5+gitea-1.21.11", (1, 21)),
        ("development", None),
        ("", None),
    ],
)
def test_the_version_of_gitea_that_a_server_is_like(
    told: str, version: tuple[int, int] | None
) -> None:
    assert gitea_reading.version(told) == version


@pytest.mark.parametrize(
    ("told", "is_link"),
    [
        pytest.param("https://ci.example/1", True, id="https"),
        pytest.param("http://127.0.0.1:3000/x?a=b#c", True, id="http with a port"),
        pytest.param("HTTPS://ci.example/1", True, id="upper case"),
        pytest.param("javascript:alert(1)", False, id="a script"),
        pytest.param(" javascript:alert(1)", False, id="a script behind a space"),
        pytest.param("java\nscript:alert(1)", False, id="a script with a line break"),
        pytest.param("https://ci.example/\n1", False, id="a line break"),
        pytest.param("data:text/html,x", False, id="data"),
        pytest.param("//ci.example/1", False, id="no scheme"),
        pytest.param("https:///1", False, id="no host"),
        pytest.param("https://[", False, id="unreadable"),
        pytest.param(7, False, id="no text"),
    ],
)
def test_only_web_addresses_become_links(told: Any, is_link: bool) -> None:
    assert reading.address({"url": told}, "url") == (told if is_link else "")


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"user": {"login": "ada"}}, None),
        ({"author_association": "MEMBER"}, False),
        ({"author_association": "CONTRIBUTOR"}, True),
        ({"author_association": "SOMETHING_NEW"}, True),
        ({"author_association": 7}, None),
        ({"user": {"login": "importer"}, "original_author": "ada"}, True),
    ],
)
def test_whether_a_writer_may_not_write_to_the_repository(entry: Any, told: bool | None) -> None:
    assert reading.is_outsider(entry) is told
