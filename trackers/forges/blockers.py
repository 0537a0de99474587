"""Which issues wait for others, as the forge says, without one call for each issue at every tick."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from trackers.account import Purpose
from trackers.base import NotFound, TrackerError
from trackers.forges import reading
from trackers.forges.repository import RepositoryClient, is_number, number_of
from trackers.forges.tracker import ForgeTracker, in_parallel

# What could start next is asked for again; what stands behind it only when it has changed.
GOOD_FOR = timedelta(minutes=10)
GOOD_BEHIND_FOR = timedelta(hours=12)
NOT_THERE_FOR = timedelta(hours=1)
# So long others go before an issue about which the forge gave no answer.
FAILED_FOR = timedelta(minutes=10)
# How many blocked issues are looked at again in one question.
MOST_BLOCKED = 8
MOST_ASKED = 24
MOST_AT_ONCE = 8

Answers = dict[str, Collection[str] | None]
Ask = Callable[[Sequence[str]], Mapping[str, Collection[str]]]


@dataclass(frozen=True, slots=True)
class Hint:
    """What the list of ready issues says: how many open issues it waits for, and its last change.

    GitHub tells the number; on Gitea a change of what an issue waits for changes the issue.
    """

    blocked_by: int | None
    at: datetime | None


@dataclass(frozen=True, slots=True)
class KnownBlockers:
    """The blockers of an issue while its `hint` is unchanged. `by` are the open ones.

    `is_bare`: the forge listed none at all, not even closed ones, which may be opened again.
    """

    hint: Hint
    at: datetime
    by: tuple[str, ...]
    is_bare: bool


@dataclass
class BlockerCache:
    """What is known of the blockers in one repository. In memory and thread-safe."""

    hints: Mapping[str, Hint] = field(default_factory=dict)
    name: str = ""  # what the forge calls the repository now; a root keeps an earlier name
    _queues: dict[str, Mapping[str, Hint]] = field(default_factory=dict)
    _told: dict[str, KnownBlockers] = field(default_factory=dict)
    _failed: dict[str, datetime] = field(default_factory=dict)
    _not_there_until: datetime | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def is_free(self, key: str, now: datetime, good_for: timedelta = GOOD_FOR) -> bool:
        """Whether an issue is known to wait for nothing."""
        with self._lock:
            if self._not_there_until is not None and now < self._not_there_until:
                return True
            hint = self.hints.get(key)
            if hint is None or hint.blocked_by:
                return False
            told = self._kept(key)
            is_known = told is not None and told.is_bare and now - told.at < good_for
            return hint.blocked_by == 0 or (hint.at is not None and is_known)

    def blockers(self, key: str) -> tuple[str, ...]:
        """The open issues that it waited for at the last call, unless it changed since."""
        with self._lock:
            told = self._kept(key)
            return told.by if told is not None else ()

    def to_ask_again(self, keys: Iterable[str]) -> list[str]:
        """Blocked issues whose blockers may be closed by now: those asked for longest ago, and one of
        those with the same blockers."""
        with self._lock:
            found = [(told, key) for key in keys if (told := self._kept(key)) and told.by]
        found.sort(key=lambda one: one[0].at)
        return list({told.by: key for told, key in reversed(found)}.values())[::-1][:MOST_BLOCKED]

    def like(self, key: str, keys: Collection[str]) -> list[str]:
        """The others with the same blockers."""
        by = self.blockers(key)
        return [other for other in keys if other != key and by and self.blockers(other) == by]

    def queue(self, hints: Mapping[str, Hint], label: str = "") -> None:
        """Store the hints of a label's ready queue; issues that are in no queue are forgotten.

        For an issue in several queues the queue that was read last counts.
        """
        with self._lock:
            self._queues.pop(label, None)
            self._queues[label] = dict(hints)
            self.hints = {key: hint for one in self._queues.values() for key, hint in one.items()}
            self._told = {key: told for key, told in self._told.items() if key in self.hints}

    def found(self, key: str, by: Sequence[str], now: datetime, *, is_bare: bool) -> None:
        """Store the blockers of an issue."""
        with self._lock:
            if hint := self.hints.get(key):
                self._told[key] = KnownBlockers(hint, now, tuple(by), is_bare)

    def failed(self, keys: Collection[str], now: datetime) -> None:
        """Store that the calls about these issues failed."""
        with self._lock:
            self._failed |= dict.fromkeys(keys, now)

    def answering(self, keys: Sequence[str], now: datetime) -> Sequence[str]:
        """Leave out issues whose last call failed a short while ago; all of them if none is left.

        An issue for which the forge always fails must not keep the others from being asked for.
        """
        with self._lock:
            lately = {key for key, at in self._failed.items() if now - at < FAILED_FOR}
            self._failed = {key: self._failed[key] for key in lately}
        return [key for key in keys if key not in lately] or keys

    def not_there(self, now: datetime) -> None:
        """Store that the forge has no blockers, or that the repository has them switched off."""
        with self._lock:
            self._not_there_until = now + NOT_THERE_FOR

    def _kept(self, key: str) -> KnownBlockers | None:
        told = self._told.get(key)
        return told if told is not None and told.hint == self.hints.get(key) else None


class BlockerQuery:
    """Finds out which issues of one repository are free, in the order in which they would start.

    Blocked issues are asked for again, one of those with the same blockers. Then the others in
    order until `enough` of them are free (0: all), so that those further back cost no call. At
    most two dozen calls.
    """

    def __init__(
        self, waits: BlockerCache, keys: Sequence[str], enough: int, now: datetime, ask: Ask
    ) -> None:
        self._waits, self._keys, self._enough, self._now = waits, keys, enough, now
        self._ask = ask
        self._most = 1 if enough else MOST_AT_ONCE
        self._asked: dict[str, Collection[str]] = {}

    def answers(self) -> Answers:
        """The open issues that each waits for; None for one that was not asked for.

        Those that wait for nothing are left out. Raises TrackerError.
        """
        kept = {key: self._waits.blockers(key) for key in self._keys}
        found: Answers = {key: by for key, by in kept.items() if by}
        for key in self._freed(found):
            found.pop(key, None)
        while chunk := self._next(found):
            self._put(chunk)
            found |= {key: by for key in chunk if (by := self._asked[key])}
        free = [key for key in self._keys if key not in found]
        return found | {key: None for key in free if not self._is_free(key, GOOD_BEHIND_FOR)}

    def _freed(self, blocked: Answers) -> list[str]:
        """The blocked issues that may be free now, found by asking for some of them."""
        again = self._waits.to_ask_again(blocked)
        alike = {key: self._waits.like(key, blocked) for key in again}
        self._put(again)
        freed = []
        for key in again:
            if sorted(self._asked[key]) != sorted(blocked[key] or ()):
                freed += alike[key]
            if self._asked[key]:
                blocked[key] = self._asked[key]
            else:
                freed.append(key)
        return freed

    def _next(self, blocked: Answers) -> list[str]:
        """The next issues to ask for: unknown ones that come before `enough` free ones.

        One at first, since mostly the first one is free; then twice as many each time.
        """
        free, unknown = 0, list[str]()
        for key in self._keys:
            if self._enough and free >= self._enough:
                break
            if key in blocked:
                continue
            if self._is_free(key, GOOD_FOR):
                free += 1
            elif key not in self._asked:
                unknown.append(key)
        size = min(max(self._most, self._enough - free), MOST_AT_ONCE)
        self._most = size * 2
        return unknown[: min(size, MOST_ASKED - len(self._asked))]

    def _is_free(self, key: str, good_for: timedelta) -> bool:
        if key in self._asked:
            return not self._asked[key]
        return self._waits.is_free(key, self._now, good_for)

    def _put(self, keys: Sequence[str]) -> None:
        if keys:
            self._asked |= self._ask(keys)


class TrackerWithBlockers(ForgeTracker):
    """A forge that knows what its issues wait for."""

    _blocker_caches: dict[tuple[str, str], BlockerCache]

    @abstractmethod
    def _blocked_by(self, repo: RepositoryClient, number: int) -> Sequence[Any]:
        """The blockers of an issue, open or not. Raises NotFound where the forge has no such list."""

    @abstractmethod
    def _blocker(self, repository: str, entry: Any) -> str | None:
        """The key of an open issue that another in this repository waits for."""

    @abstractmethod
    def _place(self, entry: Any) -> str:
        """The current name of the repository of an issue; empty where it is missing."""

    @abstractmethod
    def _hint(self, entry: Any) -> Hint:
        """What an entry of the ready queue says about blockers."""

    def blockers(
        self, keys: Mapping[str, Collection[str]], enough: int = 0
    ) -> Mapping[str, Mapping[str, Collection[str] | None] | None]:
        """What each named issue waits for, with as few calls as `BlockerQuery` needs."""
        repos = self._repos(keys)
        found = in_parallel(
            repos, lambda root: self._query(repos[root], root, list(keys[root]), enough)
        )
        answer: dict[str, Mapping[str, Collection[str] | None] | None] = dict.fromkeys(keys)
        for root, waits in found.items():
            if isinstance(waits, TrackerError):
                self._troubles[root] = waits
            else:
                answer[root] = waits
        return answer

    def _query(
        self, repo: RepositoryClient, root: str, keys: Sequence[str], enough: int
    ) -> Answers:
        def ask(some: Sequence[str]) -> Mapping[str, Collection[str]]:
            found = in_parallel(some, lambda key: self._open_blockers(repo, root, key))
            told = {key: one for key, one in found.items() if not isinstance(one, TrackerError)}
            known.failed(found.keys() - told.keys(), self._now())
            for waits in found.values():
                if isinstance(waits, TrackerError):
                    raise waits
            return told

        known = self._blocker_cache(repo, root)
        numbers = [key for key in keys if is_number(key)]
        asked = known.answering(numbers, self._now())
        left_out: Answers = dict.fromkeys(key for key in numbers if key not in asked)
        return left_out | BlockerQuery(known, asked, enough, self._now(), ask).answers()

    def _open_blockers(self, repo: RepositoryClient, root: str, key: str) -> Collection[str]:
        known = self._blocker_cache(repo, root)
        try:
            entries = self._blocked_by(repo, number_of(key))
        except NotFound:
            return self._no_blockers(repo, root, key)
        name = known.name or str(repo.repository)
        by = sorted(reading.every(entries, lambda entry: self._blocker(name, entry)))
        known.found(key, by, self._now(), is_bare=not entries)
        return by

    def _no_blockers(self, repo: RepositoryClient, root: str, key: str) -> Collection[str]:
        """Find out whether the issue is gone or the forge has no blockers at all."""
        try:
            self._entry(repo, number_of(key), Purpose.BLOCKERS)
        except NotFound:
            self._gone(repo, root)
            return ()
        self._blocker_cache(repo, root).not_there(self._now())
        return ()

    def _noted(self, repo: RepositoryClient, root: str, label: str, entries: Sequence[Any]) -> None:
        hints = {str(n): self._hint(one) for one in entries if (n := reading.index(one))}
        known = self._blocker_cache(repo, root)
        known.queue(hints, label)
        names = (self._place(one) for one in entries)
        known.name = next((name for name in names if name), known.name)

    def _blocker_cache(self, repo: RepositoryClient, root: str) -> BlockerCache:
        return self._remembered(self._blocker_caches, repo, root, BlockerCache)
