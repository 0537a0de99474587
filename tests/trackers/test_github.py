"""What is special of GitHub: Apps, the quota, two kinds of checks, switched off issues."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.trackers.forge import SHA, GitHub, faults
from tests.trackers.forge.visitor import a_client
from tests.trackers.stand import READY, ROOT, Stand, a_stand
from trackers.account import Account
from trackers.base import CheckState, NotFound, Refused
from trackers.forges.github import GitHubTracker
from trackers.forges.github_app import AppTokens

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PRIVATE = KEY.private_bytes(
    serialization.Encoding.PEM,
    serialization.PrivateFormat.TraditionalOpenSSL,
    serialization.NoEncryption(),
).decode()
PUBLIC = (
    KEY.public_key()
    .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    .decode()
)
ALL = {
    "issues": "write",
    "pull_requests": "write",
    "contents": "write",
    "checks": "read",
    "statuses": "read",
    "metadata": "read",
}


@pytest.fixture
def stand(github: GitHub, tmp_path: Path) -> Iterator[Stand]:
    return a_stand(github, tmp_path)


def app_on(forge: GitHub, permissions: dict[str, str] | None = None, **more: str) -> Stand:
    """An adapter that asks as an installation of a GitHub App."""
    forge.app("12", "34", PUBLIC, ALL if permissions is None else permissions)
    account = replace(Account(forge.api, "", "12", "34", PRIVATE), **more)
    tracker = GitHubTracker(a_client(forge), lambda: {"1": account}, forge.now)
    return Stand(forge, forge.repo("acme/shop"), tracker, "")


def bought(stand: Stand) -> int:
    return len(stand.forge.calls("/access_tokens"))


# The quota.


@pytest.mark.row("LAB-12", level="contract")
def test_idle_ticks_cost_no_quota(stand: Stand) -> None:
    stand.repo.issue("not ready")
    stand.repo.pull("afk/7")
    stand.ready()
    stand.pulls("afk/7")
    seen = len(stand.forge.log)

    for _ in range(3):
        assert stand.ready() == []
        assert len(stand.pulls("afk/7") or ()) == 1

    assert [(line.status, line.is_counted) for line in stand.forge.log[seen:]] == [(304, False)] * 6


def test_each_new_head_of_a_long_list_is_asked_for_once(stand: Stand) -> None:
    for number in range(120):
        stand.repo.pull(f"feature/{number}", "closed")

    stand.pulls("afk/1", "afk/2")
    assert stand.count() == 3
    stand.pulls("afk/1", "afk/2", "afk/3")
    assert stand.count() == 5
    stand.pulls("afk/1", "afk/2", "afk/3")
    assert stand.count() == 6


def test_two_heads_that_differ_in_case_are_two(stand: Stand) -> None:
    stand.repo.pull("AFK/7")

    assert stand.pulls("afk/7") == []


# Apps.


def test_an_installation_buys_one_token_and_renews_it_before_its_end(github: GitHub) -> None:
    stand = app_on(github)
    stand.repo.issue("ready", number=7, labels=[READY])

    for _ in range(3):
        assert [issue.key for issue in stand.ready() or ()] == ["7"]
    assert bought(stand) == 1
    github.clock.advance(timedelta(minutes=54).total_seconds())
    assert stand.ready()
    assert bought(stand) == 1
    github.clock.advance(timedelta(minutes=2).total_seconds())
    assert stand.ready()
    assert bought(stand) == 2
    assert github.calls("/issues")[-1].login == "labsite[bot]"


def test_many_roots_of_one_installation_buy_one_token(github: GitHub) -> None:
    stand = app_on(github)
    github.repo("acme/other")

    found = stand.tracker.queues({ROOT: READY, "1/acme/other": READY})

    assert found == {ROOT: [], "1/acme/other": []}
    assert bought(stand) == 1


def test_a_token_that_was_revoked_is_bought_again(github: GitHub) -> None:
    stand = app_on(github)
    assert stand.ready() == []
    for text in [text for text in github.tokens if text.startswith("ghs_")]:
        del github.tokens[text]

    assert stand.ready() is None
    assert stand.ready() == []


@pytest.mark.parametrize(
    ("more", "says"),
    [
        pytest.param(
            {"app_key": "no key"}, "private key of GitHub App 12 cannot be read", id="key"
        ),
        pytest.param({"app_key": ""}, "private key of GitHub App 12 cannot be read", id="no key"),
        pytest.param(
            {"app_installation": "99"}, "no installation 99 of GitHub App 12", id="number"
        ),
        pytest.param({"app_installation": "../1"}, "has to be a number", id="another path"),
        pytest.param({"app_id": "13"}, "does not accept the key of GitHub App 13", id="App"),
    ],
)
def test_an_app_that_is_set_up_wrong_says_so_and_keeps_its_key(
    github: GitHub, more: dict[str, str], says: str
) -> None:
    stand = app_on(github, **more)

    with pytest.raises(Refused, match=says) as raised:
        stand.tracker.open_issues(ROOT)
    assert stand.ready() is None
    assert PRIVATE not in str(raised.value)
    assert raised.value.__cause__ is None
    assert [(f.name, f.ok) for f in stand.tracker.examine(ROOT, READY)] == [("account", False)]


def test_what_an_app_keeps_shows_no_secret(github: GitHub) -> None:
    stand = app_on(github)
    account = Account(github.api, "", "12", "34", PRIVATE)
    tokens = stand.tracker._tokens  # type: ignore[attr-defined]

    token = tokens.ready(account).token

    assert token.startswith("ghs_")
    assert token not in repr(tokens.bought(account)) + repr(tokens.ready(account))


def git_tokens(github: GitHub) -> AppTokens:
    return AppTokens(a_client(github), github.now)


def an_app(github: GitHub, *repos: str, **permissions: str) -> Account:
    github.app("12", "34", PUBLIC, permissions or ALL, frozenset(repos) or None)
    return Account(github.api, "", "12", "34", PRIVATE)


@pytest.mark.row("X-05", level="contract")
def test_gits_token_of_an_app_is_for_one_repository_and_its_contents(github: GitHub) -> None:
    account = an_app(github, contents="write", workflows="write", issues="write", metadata="read")
    for name in ("acme/shop", "acme/other"):
        github.repo(name)
    tokens = git_tokens(github)

    bought = tokens.for_git(account, "acme", "shop")

    kept = github.tokens[bought.token]
    assert kept.repos == {"acme/shop"}
    assert kept.permissions == {"contents": "write", "workflows": "write", "metadata": "read"}
    assert bought.token != tokens.bought(account).token
    assert tokens.for_git(account, "acme", "shop") == bought
    assert tokens.for_git(account, "acme", "other").token != bought.token
    github.clock.advance(timedelta(minutes=56).total_seconds())
    assert tokens.for_git(account, "acme", "shop").token != bought.token
    assert bought.token not in repr(bought) + repr(tokens)


def test_git_gets_a_token_under_the_old_name_of_a_repository_too(github: GitHub) -> None:
    account = an_app(github, contents="read", metadata="read")
    github.rename(github.repo("acme/shop"), "acme/store")

    bought = git_tokens(github).for_git(account, "acme", "shop")

    kept = github.tokens[bought.token]
    assert (kept.repos, kept.permissions) == (
        {"acme/store"},
        {"contents": "read", "metadata": "read"},
    )


@pytest.mark.parametrize(
    ("repos", "permissions", "says"),
    [
        pytest.param((), {"issues": "write"}, "“Contents: read and write”", id="no files"),
        pytest.param(
            ("acme/other",), {"contents": "write"}, "among those of its installation", id="another"
        ),
    ],
)
def test_an_app_that_may_not_see_the_files_says_what_is_missing(
    github: GitHub, repos: tuple[str, ...], permissions: dict[str, str], says: str
) -> None:
    github.repo("acme/shop")
    account = an_app(github, *repos, **permissions)
    with pytest.raises(Refused, match=says) as raised:
        git_tokens(github).for_git(account, "acme", "shop")
    assert PRIVATE not in str(raised.value)


# What only GitHub says.


def test_issues_that_are_switched_off(stand: Stand) -> None:
    stand.repo.has_issues = False

    assert stand.ready() is None
    with pytest.raises(Refused, match="switched off in acme/shop"):
        stand.tracker.open_issues(ROOT)


def test_a_deleted_issue_is_not_found(stand: Stand) -> None:
    stand.forge.faults.add(faults.status(410, "This issue was deleted"), path="/issues/7")

    with pytest.raises(NotFound, match="no issue 7"):
        stand.tracker.issue(ROOT, "7")


def test_labels_differ_by_more_than_case(stand: Stand) -> None:
    stand.repo.issue("ready", number=7, labels=["Ready-For-Agent"])

    assert [issue.key for issue in stand.ready() or ()] == ["7"]
    stand.tracker.add_label(ROOT, "7", READY)
    assert stand.tracker.labels(ROOT) == {"Ready-For-Agent"}
    stand.tracker.remove_label(ROOT, "7", READY)
    assert stand.ready() == []


def test_check_runs_and_statuses_are_one_list(stand: Stand) -> None:
    stand.repo.check(SHA, "build", "completed", is_run=True, conclusion="success")
    stand.repo.check(SHA, "test", "in_progress", is_run=True)
    stand.repo.check(SHA, "lint", "completed", is_run=True, conclusion="timed_out")
    stand.repo.check(SHA, "legacy-ci", "error")
    for number in range(120):
        stand.repo.check(SHA, f"x{number}", "completed", is_run=True)

    found = {check.name: check.state for check in stand.tracker.checks(ROOT, SHA)}

    assert len(found) == 124
    assert [found[name] for name in ("build", "test", "lint", "legacy-ci")] == [
        CheckState.PASSED,
        CheckState.RUNNING,
        CheckState.FAILED,
        CheckState.FAILED,
    ]


def test_a_server_without_dependencies_is_asked_once_an_hour(tmp_path: Path) -> None:
    forge = GitHub(enterprise=True, has_dependencies=False)
    stand = a_stand(forge, tmp_path)
    for number in (1, 2):
        stand.repo.issue("i", number=number, labels=[READY])

    stand.ready()
    assert stand.waits("1") == {}
    asked = len(forge.calls("/dependencies"))
    stand.ready()
    assert stand.waits("1", "2") == {}
    assert len(forge.calls("/dependencies")) == asked
    forge.clock.advance(3601)
    stand.tracker.blockers({ROOT: ["1"]})
    assert len(forge.calls("/dependencies")) > asked
    forge.check()


def test_an_issue_that_is_gone_does_not_switch_blockers_off(stand: Stand) -> None:
    one, waits = stand.repo.issue("i", number=1), stand.repo.issue("w", number=2)
    one.blocked_by.append((stand.repo, waits))

    assert stand.waits("99") == {}
    assert stand.waits("1") == {"1": ["2"]}


def test_a_token_that_may_not_write_is_told_what_it_takes(github: GitHub, tmp_path: Path) -> None:
    stand = a_stand(github, tmp_path)
    stand.repo.issue("i", number=7)
    reader = github.token("bot", kind="fine-grained", permissions={"issues": "read"})
    tracker = GitHubTracker(
        a_client(github), lambda: {"1": Account(github.api, reader)}, github.now
    )

    with pytest.raises(Refused, match="it takes “Issues: read and write”"):
        tracker.comment(ROOT, "7", "ada", "hello")
    with pytest.raises(Refused, match="it takes “Pull requests: read”"):
        tracker.pull(ROOT, 9)
    assert Stand(github, stand.repo, tracker, reader).pulls("afk/7") is None
