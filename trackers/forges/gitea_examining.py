"""Gitea's and Forgejo's connection test."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from trackers.account import Purpose
from trackers.base import Finding, TrackerError
from trackers.forges import gitea_reading, reading
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

OLDEST = (1, 20)


def examine(
    visit_of: Callable[[], Visit], label: str, labels: Callable[[], Collection[str]]
) -> Sequence[Finding]:
    """What of all that labsite needs is there, in words."""
    try:
        visit = visit_of()
        version = _version(visit)
    except TrackerError as error:
        return [failed("account", error)]
    if version.ok is None:
        return [version]
    account = _account(visit)
    if account.ok is False:
        return [version, account]
    try:
        about = found(visit)
    except TrackerError as error:
        return [version, account, failed("repository", error)]
    return [
        version,
        account,
        repository(visit, about),
        *areas(visit, about),
        *_writing(visit, about),
        ready_label(label, lambda: label in labels()),
    ]


def _version(visit: Visit) -> Finding:
    """What server this is; the first question, since it needs no permission.

    Raises Refused for a token that is not accepted: then no question at all is answered.
    """
    try:
        answer = visit.beside("/version", purpose=Purpose.SETUP)
    except TrackerError as error:
        return Finding("version", None, str(error))
    visit.accepted(answer)
    told = reading.text(answer.data, "version")
    if not told:
        text = f"{visit.host} does not answer as Gitea or Forgejo do. Is the address right?"
        return Finding("version", None, text)
    name = "Forgejo" if "+gitea-" in told else "Gitea"
    version, text = gitea_reading.version(told), f"This is {name} {told[:40]}."
    if version is not None and version < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        older = f" labsite is written for Gitea {oldest} and later; some things may not work."
        return Finding("version", False, text + older)
    return Finding("version", True, text)


def _account(visit: Visit) -> Finding:
    """Who we are. A token without “read:user” does not tell, and need not."""
    if not visit.account.token:
        text = "No token is set, so that labsite can only read what everybody sees."
        return Finding("account", None, text)
    return tried("account", lambda: login(visit))


def _writing(visit: Visit, about: Mapping[str, Any]) -> Iterator[Finding]:
    """Whether labsite may write: what the account's role lets through, and what its token does."""
    if not visit.account.token:
        yield Finding("writing", False, f"Without a token nothing can be written. {writes(visit)}.")
        return
    if missing := role(visit, about):
        yield Finding("writing", False, missing)
    yield from rights(visit, about)
