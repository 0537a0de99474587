"""The connection test of a forge: what can be tried without changing anything, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from trackers.account import Purpose
from trackers.base import Finding, NotUnderstood, RateLimited, Refused, TrackerError, Unreachable
from trackers.forges import reading
from trackers.forges.dialect import Need
from trackers.forges.visit import Visit


def tried(name: str, ask: Callable[[], str]) -> Finding:
    """A finding out of an attempt: its text, or why it failed."""
    try:
        return Finding(name, True, ask())
    except TrackerError as error:
        return failed(name, error)


def failed(name: str, error: TrackerError) -> Finding:
    """A finding out of an error; passing trouble proves nothing."""
    is_passing = isinstance(error, Unreachable | RateLimited)
    return Finding(name, None if is_passing else False, str(error))


def found(visit: Visit) -> Mapping[str, Any]:
    """What the forge says of the repository. Raises TrackerErrors."""
    about = visit.get(purpose=Purpose.SETUP, need=Need.SEE)
    if not isinstance(about, Mapping):
        raise NotUnderstood(f"{visit.host} does not answer as its kind of forge does.")
    return about


def login(visit: Visit) -> str:
    """Whose the token is. Some tokens may not say, and need not. Raises TrackerErrors."""
    quiet = f"{visit.host} accepts the token, but does not say whose it is."
    try:
        answer = visit.beside("/user", purpose=Purpose.SETUP)
    except Refused as error:
        if error.status == 403:
            return quiet
        raise
    visit.accepted(answer)
    name = reading.text(answer.data, "login")
    return f"{visit.host} knows labsite as {name}." if name else quiet


def repository(visit: Visit, about: Mapping[str, Any]) -> Finding:
    """Whether the repository is there, by the name that we know, and can be written to."""
    name = reading.text(about, "full_name") or str(visit.repository)
    if about.get("archived") is True:
        text = f"{name} is archived: it can be read, but nothing can be written there."
        return Finding("repository", False, text)
    if name.lower() != str(visit.repository).lower():
        text = f"{visit.repository} is called {name} by now. Give this project its new address."
        return Finding("repository", True, text)
    return Finding("repository", True, f"{visit.host} shows {name}.")


def areas(visit: Visit, about: Mapping[str, Any]) -> Iterator[Finding]:
    """Whether issues and pull requests are switched on and can be read."""
    yield _area(visit, about, "issues", "issues", Need.READ_ISSUES)
    yield _area(visit, about, "pull requests", "pulls", Need.READ_PULLS)


def _area(visit: Visit, about: Mapping[str, Any], name: str, part: str, need: Need) -> Finding:
    if about.get(f"has_{name.replace(' ', '_')}") is False:
        off = f"{name.capitalize()} are switched off in {visit.repository}."
        return Finding(name, False, f"{off} They can be switched on in its settings.")

    def read() -> str:
        visit.leaf(part, purpose=Purpose.SETUP, need=need, params={"state": "open"})
        return f"labsite can read the {name}."

    return tried(name, read)


def ready_label(label: str, known: Callable[[], bool]) -> Finding:
    """Whether the label is there that makes an issue ready."""
    try:
        if known():
            return Finding("ready label", True, f"There is a label “{label}”.")
    except TrackerError as error:
        return Finding("ready label", None, str(error))
    return Finding("ready label", False, f"There is no label “{label}” yet.")


def role(visit: Visit, about: Mapping[str, Any]) -> str:
    """Why the account itself may not write, or nothing when it may or the forge does not say."""
    if reading.told(about, "permissions", "push") is not False:
        return ""
    return (
        f"The account may read {visit.repository}, but not write to it. It has to be given the "
        "role of somebody who writes."
    )


def rights(visit: Visit, about: Mapping[str, Any]) -> Iterator[Finding]:
    """Whether the token may write issues and open pull requests, without writing any.

    Whoever may is told that an empty one is not valid; whoever may not, that it is not allowed.
    """
    yield from _right(visit, about, "issues", "issues", Need.WRITE_ISSUES)
    yield from _right(visit, about, "pull requests", "pulls", Need.WRITE_PULLS)


def _right(
    visit: Visit, about: Mapping[str, Any], name: str, part: str, need: Need
) -> Iterator[Finding]:
    if about.get("archived") is True or about.get(f"has_{name.replace(' ', '_')}") is False:
        return

    def write() -> str:
        visit.send("POST", part, json={}, need=need, expect=(422,))
        return f"labsite may {need.value}."

    yield tried(f"writing {name}", write)


def writes(visit: Visit) -> str:
    """Everything that writing takes, in the forge's own words."""
    needs = visit.dialect.needs
    issues, pulls, merge = (needs[n] for n in (Need.WRITE_ISSUES, Need.WRITE_PULLS, Need.MERGE))
    merging = f", and to merge {merge}" if merge != pulls else " and merge them"
    return (
        f"Writing takes {issues} for issues and labels, and {pulls} to open pull requests{merging}"
    )
