"""Remembers answers that cost something and can never become wrong, up to a size."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """The answers used last, in at most `limit` units of `weigh`; safe between threads.

    For keys that name their content, such as ids of commits: nothing is ever made stale. Two that
    ask for the same at once may both make it, which costs time only.
    """

    def __init__(self, limit: int, weigh: Callable[[Value], int]) -> None:
        self._limit = limit
        self._weigh = weigh
        self._kept: OrderedDict[Hashable, Value] = OrderedDict()
        self._weight = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The answer of a key, made when it is not kept. What `make` raises is not kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        value = make()
        self._keep(key, value)
        return value

    def kept(self, key: Hashable) -> Value | None:
        """The answer of a key, if it is kept."""
        with self._lock:
            return self._kept.get(key)

    @property
    def weight(self) -> int:
        return self._weight

    def _keep(self, key: Hashable, value: Value) -> None:
        with self._lock:
            if key in self._kept:
                self._weight -= self._size(self._kept.pop(key))
            self._kept[key] = value
            self._weight += self._size(value)
            while self._weight > self._limit:
                _, old = self._kept.popitem(last=False)
                self._weight -= self._size(old)

    def _size(self, value: Value) -> int:
        """At least 1, so that empty answers are bounded too."""
        return 1 + self._weigh(value)
