"""What each test asks the database, and the fewest tests that together ask all of it.

`./lab test --record FOLDER` writes down what every test asked, and `python -m tests.statements FOLDER`
prints the tests that `.ci/run` then runs on PostgreSQL: see CONTRIBUTING.md.
"""

from __future__ import annotations

import heapq
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = tuple(f"{ROOT / name}{os.sep}" for name in ("runs", "labsite", "trackers"))


# What a test costs beside its statements, in statements.
SET_UP = 30
# They are the same wherever they stand; what is asked between them has a place of its own.
OF_TRANSACTIONS = ("BEGIN", "SAVEPOINT", "RELEASE", "ROLLBACK")


@dataclass
class Asked:
    """What one test asked: places with the form of their statement, and on which connections."""

    is_kept: bool = False
    forms: set[str] = field(default_factory=set)
    connections: set[int] = field(default_factory=set)
    statements: int = 0

    @property
    def is_needed(self) -> bool:
        """Whether no other can stand for it: two connections may meet, or nothing was seen of it."""
        return self.is_kept or len(self.connections) > 1 or not self.statements


def cover(tests: Mapping[str, Asked]) -> list[str]:
    """The needed tests, and cheap ones that ask whatever else is asked; in the order given."""
    chosen = {name for name, asked in tests.items() if asked.is_needed}
    seen = {form for name in chosen for form in tests[name].forms}
    heap = [(-len(one.forms) / (SET_UP + one.statements), name) for name, one in tests.items()]
    heapq.heapify(heap)
    while heap:
        _, name = heapq.heappop(heap)
        new = len(tests[name].forms - seen)
        worth = (-new / (SET_UP + tests[name].statements), name)
        if not new:
            continue
        if heap and heap[0] < worth:  # others have asked some of it since it was weighed
            heapq.heappush(heap, worth)
            continue
        chosen.add(name)
        seen |= tests[name].forms
    chosen -= _spare(tests, chosen)
    return [name for name in tests if name in chosen]


def _spare(tests: Mapping[str, Asked], chosen: set[str]) -> set[str]:
    """Of the chosen those whose every form those chosen after them ask as well, the dearest first."""
    asks = Counter(form for name in chosen for form in tests[name].forms)
    spare = set()
    for name in sorted(chosen, key=lambda name: (-tests[name].statements, name)):
        forms = tests[name].forms
        if not tests[name].is_needed and all(asks[form] > 1 for form in forms):
            spare.add(name)
            asks.subtract(forms)
    return spare


def read(folder: Path) -> dict[str, Asked]:
    """What the processes of one run wrote down."""
    tests: dict[str, Asked] = {}
    for file in sorted(folder.glob("*.json")):
        written = json.loads(file.read_text())
        for name, (is_kept, connections, statements, forms) in written["tests"].items():
            tests[name] = Asked(
                is_kept,
                {written["forms"][number] for number in forms},
                {*range(connections)},
                statements,
            )
    return dict(sorted(tests.items()))


@cache
def form(sql: str) -> str:
    """A statement without its values, the length of its lists and the names of its savepoints."""
    plain = re.sub(r"'(?:[^']|'')*'|\b\d+\b", "?", sql)
    plain = re.sub(r'(SAVEPOINT) "[^"]*"', r"\1", plain)
    plain = re.sub(r"\((?:%s|\?|NULL)(?:, (?:%s|\?|NULL))*\)", "(…)", plain)
    return re.sub(r"\(…\)(?:, \(…\))+", "(…)", plain)


@cache
def _is_product(file: str) -> bool:
    return file.startswith(PRODUCT)


def _place() -> str:
    """The line of the product that asks; empty where a test itself does."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if _is_product(frame.f_code.co_filename):
            return f"{frame.f_code.co_filename.removeprefix(str(ROOT))}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


class Recorder:
    """Writes down what is asked while a test runs, on every connection of this process."""

    def __init__(self) -> None:
        self.asked: dict[str, Asked] = {}
        self._now: Asked | None = None
        connection_created.connect(self._listen)

    @contextmanager
    def recording(self, test: str, *, is_kept: bool) -> Iterator[None]:
        self._now = self.asked[test] = Asked(is_kept)
        try:
            yield
        finally:
            self._now = None

    def write(self, folder: Path) -> None:
        """One file for each process that ran tests."""
        forms = sorted({form for asked in self.asked.values() for form in asked.forms})
        numbers = {form: number for number, form in enumerate(forms)}
        tests = {
            name: [
                asked.is_kept,
                len(asked.connections),
                asked.statements,
                sorted(numbers[form] for form in asked.forms),
            ]
            for name, asked in self.asked.items()
        }
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{os.getpid()}.json").write_text(json.dumps({"forms": forms, "tests": tests}))

    def _listen(self, connection: BaseDatabaseWrapper, **_: Any) -> None:
        if self._execute not in connection.execute_wrappers:
            connection.execute_wrappers.append(self._execute)

    def _execute(
        self,
        execute: Callable[..., Any],
        sql: str,
        params: Any,
        many: bool,
        context: Mapping[str, Any],
    ) -> Any:
        now = self._now
        if now is None:
            return execute(sql, params, many, context)
        connection = context["connection"]
        place = _place()
        if place and not sql.startswith(OF_TRANSACTIONS):
            # A lock outside a transaction is an error on PostgreSQL alone.
            alone = "" if connection.in_atomic_block else " alone"
            now.forms.add(f"{place}{alone} {form(sql)}")
        now.connections.add(id(connection))
        now.statements += 1
        try:
            return execute(sql, params, many, context)
        except DatabaseError as error:
            now.forms.add(f"{place} {type(error).__name__} {error}")
            raise


def main(argv: Sequence[str]) -> int:
    """Print the chosen tests, one a line, and how many they are on the error output."""
    tests = read(Path(argv[0]))
    chosen = cover(tests)
    print("\n".join(chosen))
    print(f"{len(chosen)} of {len(tests)} tests ask all that is asked.", file=sys.stderr)
    return 0 if chosen else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
