"""The connection test of a forge: what can be tried without changing anything, in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from trackers.account import Purpose
from trackers.base import Finding, NotUnderstood, RateLimited, Refused, TrackerError, Unreachable
from trackers.forges import branch_test, gitea_reading, reading
from trackers.forges.github_app import AppTokens
from trackers.forges.repository import Need, RepositoryClient

OLDEST_GITEA = (1, 20)
OLDEST_ENTERPRISE = (3, 9)
# What an installation of an App has to be allowed, as GitHub names it, and in its pages' words.
_INSTALLATION = {
    "issues": ("write", Need.WRITE_ISSUES),
    "pull_requests": ("write", Need.WRITE_PULLS),
    "contents": ("write", Need.MERGE),
    "checks": ("read", Need.READ_CHECKS),
    "statuses": ("read", Need.READ_CHECKS),
}


def examine_gitea(
    repo_of: Callable[[], RepositoryClient], label: str, labels: Callable[[], Collection[str]]
) -> Sequence[Finding]:
    """All findings; never raises."""
    try:
        repo = repo_of()
        version = _gitea_version(repo)
    except TrackerError as error:
        return [failed("account", error)]
    if version.ok is None:
        return [version]
    account = _gitea_account(repo)
    if account.ok is False:
        return [version, account]
    try:
        about = found(repo)
    except TrackerError as error:
        return [version, account, failed("repository", error)]
    return [
        version,
        account,
        repository(repo, about),
        *areas(repo, about),
        *_gitea_writing(repo, about),
        ready_label(label, lambda: label in labels()),
    ]


def _gitea_version(repo: RepositoryClient) -> Finding:
    """Which server this is; the first call, since it needs no permission.

    Raises Refused for a token that is not accepted: then every call fails.
    """
    try:
        answer = repo.outside("/version", purpose=Purpose.SETUP)
    except TrackerError as error:
        return Finding("version", None, str(error))
    repo.accepted(answer)
    told = reading.text(answer.data, "version")
    if not told:
        text = f"{repo.host} does not answer as Gitea or Forgejo do. Is the address right?"
        return Finding("version", None, text)
    name = "Forgejo" if "+gitea-" in told else "Gitea"
    version, text = gitea_reading.version(told), f"This is {name} {told[:40]}."
    if version is not None and version < OLDEST_GITEA:
        oldest = ".".join(map(str, OLDEST_GITEA))
        older = f" labsite is written for Gitea {oldest} and later; some things may not work."
        return Finding("version", False, text + older)
    return Finding("version", True, text)


def _gitea_account(repo: RepositoryClient) -> Finding:
    """The user of the token. One without “read:user” does not say, and need not."""
    if not repo.account.token:
        text = "No token is set, so that labsite can only read what everybody sees."
        return Finding("account", None, text)
    return tried("account", lambda: login(repo))


def _gitea_writing(repo: RepositoryClient, about: Mapping[str, Any]) -> Iterator[Finding]:
    """Whether labsite may write: what the account's role lets through, and what its token does."""
    if not repo.account.token:
        yield Finding("writing", False, f"Without a token nothing can be written. {writes(repo)}.")
        return
    if missing := role(repo, about):
        yield Finding("writing", False, missing)
    yield from rights(repo, about)


def examine_github(
    repo_of: Callable[[], RepositoryClient], label: str, tokens: AppTokens
) -> Sequence[Finding]:
    """All findings; never raises."""
    try:
        repo = repo_of()
    except TrackerError as error:
        return [failed("account", error)]
    account = _github_account(repo)
    if repo.account.token and not account.ok:
        return [account]
    try:
        about = found(repo)
    except TrackerError as error:
        return [account, failed("repository", error)]
    return [
        account,
        *_enterprise_version(repo),
        repository(repo, about),
        *areas(repo, about),
        *_github_writing(repo, about, tokens),
        ready_label(label, lambda: _has_label(repo, label)),
    ]


