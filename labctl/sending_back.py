"""Workers that were told to go on, and the signals held back until their output is there."""

from __future__ import annotations

import contextlib

from labctl import signal_files
from labctl.safe_files import Unfit, from_json, is_name, line, put, read, remove, stems, to_json
from labctl.signal_files import SIGNAL_BYTES, TEXT_CHARACTERS, TIME_CHARACTERS

TYPE_CHECKING = False  # importing `typing` would take longer than all else in a hook
if TYPE_CHECKING:
    from typing import Any

SENT_BACK, HELD = ".sent-back", ".held"
MANY = 1000


def send_back(at: int, worker: str, why: str, when: str) -> int:
    """Record that a worker was sent back. Returns how often in a row."""
    if not is_name(worker):
        raise Unfit(f"{worker!r} is no name of a worker.")
    before = _last(at, worker)
    times = 1 + (before["times"] if before and not before["is_over"] else 0)
    _keep(at, worker, line(why, TEXT_CHARACTERS), when, times)
    return times


def let_go(at: int, worker: str, when: str) -> bool:
    """Release the signals that were held back for missing output. Returns whether anything changed."""
    was_back = is_back(at, worker, when)
    return bool(_release(at, worker, when)) or was_back


def is_back(at: int, worker: str, when: str) -> bool:
    """Forget that a worker was sent back, since it completed a task. Returns whether it was."""
    before = _last(at, worker) if is_name(worker) else None
    if before is None or before["is_over"]:
        return False
    _keep(at, worker, before["why"], when, 0)
    return True


def sent_back(at: int) -> list[dict[str, Any]]:
    """Workers that were sent back, with the last reason and whether it is over."""
    found = (_last(at, worker) for worker in stems(at, SENT_BACK)[:MANY])
    return [one for one in found if one is not None]


def hold(at: int, key: str, worker: str, subject: str, when: str) -> None:
    """Keep a signal back until its worker has left its output."""
    if not is_name(key):
        raise Unfit(f"{key!r} is no name of a task.")
    said = {"worker": worker, "subject": subject, "completed_at": when}
    put(at, key + HELD, to_json(signal_files.cut(key, said)), replace=True)


def _keep(at: int, worker: str, why: str, when: str, times: int) -> None:
    """Store how often in a row a worker was sent back; 0 once its output is there."""
    said = {"worker": worker, "why": why, "at": when, "times": times}
    put(at, worker + SENT_BACK, to_json(said), replace=True)


def _last(at: int, worker: str) -> dict[str, Any] | None:
    try:
        said = from_json(read(at, worker + SENT_BACK, SIGNAL_BYTES), SENT_BACK)
    except (OSError, Unfit):
        return None
    times = said.get("times")
    times = times if type(times) is int and 0 <= times < MANY else 1
    return {
        "worker": worker,
        "why": line(said.get("why"), TEXT_CHARACTERS),
        "at": line(said.get("at"), TIME_CHARACTERS),
        "times": times,
        "is_over": times == 0,
    }


def _release(at: int, worker: str, when: str) -> list[str]:
    released = []
    for key in stems(at, HELD):
        with contextlib.suppress(OSError, Unfit):
            said = from_json(read(at, key + HELD, SIGNAL_BYTES), key + HELD)
            if said.get("worker") == worker:
                signal_files.write(at, key, worker, line(said.get("subject"), 256), when)
                remove(at, key + HELD)
                released.append(key)
    return released
