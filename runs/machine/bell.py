"""Rings other processes through Unix datagrams. A ring carries no data and may get lost."""

from __future__ import annotations

import socket
from pathlib import Path

from runs.core.paths import Paths


class DatagramBell:
    """The `Bell` of one machine. Never raises and never waits: losing a ring costs only time."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def timeline(self) -> None:
        """Ring every web process, and tidy the sockets that a killed one left behind."""
        _ring_all(self._paths.feed)

    def work(self, host: str = "") -> None:
        """Wake every worker that is idle: there is something on the queue. No other host is known."""
        if host:
            return
        _ring(self._paths.worker_socket, b"")
        _ring_all(self._paths.more_worker_socket(0).parent)

    def look(self, project: str) -> None:
        """Ask the worker for a tick of one project now; silent when no worker listens."""
        _ring(self._paths.worker_socket, project.encode())


def is_heard(path: Path) -> bool:
    """Whether a process listens on a socket, such as the worker that ticks."""
    return path.exists() and _ring(path, b"")


def _ring_all(folder: Path) -> None:
    """Ring each process that has a socket in a folder, and tidy the sockets of killed ones."""
    try:
        sockets = sorted(folder.glob("*.sock"))
    except OSError:
        return
    for path in sockets:
        if not _ring(path, b""):
            _remove(path)


def _ring(path: Path, text: bytes) -> bool:
    """Send one datagram. False only when nobody owns the socket any more.

    A full mailbox is as good as a delivered ring, since its owner wakes anyway.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        try:
            sender.sendto(text, str(path))
        except ConnectionRefusedError:
            return False
        except OSError:
            return True
    return True


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return
