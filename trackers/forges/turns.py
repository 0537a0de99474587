"""Which issues are asked about in one question about blockers: those that could start next. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta

from trackers.forges.waiting import GOOD_BEHIND_FOR, GOOD_FOR, Waits

MOST_ASKED = 24
MOST_AT_ONCE = 8

Answers = dict[str, Collection[str] | None]
Ask = Callable[[Sequence[str]], Mapping[str, Collection[str]]]


class Turn:
    """One question about the issues of one repository, in the order in which they would start.

    Blocked ones are asked about again, of those that wait for the same only one. Then the others are
    gone through until `enough` of them wait for nothing; 0: all of them. Whoever stands behind is not
    asked about, nor more than two dozen at once.
    """

    def __init__(
        self, waits: Waits, keys: Sequence[str], enough: int, now: datetime, ask: Ask
    ) -> None:
        self._waits, self._keys, self._enough, self._now = waits, keys, enough, now
        self._ask = ask
        self._most = 1 if enough else MOST_AT_ONCE
        self._asked: dict[str, Collection[str]] = {}

    def answers(self) -> Answers:
        """The open issues that each waits for; None for one that was not asked about.

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
        """Those of the blocked ones that may be free now, by asking about some of them."""
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
        """Who is asked about now: those of whom it is not known, before enough others that are free.

        Few at first, since mostly the first one is free; then more at once, so that it ends soon.
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
