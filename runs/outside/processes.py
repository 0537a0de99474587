"""Finds processes by a marker in their environment and ends them, children that left included."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from runs.domain.ports import SeamError

MARKER = "LAB_RUN_MARKER"
_STEP = 0.05


def marked(marker: str, proc: Path = Path("/proc")) -> list[int]:
    """Process ids of this user that carry the marker in their environment."""
    wanted = f"{MARKER}={marker}".encode()
    found = []
    for folder in proc.iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return [pid for pid in found if pid != os.getpid()]


def end_marked(
    marker: str, grace: float = 1.0, sleep: Callable[[float], None] = time.sleep
) -> None:
    """End everything that carries the marker: TERM, `grace` seconds, then KILL until none is left.

    Raises SeamError when something survives (it belongs to another user, or sits in the kernel).
    """
    if not marker:
        return
    _signal_all(marked(marker), signal.SIGTERM)
    for _ in range(max(1, int(grace / _STEP))):
        if not marked(marker):
            return
        sleep(_STEP)
    for _ in range(20):
        left = marked(marker)
        if not left:
            return
        _signal_all(left, signal.SIGKILL)
        sleep(_STEP)
    raise SeamError(f"{len(marked(marker))} processes of the session could not be ended")


def name_of(pid: int) -> str:
    """A name for a process that no later process of this machine has: boot, id, start time."""
    return f"{_boot()}:{pid}:{_started(pid)}"


def is_alive(name: str) -> bool | None:
    """Whether the process with this name still runs; None when it is not one of this machine."""
    boot, _, rest = name.partition(":")
    pid, _, started = rest.partition(":")
    if not boot or not pid.isdigit():
        return None
    if boot != _boot():
        return False
    return bool(started) and _started(int(pid)) == started


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Start time of a process in clock ticks since boot; empty when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]


def _signal_all(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
