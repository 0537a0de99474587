"""What `./lab wait` prints: text for people, and for machines one JSON object at the end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import IO, Protocol

from labsite.beside.printer import Printer
from runs.groups.terms import Result


class Lines(Protocol):
    """Where a monitor is told to."""

    def told(self, at: datetime, text: str) -> None: ...
    def result(self, result: Result) -> None: ...


class HumanLines:
    """The time of the machine, then what the monitor tells; the three parts of the result last."""

    def __init__(self, out: IO[str]) -> None:
        self._printer = Printer(out)

    def told(self, at: datetime, text: str) -> None:
        first, *more = text.splitlines() or [""]
        self._printer.line(f"{at.astimezone():%H:%M:%S}  {first}")
        for line in more:
            self._printer.line(f"          {line}")

    def result(self, result: Result) -> None:
        rows = {
            "completed": _keys(result.completed),
            "incomplete": _keys(result.incomplete),
            "timed out": "yes" if result.timed_out else "no",
        }
        self._printer.line("")
        for name, text in rows.items():
            self._printer.line(f"{name:<11} {text}")


class JsonLines:
    """Nothing but the result, with exactly its three parts."""

    def __init__(self, out: IO[str]) -> None:
        self._printer = Printer(out)

    def told(self, at: datetime, text: str) -> None:
        """Whoever reads JSON wants the result alone; the page and the stream tell the rest."""

    def result(self, result: Result) -> None:
        values = {
            "completed": list(result.completed),
            "incomplete": list(result.incomplete),
            "timed_out": result.timed_out,
        }
        self._printer.line(json.dumps(values, ensure_ascii=False))


def _keys(keys: Sequence[str]) -> str:
    return f"{len(keys)}: {', '.join(keys)}" if keys else "0"
