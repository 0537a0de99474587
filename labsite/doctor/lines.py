"""What one check found: a line for a person, an object for a machine. Pure."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from trackers import plain as letters

WIDTH = 100
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Status(StrEnum):
    """How a check ended. Only `WRONG` makes the exit status 1."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Line:
    """One result: which check, how it ended, what was seen, and what to do (empty when nothing)."""

    check: str
    status: Status
    seen: str
    advice: str = ""


def ok(check: str, seen: str) -> Line:
    return Line(check, Status.OK, seen)


def warning(check: str, seen: str, advice: str) -> Line:
    return Line(check, Status.WARNING, seen, advice)


def wrong(check: str, seen: str, advice: str) -> Line:
    return Line(check, Status.WRONG, seen, advice)


def exit_code(lines: Iterable[Line]) -> int:
    """0 when nothing is wrong, warnings included; else 1."""
    return int(any(line.status is Status.WRONG for line in lines))


def as_json(lines: Sequence[Line]) -> str:
    """One object: `status` of the whole, and `checks` with check, status, seen and advice each."""
    worst = max((line.status for line in lines), key=list(Status).index, default=Status.OK)
    checks = [
        {"check": line.check, "status": line.status, "seen": line.seen, "advice": line.advice}
        for line in lines
    ]
    return json.dumps({"status": worst, "checks": checks}, indent=2)


def as_text(lines: Sequence[Line]) -> str:
    """A table for a terminal, the advice under its line, and a closing sentence."""
    wide = max((len(line.check) for line in lines), default=0)
    rows: list[str] = []
    for line in lines:
        head = f"{line.status:<8} {line.check:<{wide}}  "
        rows += _folded(head, line.seen)
        if line.advice:
            rows += _folded(" " * len(head), f"→ {line.advice}")
    return "\n".join([*rows, "", _summary(lines)])


def _folded(head: str, text: str) -> list[str]:
    """A text of any length beside its head; no word is broken, so that paths can be copied.

    What others have printed may hold orders for the terminal, which are not passed on.
    """
    plain = letters.line(_CONTROL.sub("?", " ".join(text.split())))
    return textwrap.wrap(
        plain,
        WIDTH,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    ) or [head.rstrip()]


def _summary(lines: Sequence[Line]) -> str:
    bad = sum(line.status is Status.WRONG for line in lines)
    odd = sum(line.status is Status.WARNING for line in lines)
    if not bad and not odd:
        return f"All {len(lines)} checks are fine."
    parts = [f"{bad} wrong"] if bad else []
    parts += [f"{odd} to look at"] if odd else []
    return f"{len(lines)} checks: {', '.join(parts)}, the rest is fine. Nothing was changed."