def _github_account(repo: RepositoryClient) -> Finding:
    """The user of the token. An installation has none; that it got a token shows that it is known."""
    account = repo.account
    if account.app_id:
        text = f"{repo.host} knows GitHub App {account.app_id}, installation {account.app_installation}."
        return Finding("account", True, text)
    if not account.token:
        text = "No token is set, so that labsite can only read what everybody sees."
        return Finding("account", None, text)
    return tried("account", lambda: login(repo))


def _enterprise_version(repo: RepositoryClient) -> Iterator[Finding]:
    """How old an Enterprise server is; github.com has no version."""
    if repo.host == "api.github.com":
        return
    try:
        answer = repo.outside("/meta", purpose=Purpose.SETUP)
    except TrackerError:
        return
    told = reading.text(answer.data, "installed_version") or answer.headers.get(
        "x-github-enterprise-version", ""
    )
    version = re.match(r"(\d{1,3})\.(\d{1,3})", told)
    if version is None:
        return
    is_new = (int(version[1]), int(version[2])) >= OLDEST_ENTERPRISE
    oldest = ".".join(map(str, OLDEST_ENTERPRISE))
    text = f"This is GitHub Enterprise {version[0]}."
    older = f" labsite is written for {oldest} and later; some things may not work."
    yield Finding("version", is_new, text if is_new else text + older)


def _github_writing(
    repo: RepositoryClient, about: Mapping[str, Any], tokens: AppTokens
) -> Iterator[Finding]:
    """Whether labsite may write, as far as GitHub tells without trying."""
    if repo.account.app_id:
        yield from _installation(repo, tokens)
        return
    if not repo.account.token:
        yield Finding("writing", False, f"Without a token nothing can be written. {writes(repo)}.")
    elif missing := role(repo, about):
        yield Finding("writing", False, missing)
    elif (scopes := _scopes(repo)) is not None:
        yield _token(scopes, about)
        yield from branch_test.workflow_files(repo, may_change="workflow" in scopes)
    else:
        yield from rights(repo, about)


def _installation(repo: RepositoryClient, tokens: AppTokens) -> Iterator[Finding]:
    """What GitHub says that an installation may."""
    try:
        given = tokens.bought(repo.account).permissions
    except TrackerError as error:
        yield Finding("writing", None, str(error))
        return
    missing = {
        repo.dialect.needs[need]: None
        for what, (level, need) in _INSTALLATION.items()
        if given.get(what) not in (level, "write")
    }
    if missing:
        text = f"The installation lacks {', '.join(missing)}. It can be given on the App's page."
        yield Finding("writing", False, text)
    else:
        yield Finding("writing", True, "The installation may do all that labsite does.")
    may_change = given.get("workflows") == "write"
    yield from branch_test.workflow_files(repo, may_change=may_change)


def _scopes(repo: RepositoryClient) -> frozenset[str] | None:
    """The scopes that a classic token says with every answer; None for a fine-grained one."""
    try:
        told = repo.outside("/user", purpose=Purpose.SETUP).headers.get("x-oauth-scopes")
    except TrackerError:
        return None
    return frozenset(scope.strip() for scope in told.split(",")) if told is not None else None


def _token(scopes: Collection[str], about: Mapping[str, Any]) -> Finding:
    enough = {"repo"} if about.get("private") is not False else {"repo", "public_repo"}
    if enough & set(scopes):
        return Finding("writing", True, "The account and its token may write here.")
    return Finding("writing", False, "The token lacks the scope “repo”.")


def _has_label(repo: RepositoryClient, label: str) -> bool:
    entries = repo.every("labels", purpose=Purpose.SETUP, need=Need.READ_ISSUES)
    return label.casefold() in {reading.text(entry, "name").casefold() for entry in entries}


def tried(name: str, ask: Callable[[], str]) -> Finding:
    """A finding of a call: its text, or why it failed."""
    try:
        return Finding(name, True, ask())
    except TrackerError as error:
        return failed(name, error)


def failed(name: str, error: TrackerError) -> Finding:
    """A finding of an error; a temporary one proves nothing."""
    is_passing = isinstance(error, Unreachable | RateLimited)
    return Finding(name, None if is_passing else False, str(error))


