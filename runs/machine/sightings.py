"""Reads what tmux says of its sessions, and what the launcher wrote of an end. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from runs.core.ports import Exit, SeamError, Sighting

YEARS = range(2020, 2200)
MARK = "@lab_marker"
_FIELDS = (
    "session_name",
    f"s/[^A-Za-z0-9_~-]/_/:{MARK}",
    "pane_dead",
    "pane_dead_status",
    "pane_dead_signal",
    "pane_dead_time",
    "session_created",
)
FORMAT = "|".join(f"#{{{field}}}" for field in _FIELDS)


def read(lines: Sequence[str]) -> dict[str, Sighting]:
    """Sessions from pane lines. A session with several panes lives while one of them does."""
    found: dict[str, Sighting] = {}
    for line in lines:
        parts = line.rsplit("|", len(_FIELDS) - 1)
        if len(parts) != len(_FIELDS):
            raise SeamError(f"tmux list-panes gave a line that was not understood: {line[:80]}")
        name, mark, dead, status, number, died_at, created = parts
        seen = Sighting(
            name,
            alive=dead != "1",
            exit_status=_number(status),
            exit_signal=_number(number),
            ended_at=_moment(died_at),
            created_at=_moment(created),
            marker=mark,
        )
        if name not in found or seen.alive:
            found[name] = seen
    return found


def read_exit(text: str) -> Exit | None:
    """What the launch wrapper wrote: a status, or a signal as a negative one; None if it did not."""
    try:
        content = json.loads(text)
        status, at = content["status"], content["at"]
        moment = datetime.fromtimestamp(float(at), UTC)
    except (ArithmeticError, OSError, RecursionError, ValueError, KeyError, TypeError):
        return None
    if type(status) is not int or not -64 <= status <= 255 or moment.year not in YEARS:
        return None
    return Exit(None, -status, moment) if status < 0 else Exit(status, None, moment)


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def _moment(text: str) -> datetime | None:
    return datetime.fromtimestamp(int(text), UTC) if text.isdigit() else None
