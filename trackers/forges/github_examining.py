"""GitHub's connection test."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from trackers.account import Purpose
from trackers.base import Finding, TrackerError
from trackers.forges import reading
from trackers.forges.app import AppTokens
from trackers.forges.dialect import Need
from trackers.forges.examining import (
    areas,
    failed,
    found,
    login,
    ready_label,
    repository,
    rights,
    role,
    tried,
    writes,
)
from trackers.forges.visit import Visit

OLDEST_ENTERPRISE = (3, 9)
# What an installation of an App has to be allowed, as GitHub names it, and in its pages' words.
_INSTALLATION = {
    "issues": ("write", Need.WRITE_ISSUES),
    "pull_requests": ("write", Need.WRITE_PULLS),
    "contents": ("write", Need.MERGE),
    "checks": ("read", Need.READ_CHECKS),
    "statuses": ("read", Need.READ_CHECKS),
}


def examine(visit_of: Callable[[], Visit], label: str, tokens: AppTokens) -> Sequence[Finding]:
    """What of all that labsite needs is there, in words."""
    try:
        visit = visit_of()
    except TrackerError as error:
        return [failed("account", error)]
    account = _account(visit)
    if visit.account.token and not account.ok:
        return [account]
    try:
        about = found(visit)
    except TrackerError as error:
        return [account, failed("repository", error)]
    return [
        account,
        *_version(visit),
        repository(visit, about),
        *areas(visit, about),
        *_writing(visit, about, tokens),
        ready_label(label, lambda: _has_label(visit, label)),
    ]


def _account(visit: Visit) -> Finding:
    """Who we are. An installation has no user; that it got a token shows that it is known."""
    account = visit.account
    if account.app_id:
        text = f"{visit.host} knows GitHub App {account.app_id}, installation {account.app_installation}."
        return Finding("account", True, text)
    if not account.token:
        text = "No token is set, so that labsite can only read what everybody sees."
        return Finding("account", None, text)
    return tried("account", lambda: login(visit))


def _version(visit: Visit) -> Iterator[Finding]:
    """How old an Enterprise server is; github.com has no version."""
    if visit.host == "api.github.com":
        return
    try:
        answer = visit.beside("/meta", purpose=Purpose.SETUP)
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


def _writing(visit: Visit, about: Mapping[str, Any], tokens: AppTokens) -> Iterator[Finding]:
    """Whether labsite may write, as far as GitHub tells without trying."""
    if visit.account.app_id:
        yield _installation(visit, tokens)
        return
    if not visit.account.token:
        yield Finding("writing", False, f"Without a token nothing can be written. {writes(visit)}.")
    elif missing := role(visit, about):
        yield Finding("writing", False, missing)
    elif (scopes := _scopes(visit)) is not None:
        yield _token(scopes, about)
    else:
        yield from rights(visit, about)


def _installation(visit: Visit, tokens: AppTokens) -> Finding:
    """What GitHub says that an installation may."""
    try:
        given = tokens.bought(visit.account).permissions
    except TrackerError as error:
        return Finding("writing", None, str(error))
    missing = {
        visit.dialect.needs[need]: None
        for what, (level, need) in _INSTALLATION.items()
        if given.get(what) not in (level, "write")
    }
    if missing:
        text = f"The installation lacks {', '.join(missing)}. It can be given on the App's page."
        return Finding("writing", False, text)
    return Finding("writing", True, "The installation may do all that labsite does.")


def _scopes(visit: Visit) -> frozenset[str] | None:
    """The scopes that a classic token says with every answer; None for a fine-grained one."""
    try:
        told = visit.beside("/user", purpose=Purpose.SETUP).headers.get("x-oauth-scopes")
    except TrackerError:
        return None
    return frozenset(scope.strip() for scope in told.split(",")) if told is not None else None


def _token(scopes: Collection[str], about: Mapping[str, Any]) -> Finding:
    enough = {"repo"} if about.get("private") is not False else {"repo", "public_repo"}
    if enough & set(scopes):
        return Finding("writing", True, "The account and its token may write here.")
    return Finding("writing", False, "The token lacks the scope “repo”.")


def _has_label(visit: Visit, label: str) -> bool:
    entries = visit.every("labels", purpose=Purpose.SETUP, need=Need.READ_ISSUES)
    return label.casefold() in {reading.text(entry, "name").casefold() for entry in entries}
