"""What issues wait for, by the forge's own word, without asking for each issue at every tick."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

# What could start next is asked for again; what stands behind it only when it has changed.
GOOD_FOR = timedelta(minutes=10)
GOOD_BEHIND_FOR = timedelta(hours=12)
NOT_THERE_FOR = timedelta(hours=1)
# So long others go before an issue about which the forge gave no answer.
FAILED_FOR = timedelta(minutes=10)
# How many blocked issues are looked at again in one question.
MOST_BLOCKED = 8


@dataclass(frozen=True, slots=True)
class Hint:
    """What the ready queue told of an issue: how many open ones it waits for, and its last change.

    GitHub tells the number; on Gitea a change of what an issue waits for changes the issue.
    """

    blocked_by: int | None
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Told:
    """What the forge said of an issue when it looked like `hint`. `by` are the open ones that it waits for.

    `is_bare`: it named nothing at all, not even closed issues, which may be opened again.
    """

    hint: Hint
    at: datetime
    by: tuple[str, ...]
    is_bare: bool


@dataclass
class Waits:
    """What is known of one repository. In memory and thread-safe."""

    hints: Mapping[str, Hint] = field(default_factory=dict)
    name: str = ""  # what the forge calls the repository now; a root keeps an earlier name
    _queues: dict[str, Mapping[str, Hint]] = field(default_factory=dict)
    _told: dict[str, Told] = field(default_factory=dict)
    _failed: dict[str, datetime] = field(default_factory=dict)
    _not_there_until: datetime | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def is_free(self, key: str, now: datetime, good_for: timedelta = GOOD_FOR) -> bool:
        """Whether an issue waits for nothing, so that nobody need be asked."""
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
        """The open issues that it waited for when it was asked for last, unless it changed since."""
        with self._lock:
            told = self._kept(key)
            return told.by if told is not None else ()

    def to_ask_again(self, keys: Iterable[str]) -> list[str]:
        """Blocked issues whose blockers may be closed by now: those asked longest ago, and of those
        that wait for the same only one."""
        with self._lock:
            found = [(told, key) for key in keys if (told := self._kept(key)) and told.by]
        found.sort(key=lambda one: one[0].at)
        return list({told.by: key for told, key in reversed(found)}.values())[::-1][:MOST_BLOCKED]

    def like(self, key: str, keys: Collection[str]) -> list[str]:
        """The others that waited for what this one waited for."""
        by = self.blockers(key)
        return [other for other in keys if other != key and by and self.blockers(other) == by]

    def queue(self, hints: Mapping[str, Hint], label: str = "") -> None:
        """The ready queue of a label was read; what is known of issues in no queue is dropped.

        Of an issue in several queues the one that was read last counts.
        """
        with self._lock:
            self._queues.pop(label, None)
            self._queues[label] = dict(hints)
            self.hints = {key: hint for one in self._queues.values() for key, hint in one.items()}
            self._told = {key: told for key, told in self._told.items() if key in self.hints}

    def found(self, key: str, by: Sequence[str], now: datetime, *, is_bare: bool) -> None:
        """The forge said what an issue waits for."""
        with self._lock:
            if hint := self.hints.get(key):
                self._told[key] = Told(hint, now, tuple(by), is_bare)

    def failed(self, keys: Collection[str], now: datetime) -> None:
        """The forge was asked what these issues wait for, and gave no answer."""
        with self._lock:
            self._failed |= dict.fromkeys(keys, now)

    def answering(self, keys: Sequence[str], now: datetime) -> Sequence[str]:
        """Those about which the last question did not fail a short while ago; all if there are none.

        One about which a forge never answers must not keep the others from being asked about.
        """
        with self._lock:
            lately = {key for key, at in self._failed.items() if now - at < FAILED_FOR}
            self._failed = {key: self._failed[key] for key in lately}
        return [key for key in keys if key not in lately] or keys

    def not_there(self, now: datetime) -> None:
        """The forge does not know what issues wait for, or the repository has it switched off."""
        with self._lock:
            self._not_there_until = now + NOT_THERE_FOR

    def _kept(self, key: str) -> Told | None:
        told = self._told.get(key)
        return told if told is not None and told.hint == self.hints.get(key) else None
