"""How answers of Gitea and Forgejo are read: examples written from its types, entry by entry."""

from __future__ import annotations

from typing import Any

import pytest

from trackers.base import CheckState, PullState
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

    assert [(check.name, check.state) for check in gitea_reading.checks(told)] == [
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
