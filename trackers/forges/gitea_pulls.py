"""Pull requests of given heads on Gitea: one list per tick, and the whole history once (LAB-12).

Gitea cannot be asked for a head. So the history is read once, some pages at a time since a tick
does not wait for ever, and afterwards only what changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from trackers.account import Purpose
from trackers.base import Pull
from trackers.errors import Unreachable
from trackers.forges import gitea_reading, reading
from trackers.forges.dialect import Need
from trackers.forges.heads import EVER, Heads, Seen, newest, reaches
from trackers.forges.visit import Leaf, Visit

_NEWEST_FIRST = {"state": "all", "sort": "recentupdate"}
_OLDEST_FIRST = {"state": "all", "sort": "oldest"}
MOST_PAGES_BACK = 10
MOST_PAGES_AT_ONCE = 20
LONGEST = timedelta(seconds=5)


@dataclass
class History:
    """How far the history of one repository was read; `as_of` is when the reading began."""

    as_of: datetime
    next_page: int = 1
    first: int = 0
    count: int = 0
    numbers: set[int] = field(default_factory=set)
    has_begun_again: bool = False


@dataclass
class Memory:
    """What is known of one repository, and of its history while that is still being read."""

    heads: Heads = field(default_factory=Heads)
    history: History | None = None
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)


def pulls(
    visit: Visit, memory: Memory, wanted: Collection[str], now: Callable[[], datetime]
) -> list[Pull]:
    """Every pull request of these heads, however old (X-03).

    Raises Unreachable while the history of a large repository is still being read.
    """
    known = memory.heads
    front = _leaf(visit, _NEWEST_FIRST, 1)
    as_of = newest(front.items)
    known.learn(seen(front.items))
    if front.has_more:
        # A page and a tick may both ask; the second finds the work done.
        with memory.lock:
            if known.all_as_of is None:
                _read_history(visit, memory, as_of, now)
        _catch_up(visit, memory, front)
    known.settle_all(as_of)
    return known.of(wanted)


def seen(entries: Iterable[Any]) -> list[Seen]:
    """The pull requests that could be read, each with the time of its last change."""
    found = ((gitea_reading.pull(entry), entry) for entry in entries)
    return [Seen(one, reading.moment(entry, "updated_at")) for one, entry in found if one]


def _read_history(
    visit: Visit, memory: Memory, as_of: datetime, now: Callable[[], datetime]
) -> None:
    """Read on where the last tick stopped. Returns when there is no more."""
    history = memory.history = memory.history or History(as_of)
    began = now()
    for _ in range(MOST_PAGES_AT_ONCE):
        leaf = _leaf(visit, _OLDEST_FIRST, history.next_page, history.first)
        memory.heads.learn(seen(leaf.items))
        history.first = history.first or len(leaf.items)
        history.count += sum(1 for entry in leaf.items if reading.index(entry) is None)
        history.numbers |= {n for entry in leaf.items if (n := reading.index(entry)) is not None}
        history.next_page += 1
        if not leaf.has_more and _is_whole(history, leaf):
            memory.heads.settle_all(history.as_of)
            memory.history = None
            return
        if now() - began > LONGEST:
            break
    raise Unreachable(
        f"labsite is still reading the older pull requests of {visit.repository} on {visit.host}: "
        f"{len(history.numbers)} so far."
    )


def _is_whole(history: History, leaf: Leaf) -> bool:
    """Whether as many were read as there are; pages of equally old ones may overlap.

    Then it is read again from the start, once.
    """
    if leaf.total is None or history.has_begun_again:
        return True
    if len(history.numbers) + history.count >= leaf.total:
        return True
    history.next_page, history.count, history.has_begun_again = 1, 0, True
    return False


def _catch_up(visit: Visit, memory: Memory, front: Leaf) -> None:
    """Read on until the list comes to what was known before; when that is far, begin anew."""
    since = memory.heads.all_as_of or EVER
    leaf, number = front, 1
    while leaf.has_more and not reaches(leaf.items, since):
        if number >= MOST_PAGES_BACK:
            memory.heads.all_as_of = None
            raise Unreachable(
                f"So many pull requests of {visit.repository} on {visit.host} have changed that "
                "labsite reads them all again."
            )
        number += 1
        leaf = _leaf(visit, _NEWEST_FIRST, number, len(front.items))
        memory.heads.learn(seen(leaf.items))


def _leaf(visit: Visit, params: dict[str, str], number: int, first: int = 0) -> Leaf:
    return visit.leaf(
        "pulls",
        purpose=Purpose.PULLS,
        need=Need.READ_PULLS,
        params=params,
        number=number,
        first=first,
    )
