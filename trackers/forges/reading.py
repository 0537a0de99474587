"""How answers of forges are read: leniently, entry by entry (LAB-34).

What is missing or of another type than it should be is None or nothing; unknown fields do not
matter. The readers of each forge decide which entry is then left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

from trackers.base import Comment

Read = TypeVar("Read")


def told(entry: Any, *names: str) -> Any:
    """What an entry says under a name, or under names one inside the other; None for nothing."""
    for name in names:
        if not isinstance(entry, Mapping):
            return None
        entry = entry.get(name)
    return entry


def text(entry: Any, *names: str) -> str:
    """A text, or nothing."""
    found = told(entry, *names)
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


def number(entry: Any, *names: str) -> int | None:
    """A whole number; yes and no are none."""
    found = told(entry, *names)
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
    found = told(entry, "labels")
    entries = found if isinstance(found, list) else []
    names = (one if isinstance(one, str) else text(one, "name") for one in entries)
    return tuple(name for name in names if name)


def login(entry: Any) -> str:
    """Who wrote it: the one whom an import names, or the account. Empty for a deleted one."""
    return text(entry, "original_author") or text(entry, "user", "login")


def comments(entries: Iterable[Any]) -> tuple[Comment, ...]:
    """Comments in the order given; one without a text is left out."""
    return tuple(
        Comment(login(one), one["body"])
        for one in entries
        if isinstance(one, Mapping) and isinstance(one.get("body"), str)
    )


def every(entries: Iterable[Any], read: Callable[[Any], Read | None]) -> list[Read]:
    """What could be read of the entries."""
    return [found for found in map(read, entries) if found is not None]


def is_fork(head: Any, base: Any) -> bool:
    """Whether the branch of a pull request is in another repository than the one it goes to.

    A head whose repository is gone was in a fork. What cannot be told proves nothing, so it
    counts as one too.
    """
    head_id, base_id = number(head, "repo", "id"), number(base, "repo", "id")
    if head_id is None or base_id is None:
        head_id, base_id = number(head, "repo_id"), number(base, "repo_id")
    return head_id is None or head_id != base_id


def said(data: Any) -> str:
    """The forge's own words in an answer that is a refusal, on one line."""
    words = [text(data, "message")]
    errors = told(data, "errors")
    words += [
        one if isinstance(one, str) else text(one, "message")
        for one in (errors if isinstance(errors, list) else [])
    ]
    return " ".join("; ".join(dict.fromkeys(word for word in words if word)).split())[:300]
