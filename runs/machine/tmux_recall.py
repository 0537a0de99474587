"""Finds a tmux server again whose socket is gone: it still holds the agents that it started.

Without its socket tmux says "no server", which would read as "every session has ended".
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket as sockets
import time
from collections.abc import Callable
from pathlib import Path

from runs.core.ports import SeamError

TITLE = "tmux: server"
STEP = 0.02
STEPS = 150  # a server that is just being started may need that on a busy machine
ENDING_STEPS = 25  # a server that ends itself closes its socket a moment before it is gone


def recall(socket: Path, pause: Callable[[float], None] = time.sleep) -> bool:
    """Whether a server of this socket lives and answers; False when there is none.

    A server is asked by SIGUSR1 to make its socket again. Raises SeamError when one lives that
    cannot be reached: then nobody knows which sessions are alive.
    """
    for step in range(STEPS):
        servers = living(socket)
        if not servers:
            return False
        if _answers(socket):
            return True
        if step == ENDING_STEPS and socket.parent.is_dir():
            _ask_for_socket(servers)
        pause(STEP)
    raise SeamError(
        f"the tmux server still runs, but its socket {socket} is gone, so its sessions cannot be "
        "reached; they go on"
    )


def is_absent(socket: Path) -> bool:
    """Return whether no server was started on a socket; False where that is not certain.

    It starts no program, so that a machine at rest pays little for knowing it.
    """
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as door:
        door.setblocking(False)
        try:
            door.connect(str(socket))
        except (FileNotFoundError, ConnectionRefusedError):
            return not living(socket)
        except OSError:
            return False
        return False


def living(socket: Path, proc: str = "/proc") -> list[int]:
    """Process ids of this user's tmux servers that were started on a socket."""
    title, wanted = TITLE.encode(), b"\0-S\0" + os.fsencode(socket) + b"\0"
    found = []
    for name in os.listdir(proc):  # noqa: PTH208 (see `_read`)
        if not name.isdigit():
            continue
        folder = f"{proc}/{name}"
        with contextlib.suppress(OSError):
            # The title first: it takes less to read, and nearly no process has it.
            if (
                _read(f"{folder}/comm").strip() == title
                and wanted in _read(f"{folder}/cmdline")
                and Path(folder).stat().st_uid == os.getuid()
            ):
                found.append(int(name))
    return found


def _read(path: str) -> bytes:
    """Return what a small file holds; `Path` takes ten times as long. Raises OSError."""
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(opened, 65536)
    finally:
        os.close(opened)


def _answers(socket: Path) -> bool:
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as door:
        door.setblocking(False)
        try:
            door.connect(str(socket))
        except BlockingIOError:
            return True  # it has a queue of callers, so somebody listens
        except OSError:
            return False
        return True


def _ask_for_socket(servers: list[int]) -> None:
    for pid in servers:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGUSR1)
