"""What issues wait for, by the forge's own word, without asking for each issue at every tick."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

GOOD_FOR = timedelta(minutes=10)
NOT_THERE_FOR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Hint:
    """What the ready queue told of an issue: how many open ones it waits for, and its last change.

    GitHub tells the number; on Gitea a change of what an issue waits for changes the issue.
    """

    blocked_by: int | None
    at: datetime | None


@dataclass
class Waits:
    """What is known of one repository. In memory and thread-safe."""

    hints: Mapping[str, Hint] = field(default_factory=dict)
    name: str = ""  # what the forge calls the repository now; a root keeps an earlier name
    _free: dict[str, tuple[Hint, datetime]] = field(default_factory=dict)
    _not_there_until: datetime | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def is_free(self, key: str, now: datetime) -> bool:
        """Whether an issue waits for nothing, so that nobody need be asked."""
        with self._lock:
            if self._not_there_until is not None and now < self._not_there_until:
                return True
            hint = self.hints.get(key)
            if hint is None or hint.blocked_by:
                return False
            known = self._free.get(key)
            is_known = known is not None and known[0] == hint and now - known[1] < GOOD_FOR
            return hint.blocked_by == 0 or (hint.at is not None and is_known)

    def queue(self, hints: Mapping[str, Hint]) -> None:
        """The ready queue was read; what was known of other issues is dropped."""
        with self._lock:
            self.hints = dict(hints)
            self._free = {key: known for key, known in self._free.items() if key in hints}

    def found_free(self, key: str, now: datetime) -> None:
        """The forge named nothing at all that an issue waits for."""
        with self._lock:
            if hint := self.hints.get(key):
                self._free[key] = (hint, now)

    def not_there(self, now: datetime) -> None:
        """The forge does not know what issues wait for, or the repository has it switched off."""
        with self._lock:
            self._not_there_until = now + NOT_THERE_FOR
