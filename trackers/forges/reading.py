"""Reads the answers of forges leniently, entry by entry.

A value that is missing or of the wrong type is None or empty; unknown fields do not matter. Gitea
took most shapes over from GitHub; what differs is in `gitea_reading` and `github_reading`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

from trackers.base import Comment, Issue, Pull, PullState

Read = TypeVar("Read")
# What GitHub calls the authors who belong to a repository; members of an organisation may only read.
_INSIDE = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})


def value(entry: Any, *names: str) -> Any:
    """The value at a path of names; None when it is missing."""
    for name in names:
        if not isinstance(entry, Mapping):
            return None
        entry = entry.get(name)
    return entry


def text(entry: Any, *names: str) -> str:
    """The text at a path of names; empty when it is missing or no text."""
    found = value(entry, *names)
    return found if isinstance(found, str) else ""


def address(entry: Any, *names: str) -> str:
    """An address that a page may link to: http or https and a host, or nothing.

    Whoever may set a commit status chooses its address; `javascript:` would be run by a click.
    """
    found = text(entry, *names)
    try:
        parts = urlsplit(found)
        is_fit = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_fit = False
    return found if is_fit and found.isprintable() and " " not in found else ""


def address_at(entry: Any, server: str, *names: str) -> str:
    """The same where a path alone stands for one on the server that an address is of."""
    found = text(entry, *names)
    if not found.startswith("/") or found.startswith("//"):
        return address(entry, *names)
    return address({"whole": urljoin(server, found)}, "whole")


def number(entry: Any, *names: str) -> int | None:
    """The integer at a path of names; a boolean is none."""
    found = value(entry, *names)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def index(entry: Any) -> int | None:
    """The number of an issue or pull request; None for what cannot be one."""
    found = number(entry, "number")
    return found if found is not None and 0 < found < 10**9 else None


def moment(entry: Any, *names: str) -> datetime | None:
    """A moment with its time zone (RFC 3339)."""
    try:
        found = datetime.fromisoformat(text(entry, *names))
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def labels(entry: Any) -> tuple[str, ...]:
    """Names of labels; GitHub may send a label as a bare name."""
    found = value(entry, "labels")
    entries = found if isinstance(found, list) else []
    names = (one if isinstance(one, str) else text(one, "name") for one in entries)
    return tuple(name for name in names if name)


def login(entry: Any) -> str:
    """Who wrote it: the one whom an import names, or the account. Empty for a deleted one."""
    return text(entry, "original_author") or text(entry, "user", "login")


def is_outsider(entry: Any) -> bool | None:
    """Whether the writer does not belong to the repository; None where the entry does not tell.

    Whoever wrote on another forge, from which it was imported, may bear anybody's name here.
    """
    if is_imported(entry):
        return True
    told = text(entry, "author_association")
    return told not in _INSIDE if told else None


def is_imported(entry: Any) -> bool:
    """Whether it was written on another forge."""
    return bool(text(entry, "original_author"))


def comments(entries: Iterable[Any]) -> tuple[Comment, ...]:
    """Comments in the order given; one without a text is left out."""
    return tuple(
        Comment(
            login(one),
            one["body"],
            moment(one, "created_at"),
            is_outsider=is_outsider(one),
            is_imported=is_imported(one),
        )
        for one in entries
        if isinstance(one, Mapping) and isinstance(one.get("body"), str)
    )


def review(entry: Any) -> Comment | None:
    """What a review says as a whole; None for one without a text, or that is not handed in yet."""
    body = text(entry, "body")
    if not body.strip() or is_pending(entry):
        return None
    at = moment(entry, "submitted_at")
    return Comment(login(entry), body, at, is_outsider=is_outsider(entry))


def is_pending(entry: Any) -> bool:
    """Whether a review is still being written, which only its writer is shown."""
    return text(entry, "state") == "PENDING"


def on_line(entry: Any, *fields: str) -> Comment | None:
    """A comment on a line, whose number is in the first of the fields that has one.

    One without a number is about the whole file.
    """
    body, path = text(entry, "body"), text(entry, "path")
    if not body.strip() or not path:
        return None
    at = next((line for field in fields if (line := number(entry, field))), 0)
    return Comment(
        login(entry),
        body,
        moment(entry, "created_at"),
        f"{path}:{at}" if at > 0 else path,
        last_line(text(entry, "diff_hunk")) if at > 0 else "",
        is_outsider(entry),
    )


def last_line(hunk: str) -> str:
    """The last line of a piece of a diff, which its comment is about, without its mark."""
    lines = [line for line in hunk.split("\n") if line.startswith(("+", "-", " "))]
    return lines[-1][1:].removesuffix("\r") if lines else ""


def by_time(said: Iterable[Comment]) -> tuple[Comment, ...]:
    """Comments, oldest first; those without a time come before the others."""
    return tuple(sorted(said, key=lambda one: one.at or datetime.min.replace(tzinfo=UTC)))


def every(entries: Iterable[Any], read: Callable[[Any], Read | None]) -> list[Read]:
    """The entries that could be read."""
    return [found for found in map(read, entries) if found is not None]


def is_fork(head: Any, base: Any) -> bool:
    """Whether the branch of a pull request is in another repository than the one it goes to.

    A head whose repository is gone was in a fork. What is unknown counts as a fork too.
    """
    head_id, base_id = number(head, "repo", "id"), number(base, "repo", "id")
    if head_id is None or base_id is None:
        head_id, base_id = number(head, "repo_id"), number(base, "repo_id")
    return head_id is None or head_id != base_id


def error_text(data: Any) -> str:
    """The forge's own words in an answer that is a refusal, on one line."""
    words = [text(data, "message")]
    errors = value(data, "errors")
    words += [
        one if isinstance(one, str) else text(one, "message")
        for one in (errors if isinstance(errors, list) else [])
    ]
    return " ".join("; ".join(dict.fromkeys(word for word in words if word)).split())[:300]