def found(repo: RepositoryClient) -> Mapping[str, Any]:
    """What the forge says of the repository. Raises TrackerErrors."""
    about = repo.get(purpose=Purpose.SETUP, need=Need.SEE)
    if not isinstance(about, Mapping):
        raise NotUnderstood(f"{repo.host} does not answer as its kind of forge does.")
    return about


def login(repo: RepositoryClient) -> str:
    """Whose the token is. Some tokens may not say, and need not. Raises TrackerErrors."""
    quiet = f"{repo.host} accepts the token, but does not say whose it is."
    try:
        answer = repo.outside("/user", purpose=Purpose.SETUP)
    except Refused as error:
        if error.status == 403:
            return quiet
        raise
    repo.accepted(answer)
    name = reading.text(answer.data, "login")
    return f"{repo.host} knows labsite as {name}." if name else quiet


def repository(repo: RepositoryClient, about: Mapping[str, Any]) -> Finding:
    """Whether the repository is there, by the name that we know, and can be written to."""
    name = reading.text(about, "full_name") or str(repo.repository)
    if about.get("archived") is True:
        text = f"{name} is archived: it can be read, but nothing can be written there."
        return Finding("repository", False, text)
    if name.lower() != str(repo.repository).lower():
        text = f"{repo.repository} is called {name} by now. Give this project its new address."
        return Finding("repository", True, text)
    return Finding("repository", True, f"{repo.host} shows {name}.")


def areas(repo: RepositoryClient, about: Mapping[str, Any]) -> Iterator[Finding]:
    """Whether issues and pull requests are switched on and can be read."""
    yield _area(repo, about, "issues", "issues", Need.READ_ISSUES)
    yield _area(repo, about, "pull requests", "pulls", Need.READ_PULLS)


def _area(
    repo: RepositoryClient, about: Mapping[str, Any], name: str, part: str, need: Need
) -> Finding:
    if about.get(f"has_{name.replace(' ', '_')}") is False:
        off = f"{name.capitalize()} are switched off in {repo.repository}."
        return Finding(name, False, f"{off} They can be switched on in its settings.")

    def read() -> str:
        repo.page(part, purpose=Purpose.SETUP, need=need, params={"state": "open"})
        return f"labsite can read the {name}."

    return tried(name, read)


def ready_label(label: str, known: Callable[[], bool]) -> Finding:
    """Whether the ready label exists."""
    try:
        if known():
            return Finding("ready label", True, f"There is a label “{label}”.")
    except TrackerError as error:
        return Finding("ready label", None, str(error))
    return Finding("ready label", False, f"There is no label “{label}” yet.")


def role(repo: RepositoryClient, about: Mapping[str, Any]) -> str:
    """Why the account itself may not write, or nothing when it may or the forge does not say."""
    if reading.value(about, "permissions", "push") is not False:
        return ""
    return (
        f"The account may read {repo.repository}, but not write to it. It has to be given the "
        "role of somebody who writes."
    )


def rights(repo: RepositoryClient, about: Mapping[str, Any]) -> Iterator[Finding]:
    """Whether the token may write issues and open pull requests, without writing any.

    It sends an empty one: 422 means that writing is allowed, 403 that it is not.
    """
    yield from _right(repo, about, "issues", "issues", Need.WRITE_ISSUES)
    yield from _right(repo, about, "pull requests", "pulls", Need.WRITE_PULLS)


def _right(
    repo: RepositoryClient, about: Mapping[str, Any], name: str, part: str, need: Need
) -> Iterator[Finding]:
    if about.get("archived") is True or about.get(f"has_{name.replace(' ', '_')}") is False:
        return

    def write() -> str:
        repo.send("POST", part, json={}, need=need, expect=(422,))
        return f"labsite may {need.value}."

    yield tried(f"writing {name}", write)


def writes(repo: RepositoryClient) -> str:
    """Everything that writing takes, in the forge's own words."""
    needs = repo.dialect.needs
    issues, pulls, merge = (needs[n] for n in (Need.WRITE_ISSUES, Need.WRITE_PULLS, Need.MERGE))
    merging = f", and to merge {merge}" if merge != pulls else " and merge them"
    return (
        f"Writing takes {issues} for issues and labels, and {pulls} to open pull requests{merging}"
    )
