"""Reads the phases of a workflow as a person writes them, one a line."""

from __future__ import annotations

import re
from dataclasses import dataclass

MINUTE = 60
_LINE = re.compile(
    r"(?P<name>[^:]+):\s*(?P<group>\S+)(?:\s+(?P<timeout>[0-9]{1,5}))?(?:\s+(?P<net>[0-9]{1,5}))?"
)


@dataclass(frozen=True, slots=True)
class PhaseLine:
    """One phase: its name, its group, and if they were written its timeout and net in seconds."""

    name: str
    group: str
    timeout_seconds: int | None = None
    net_seconds: int | None = None


class WrongLine(ValueError):
    """A line that is no phase; the text says which and how one looks."""


def read_phases(text: str) -> list[PhaseLine]:
    """`name: group`, then if wanted its timeout and its safety net in minutes. Raises WrongLine."""
    lines = [line.strip() for line in text.splitlines()]
    return [_read(number, line) for number, line in enumerate(lines, 1) if line]


def _read(number: int, line: str) -> PhaseLine:
    found = _LINE.fullmatch(line)
    if found is None:
        raise WrongLine(
            f"Line {number} is no phase: write a name, a colon and a group, such as "
            "“work: wave”, and if you like two numbers of minutes, “work: wave 30 35”."
        )
    timeout, net = (
        None if part is None else int(part) * MINUTE for part in found.group("timeout", "net")
    )
    return PhaseLine(found["name"].strip(), found["group"], timeout, net)
