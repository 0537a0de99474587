"""Pull requests of given branches without reading every pull request at each tick.

The pull requests of a branch that were read completely are valid as of the newest change that the
forge had listed by then; later only what changed since has to be read. In memory: after a restart everything is
looked up once more. GitHub can be asked for one branch by its name. Gitea cannot, so its history
is read once, some pages at a time since a tick does not wait for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from trackers.account import Purpose
from trackers.base import Pull
from trackers.errors import Unreachable
from trackers.forges import gitea_reading, github_reading, reading
from trackers.forges.repository import ListPage, Need, RepositoryClient

MOST_HEADS = 2000
EVER = datetime.min.replace(tzinfo=UTC)

_GITHUB_NEWEST_FIRST = {"state": "all", "sort": "updated", "direction": "desc"}
# GitHub takes seconds for a hundred of them, since each brings two repositories along.
GITHUB_PAGE = 40
GITHUB_PAGES_BACK = 4

_GITEA_NEWEST_FIRST = {"state": "all", "sort": "recentupdate"}
_GITEA_OLDEST_FIRST = {"state": "all", "sort": "oldest"}
GITEA_PAGES_BACK = 10
HISTORY_PAGES = 20
HISTORY_TIME = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Seen:
    """A pull request of a list; `at` is its last change, if that could be read."""

    pull: Pull
    at: datetime | None


def newest(entries: Iterable[Any]) -> datetime:
    """The latest change among entries of a list."""
    found = (reading.moment(entry, "updated_at") for entry in entries)
    return max((at for at in found if at is not None), default=EVER)


def oldest(entries: Iterable[Any]) -> datetime | None:
    """The earliest change among entries of a list; None when no time could be read."""
    found = (reading.moment(entry, "updated_at") for entry in entries)
    return min((at for at in found if at is not None), default=None)


def reaches(entries: Iterable[Any], since: datetime) -> bool:
    """Whether a list, newest change first, has come to what changed before `since`.

    A change within the same second counts as later: forges send whole seconds.
    """
    at = oldest(entries)
    return at is not None and at < since


@dataclass
class Heads:
    """The pull requests of one repository. `as_of` maps a head to when its list was complete.

    `all_as_of` does so for every head at once, where the whole list was read.
    """

    as_of: dict[str, datetime] = field(default_factory=dict)
    all_as_of: datetime | None = None
    _pulls: dict[int, Seen] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def complete_since(self, head: str) -> datetime | None:
        """As of when the list of a head is complete; None when it never was read."""
        with self._lock:
            known = [at for at in (self.as_of.get(head), self.all_as_of) if at is not None]
            return max(known, default=None)

    def learn(self, found: Iterable[Seen]) -> None:
        """Store entries of a list. An older answer that comes late changes nothing."""
        with self._lock:
            for seen in found:
                before = self._pulls.get(seen.pull.number)
                if before is None or before.at is None or seen.at is None or seen.at >= before.at:
                    self._pulls[seen.pull.number] = seen

    def settle(self, heads: Collection[str], as_of: datetime) -> None:
        """Store that the lists of these heads are complete as of then."""
        with self._lock:
            if len(self.as_of) > MOST_HEADS:
                self.as_of.clear()
            for head in heads:
                self.as_of[head] = max(as_of, self.as_of.get(head, EVER))

    def settle_all(self, as_of: datetime) -> None:
        """Store that the list of every head is complete as of then."""
        with self._lock:
            self.all_as_of = max(as_of, self.all_as_of or EVER)

    def of(self, heads: Collection[str]) -> list[Pull]:
        """The known pull requests of these heads, by number."""
        with self._lock:
            found = [seen.pull for seen in self._pulls.values() if seen.pull.head in heads]
        return sorted(found, key=lambda pull: pull.number)


def seen(read: Callable[[Any], Pull | None], entries: Iterable[Any]) -> list[Seen]:
    """The pull requests that could be read, each with the time of its last change."""
    found = ((read(entry), entry) for entry in entries)
    return [Seen(one, reading.moment(entry, "updated_at")) for one, entry in found if one]


def github_pulls(repo: RepositoryClient, known: Heads, wanted: Collection[str]) -> list[Pull]:
    """Every pull request of these heads, however old.

    The newest page tells what changed. A head whose last look-up it does not reach back to is
    asked for by its name, which GitHub answers exactly.
    """
    front = _github_page(repo, 1)
    as_of = newest(front.items)
    known.learn(seen(github_reading.pull, front.items))
    if not front.has_more:
        known.settle_all(as_of)
        return known.of(wanted)
    back = {head: at for head in wanted if (at := known.complete_since(head)) is not None}
    if back and not _caught_up(repo, known, front, min(back.values())):
        back = {}
    owner = _owner(front.items) or repo.repository.owner
    for head in sorted(set(wanted) - set(back)):
        params = {"state": "all", "head": f"{owner}:{head}"}
        known.learn(seen(github_reading.pull, _every(repo, params)))
    known.settle(wanted, as_of)
    return known.of(wanted)


def _caught_up(repo: RepositoryClient, known: Heads, front: ListPage, since: Any) -> bool:
    """Read on until the list reaches what was known before; False when that takes too many pages."""
    page, number = front, 1
    while page.has_more and not reaches(page.items, since):
        if number >= GITHUB_PAGES_BACK:
            return False
        number += 1
        page = _github_page(repo, number)
        known.learn(seen(github_reading.pull, page.items))
    return True


def _github_page(repo: RepositoryClient, number: int) -> ListPage:
    return repo.page(
        "pulls",
        purpose=Purpose.PULLS,
        need=Need.READ_PULLS,
        params=_GITHUB_NEWEST_FIRST,
        number=number,
        size=GITHUB_PAGE,
    )


def _every(repo: RepositoryClient, params: dict[str, str]) -> list[Any]:
    return repo.every("pulls", purpose=Purpose.PULLS, need=Need.READ_PULLS, params=params)


def _owner(entries: Iterable[Any]) -> str:
    """The current owner of the repository. After a transfer its old owner has no such heads."""
    owners = (reading.text(entry, "base", "repo", "owner", "login") for entry in entries)
    return next((owner for owner in owners if owner), "")


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
    """The pull requests of one repository, and how far its history was read."""

    heads: Heads = field(default_factory=Heads)
    history: History | None = None
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)


def gitea_pulls(
    repo: RepositoryClient, memory: Memory, wanted: Collection[str], now: Callable[[], datetime]
) -> list[Pull]:
    """Every pull request of these heads, however old.

    Raises Unreachable while the history of a large repository is still being read.
    """
    known = memory.heads
    front = _gitea_page(repo, _GITEA_NEWEST_FIRST, 1)
    as_of = newest(front.items)
    known.learn(seen(gitea_reading.pull, front.items))
    if front.has_more:
        # A page and a tick may both ask; the second finds the work done.
        with memory.lock:
            if known.all_as_of is None:
                _read_history(repo, memory, as_of, now)
        _catch_up(repo, memory, front)
    known.settle_all(as_of)
    return known.of(wanted)


def _read_history(
    repo: RepositoryClient, memory: Memory, as_of: datetime, now: Callable[[], datetime]
) -> None:
    """Continue where the last tick stopped. Returns at the end of the history, else raises Unreachable."""
    history = memory.history = memory.history or History(as_of)
    began = now()
    for _ in range(HISTORY_PAGES):
        page = _gitea_page(repo, _GITEA_OLDEST_FIRST, history.next_page, history.first)
        memory.heads.learn(seen(gitea_reading.pull, page.items))
        history.first = history.first or len(page.items)
        history.count += sum(1 for entry in page.items if reading.index(entry) is None)
        history.numbers |= {n for entry in page.items if (n := reading.index(entry)) is not None}
        history.next_page += 1
        if not page.has_more and _is_whole(history, page):
            memory.heads.settle_all(history.as_of)
            memory.history = None
            return
        if now() - began > HISTORY_TIME:
            break
    raise Unreachable(
        f"labsite is still reading the older pull requests of {repo.repository} on {repo.host}: "
        f"{len(history.numbers)} so far."
    )


def _is_whole(history: History, page: ListPage) -> bool:
    """Whether as many were read as there are; pages of equally old ones may overlap.

    Then it is read again from the start, once.
    """
    if page.total is None or history.has_begun_again:
        return True
    if len(history.numbers) + history.count >= page.total:
        return True
    history.next_page, history.count, history.has_begun_again = 1, 0, True
    return False


def _catch_up(repo: RepositoryClient, memory: Memory, front: ListPage) -> None:
    """Read on until the list reaches what was known before; after too many pages, begin anew."""
    since = memory.heads.all_as_of or EVER
    page, number = front, 1
    while page.has_more and not reaches(page.items, since):
        if number >= GITEA_PAGES_BACK:
            memory.heads.all_as_of = None
            raise Unreachable(
                f"So many pull requests of {repo.repository} on {repo.host} have changed that "
                "labsite reads them all again."
            )
        number += 1
        page = _gitea_page(repo, _GITEA_NEWEST_FIRST, number, len(front.items))
        memory.heads.learn(seen(gitea_reading.pull, page.items))


def _gitea_page(
    repo: RepositoryClient, params: dict[str, str], number: int, first: int = 0
) -> ListPage:
    return repo.page(
        "pulls",
        purpose=Purpose.PULLS,
        need=Need.READ_PULLS,
        params=params,
        number=number,
        first=first,
    )
