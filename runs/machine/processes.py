"""Finds the processes of a session by its marker and ends them, children that left included."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from runs.core.ports import SeamError

MARKER = "LAB_RUN_MARKER"
LAUNCHER = b"launcher.py"
Name = tuple[int, str]  # process id and start time, since ids are used again
_STEP = 0.05
_KILLED = 100  # steps that killed processes get to be gone, which a busy machine may need


def marked(marker: str, proc: Path = Path("/proc")) -> list[int]:
    """Process ids of this user that carry the marker in their environment or as our launcher."""
    wanted = f"{MARKER}={marker}".encode()
    found = []
    for pid in _numbers(proc):
        with contextlib.suppress(OSError):
            environment = _read(f"{proc}/{pid}/environ")
            if (wanted in environment and wanted in environment.split(b"\0")) or _is_launcher(
                _read(f"{proc}/{pid}/cmdline"), marker
            ):
                found.append(pid)
    return [pid for pid in found if pid != os.getpid()]


def _numbers(proc: Path | str = "/proc") -> list[int]:
    """The ids of all processes; names alone, since paths of a thousand take longer than to read them."""
    return [int(name) for name in os.listdir(proc) if name.isdigit()]  # noqa: PTH208


def _read(path: str) -> bytes:
    """A file of the kernel; by its name, since a thousand are read at once. Raises OSError."""
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123
        return file.readall()


def lock_holders(path: Path, proc: Path = Path("/proc")) -> list[tuple[int, str]]:
    """The processes of this user through which a file is locked by flock, and their programs."""
    wanted, found = str(path.resolve()), list[tuple[int, str]]()
    for folder in proc.iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            handles = [one.name for one in (folder / "fd").iterdir() if _leads_to(one, wanted)]
            # An open file alone may belong to somebody who waits.
            if any("\nlock:" in (folder / "fdinfo" / one).read_text() for one in handles):
                found.append((int(folder.name), (folder / "comm").read_text().strip()))
    return sorted(found)


def working_in(folder: Path) -> list[tuple[int, str]]:
    """The processes of this user that were left behind in a folder, and their programs.

    They have no terminal, and whoever began their session is gone or works there too. So labsite's
    own commands and what a person has open are none.
    """
    wanted, found = str(folder), dict[int, tuple[str, int]]()
    for pid in _numbers():
        with contextlib.suppress(OSError):
            at = os.readlink(f"/proc/{pid}/cwd")  # noqa: PTH115  (of each process)
            fields = _stat(pid) if at == wanted or at.startswith(f"{wanted}/") else []
            if fields and fields[0] != "Z" and fields[4] == "0":
                name = _read(f"/proc/{pid}/comm").decode(errors="replace").strip()
                found[pid] = (name, int(fields[3]))
    return [
        (pid, name)
        for pid, (name, leader) in sorted(found.items())
        if leader in found or not _started(leader)
    ]


def _leads_to(link: Path, wanted: str) -> bool:
    with contextlib.suppress(OSError):
        return str(link.readlink()) == wanted
    return False


def _is_launcher(cmdline: bytes, marker: str) -> bool:
    """Whether an argument list is `… launcher.py FOLDER MARKER`."""
    words = cmdline.split(b"\0")[:-1]
    return len(words) > 3 and words[-1] == marker.encode() and words[-3].endswith(b"/" + LAUNCHER)


def family(marker: str) -> frozenset[Name]:
    """Everything that carries the marker and all that descends from it, whatever it cleaned away.

    Ask before anything is ended: a process whose parent has ended is nobody's descendant.
    """
    return _with_descendants(marked(marker)) if marker else frozenset()


def end_marked(
    marker: str,
    known: frozenset[Name] = frozenset(),
    grace: float = 1.0,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """End the family of the marker and what is `known` of it: TERM, `grace` seconds, then KILL.

    Raises SeamError when something survives (it belongs to another user, or sits in the kernel).
    """
    if not marker:
        return
    left = _left(marker, known)
    if not left:
        return
    _signal_all(left, signal.SIGTERM)
    for _ in range(max(1, int(grace / _STEP))):
        left = _left(marker, left)
        if not left:
            return
        sleep(_STEP)
    for _ in range(_KILLED):
        left = _left(marker, left)
        if not left:
            return
        _signal_all(left, signal.SIGKILL)
        sleep(_STEP)
    left = _left(marker, left)
    if left:
        raise SeamError(f"{len(left)} processes of the session could not be ended")


def _left(marker: str, known: frozenset[Name]) -> frozenset[Name]:
    """What lives of the known and the family by now, with children that came meanwhile."""
    alive = [pid for pid, started in known if started and _started(pid) == started]
    return _with_descendants({*alive, *marked(marker)})


def _with_descendants(pids: Iterable[int]) -> frozenset[Name]:
    """Living processes and everything below them; a zombie is no more, and never are we."""
    waiting = list(pids)
    if not waiting:
        return frozenset()  # as after almost every command; who descends from whom is a long look
    children: dict[int, list[int]] = {}
    for pid in _numbers():
        if fields := _stat(pid):
            children.setdefault(int(fields[1]), []).append(pid)
    found: set[int] = set()
    while waiting:
        pid = waiting.pop()
        if pid not in found and pid != os.getpid():
            found.add(pid)
            waiting += children.get(pid, [])
    return frozenset((pid, started) for pid in found if (started := _started(pid)))


def name_of(pid: int) -> str:
    """A name for a process that no later process of this machine has: boot, id, start time."""
    return f"{boot()}:{pid}:{_started(pid)}"


def is_alive(name: str) -> bool | None:
    """Whether the process with this name still runs; None when it is not one of this machine."""
    its_boot, _, rest = name.partition(":")
    pid, _, started = rest.partition(":")
    if not its_boot or not pid.isdigit():
        return None
    if its_boot != boot():
        return False
    return bool(started) and _started(int(pid)) == started


def boot() -> str:
    """The name of this boot of the machine; empty when the system does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Start time of a process in clock ticks since boot; empty when there is no such process."""
    fields = _stat(pid)
    return "" if not fields or fields[0] == "Z" else fields[19]


def _stat(pid: int) -> list[str]:
    """What the kernel tells of a process: state, parent, …; empty when there is no such process."""
    try:
        told = _read(f"/proc/{pid}/stat").decode(errors="replace")
    except OSError:
        return []
    return told.rpartition(")")[2].split()


def _signal_all(names: Iterable[Name], number: signal.Signals) -> None:
    for pid, _ in names:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
