"""Figures as the benches print them."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any


def p95(values: Sequence[float]) -> float:
    return sorted(values)[max(0, round(0.95 * len(values)) - 1)]


def line(name: str, values: Sequence[float], more: str = "") -> str:
    """One row out of seconds: median, p95, worst in milliseconds, and how many there were."""
    scaled = [value * 1000 for value in values]
    return (
        f"{name:<66} {statistics.median(scaled):>8.1f} {p95(scaled):>8.1f} {max(scaled):>8.1f}"
        f"  n={len(scaled)}{more}"
    )


def head() -> str:
    return f"{'milliseconds':<66} {'median':>8} {'p95':>8} {'worst':>8}"


def timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


class Asked:
    """How many statements a connection carried out, transactions' own words not counted."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        self.count += not sql.startswith(("SAVEPOINT", "RELEASE", "BEGIN", "COMMIT"))
        return execute(sql, params, many, context)


@contextlib.contextmanager
def queries() -> Iterator[Asked]:
    """Counts the queries of this thread's connection."""
    from django.db import connection

    asked = Asked()
    with connection.execute_wrapper(asked):
        yield asked
