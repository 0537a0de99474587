"""Hears that the timeline has something new: a datagram that carries no data."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

RING_BYTES = 16

logger = logging.getLogger(__name__)


class Ear:
    """This process's datagram socket; calls back for every ring. Without it the poll remains."""

    def __init__(self, path: Path, on_ring: Callable[[], None]) -> None:
        self._path = path
        self._on_ring = on_ring
        self._loop = asyncio.get_running_loop()
        self._box = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._box.setblocking(False)
        try:
            path.unlink(missing_ok=True)
            self._box.bind(str(path))
            path.chmod(0o600)
        except OSError:
            logger.exception("the feed cannot be rung and asks every second instead")
        self._loop.add_reader(self._box.fileno(), self._hear)

    def close(self) -> None:
        self._loop.remove_reader(self._box.fileno())
        self._box.close()
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _hear(self) -> None:
        with suppress(BlockingIOError):
            while True:
                self._box.recv(RING_BYTES)
                self._on_ring()
