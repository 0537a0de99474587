"""Incremental reading of a ready queue of more than one page on Gitea.

Gitea sends no ETag, so an unchanged page costs as much as a new one. So only issues with a newer
`updated_at` are read, and the whole list twice an hour, because deleting an issue or renaming a
label changes no issue.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from trackers.account import Purpose
from trackers.forges import reading
from trackers.forges.repository import ListPage, Need, RepositoryClient

WHOLE_EVERY = timedelta(minutes=30)
# What is stored while a list is put together may carry a moment from before.
OVERLAP = timedelta(seconds=5)
MOST_PAGES = 3


@dataclass
class Listing:
    """What is known of the open issues with one label. In memory and thread-safe.

    `as_of` is on the forge's clock, `read_at` on ours.
    """

    entries: dict[int, Any] = field(default_factory=dict)
    as_of: datetime | None = None
    read_at: datetime | None = None
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def forget(self) -> None:
        """Read the whole list the next time."""
        self.as_of = self.read_at = None


def entries(
    repo: RepositoryClient, known: Listing, params: Mapping[str, str], now: datetime
) -> Sequence[Any]:
    """The entries of the list that `params` ask for."""
    with known.lock:
        if known.as_of is not None and known.read_at is not None:
            is_young = timedelta(0) <= now - known.read_at < WHOLE_EVERY
            if is_young and _catch_up(repo, known, params.get("labels", ""), known.as_of):
                return list(known.entries.values())
        return _whole(repo, known, params, now)


def _whole(
    repo: RepositoryClient, known: Listing, params: Mapping[str, str], now: datetime
) -> Sequence[Any]:
    """A list of one page is read anew each time, which costs as little as what changed."""
    known.forget()
    first = _page(repo, dict(params), 1)
    if not first.has_more:
        return first.items
    found = repo.every("issues", purpose=Purpose.QUEUE, need=Need.READ_ISSUES, params=params)
    if first.at is not None:
        known.entries = {number: one for one in found if (number := reading.index(one))}
        known.as_of, known.read_at = first.at - OVERLAP, now
    return found


def _catch_up(repo: RepositoryClient, known: Listing, label: str, as_of: datetime) -> bool:
    """Apply what changed since; False when that is too much, so that the whole list is read again."""
    params = {"state": "all", "type": "issues", "since": as_of.strftime("%Y-%m-%dT%H:%M:%SZ")}
    page = _page(repo, params, 1)
    at, first, changed = page.at, len(page.items), list(page.items)
    for number in range(2, MOST_PAGES + 1):
        if not page.has_more:
            break
        page = _page(repo, params, number, first)
        changed += page.items
    if page.has_more or at is None:
        return False
    for one in changed:
        if (index := reading.index(one)) is not None:
            known.entries[index] = one
    known.entries = {
        number: one
        for number, one in known.entries.items()
        if reading.text(one, "state") == "open" and (not label or label in reading.labels(one))
    }
    known.as_of = at - OVERLAP
    return True


def _page(
    repo: RepositoryClient, params: Mapping[str, str], number: int, first: int = 0
) -> ListPage:
    return repo.page(
        "issues",
        purpose=Purpose.QUEUE,
        need=Need.READ_ISSUES,
        params=params,
        number=number,
        first=first,
    )
