"""What is known of the pull requests of repositories, so that a tick need not look at old ones.

A head that was looked up completely stays known as of the newest change that the forge had told
of by then; later only what changed since has to be read (LAB-12, X-03). In memory: after a
restart everything is looked up once more. Thread-safe.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from trackers.base import Pull
from trackers.forges import reading

MOST_HEADS = 2000
EVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Seen:
    """A pull request as a list told of it; `at` is when it last changed, if that could be read."""

    pull: Pull
    at: datetime | None


def newest(entries: Iterable[Any]) -> datetime:
    """When something last changed among entries of a list."""
    found = (reading.moment(entry, "updated_at") for entry in entries)
    return max((at for at in found if at is not None), default=EVER)


def oldest(entries: Iterable[Any]) -> datetime | None:
    """The earliest change among entries of a list; None when no time could be read."""
    found = (reading.moment(entry, "updated_at") for entry in entries)
    return min((at for at in found if at is not None), default=None)


def reaches(entries: Iterable[Any], since: datetime) -> bool:
    """Whether a list, newest change first, has come to what changed before `since`.

    Changes of the very second count as later: the forge tells no finer time.
    """
    at = oldest(entries)
    return at is not None and at < since


@dataclass
class Heads:
    """What is known of one repository. `as_of` maps a head to when its list was complete.

    `all_as_of` does so for every head at once, where the whole list was read.
    """

    as_of: dict[str, datetime] = field(default_factory=dict)
    all_as_of: datetime | None = None
    _pulls: dict[int, Seen] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def complete_since(self, head: str) -> datetime | None:
        """As of when a head is known completely; None when it never was looked up."""
        with self._lock:
            known = [at for at in (self.as_of.get(head), self.all_as_of) if at is not None]
            return max(known, default=None)

    def learn(self, found: Iterable[Seen]) -> None:
        """Take in what a list said. An older answer that comes late changes nothing."""
        with self._lock:
            for seen in found:
                before = self._pulls.get(seen.pull.number)
                if before is None or before.at is None or seen.at is None or seen.at >= before.at:
                    self._pulls[seen.pull.number] = seen

    def settle(self, heads: Collection[str], as_of: datetime) -> None:
        """From now on these heads are known completely as of then."""
        with self._lock:
            if len(self.as_of) > MOST_HEADS:
                self.as_of.clear()
            for head in heads:
                self.as_of[head] = max(as_of, self.as_of.get(head, EVER))

    def settle_all(self, as_of: datetime) -> None:
        """From now on every head is known completely as of then."""
        with self._lock:
            self.all_as_of = max(as_of, self.all_as_of or EVER)

    def of(self, heads: Collection[str]) -> list[Pull]:
        """The known pull requests of these heads, by number."""
        with self._lock:
            found = [seen.pull for seen in self._pulls.values() if seen.pull.head in heads]
        return sorted(found, key=lambda pull: pull.number)