def issue(entry: Any) -> Issue | None:
    """An issue; None for a pull request, which forges list among the issues."""
    key, state = index(entry), text(entry, "state")
    if key is None or is_pull(entry) or state not in ("open", "closed"):
        return None
    return Issue(
        key=str(key),
        title=text(entry, "title"),
        body=text(entry, "body"),
        author=login(entry),
        labels=labels(entry),
        is_open=state == "open",
        url=address(entry, "html_url"),
        milestone=text(entry, "milestone", "title"),
    )


def is_pull(entry: Any) -> bool:
    """Whether an entry of the issue list is a pull request."""
    return value(entry, "pull_request") is not None


def pull(entry: Any, head: str, state: PullState | None) -> Pull | None:
    """A pull request; each forge has its own way to tell its branch and its state.

    The merge commit of one that is not merged is a trial of the forge's own, so it is left out.
    """
    number = index(entry)
    if number is None or not head or state is None:
        return None
    return Pull(
        number=number,
        head=head,
        state=state,
        title=text(entry, "title"),
        base=text(entry, "base", "ref"),
        body=text(entry, "body"),
        url=address(entry, "html_url"),
        head_commit=text(entry, "head", "sha"),
        is_fork=is_fork(value(entry, "head"), value(entry, "base")),
        created_at=moment(entry, "created_at"),
        merge_commit=text(entry, "merge_commit_sha") if state is PullState.MERGED else "",
        is_draft=value(entry, "draft") is True and state is PullState.OPEN,
    )


def blocker(entry: Any, repository: str, place: str) -> str | None:
    """The key of an open issue that another waits for; None for a closed or hidden one.

    `place` is the repository that it is in. One in another repository is named with it, since its
    number means nothing here.
    """
    key = index(entry)
    if key is None or text(entry, "state") != "open":
        return None
    return str(key) if not place or place.lower() == repository.lower() else f"{place}#{key}"
