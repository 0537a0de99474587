"""What one process counts of its own work since it started: figures that no row keeps."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass

BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Spread:
    """How many observations were at most each of `BOUNDS`, how many in all, and their sum."""

    at_most: tuple[int, ...]
    count: int
    total: float


class Histogram:
    """Counts durations by `BOUNDS`, from any thread; what it holds never grows."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = [0] * (len(BOUNDS) + 1)
        self._total = 0.0

    def observe(self, seconds: float) -> None:
        """Count one; less than nothing, which two clocks may give, counts as nothing."""
        seconds = max(0.0, seconds)
        with self._lock:
            self._counts[bisect_left(BOUNDS, seconds)] += 1
            self._total += seconds

    def read(self) -> Spread:
        with self._lock:
            counts, total = list(self._counts), self._total
        so_far = [sum(counts[: number + 1]) for number in range(len(BOUNDS))]
        return Spread(tuple(so_far), sum(counts), total)


class Tally:
    """Counts by words out of a small set that its callers keep."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def add(self, word: str) -> None:
        with self._lock:
            self._counts[word] += 1

    def read(self) -> dict[str, int]:
        with self._lock:
            return dict(self._counts)


# From the moment that a timeline entry names to the boxes of all who watch.
PUSHES = Histogram()
REQUESTS = Histogram()
ANSWERS = Tally()
