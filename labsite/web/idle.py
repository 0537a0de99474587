"""Ends a web process that nobody uses; the next connection starts one again (socket activation).

The supervisor listens and hands its socket down, so that a connection waits in the kernel while no
web process is there. At rest none of the memory and of the wake-ups of a web server are taken.
Published by systemd as socket activation: systemd.socket(5).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import sys
from typing import Any

from asgiref.sync import sync_to_async
from twisted.internet import tcp
from twisted.internet.endpoints import AdoptedStreamServerEndpoint

from labsite.programs import IDLE_STATUS
from labsite.web.bounds import CommandLineInterface, reactor, server

_DESCRIPTOR = "fd:fileno="

logger = logging.getLogger(__name__)
_Adopted: Any = AdoptedStreamServerEndpoint  # has no types
_by_description = server.serverFromString


class IdleServer(server.Server):  # type: ignore[misc]  # daphne has no types
    """daphne's server, which stops once nobody was connected for a time and no run is under way.

    While runs are under way their agents ask it, and should not wait for it to start.
    """

    idle_seconds = 0.0  # 0: it never stops
    has_stopped_idle = False
    _used_at = 0.0  # by the reactor's clock

    def run(self) -> None:
        """Serve until a signal, or until nobody has used it."""
        if self.idle_seconds:
            self.watch()
        super().run()

    def watch(self) -> None:
        """Look, from now on, whether nobody has used it for the idle time."""
        self._used_at = reactor.seconds()
        reactor.callLater(self.idle_seconds, self._look)

    def protocol_connected(self, protocol: Any) -> None:
        self._used_at = reactor.seconds()
        super().protocol_connected(protocol)

    def protocol_disconnected(self, protocol: Any) -> None:
        self._used_at = reactor.seconds()
        super().protocol_disconnected(protocol)

    def _look(self) -> None:
        now = reactor.seconds()
        if self._is_used():
            self._used_at = now
        left = self._used_at + self.idle_seconds - now
        if left > 0:
            reactor.callLater(left, self._look)
        else:
            self._asking = asyncio.ensure_future(self._stop_unless_needed())

    def _is_used(self) -> bool:
        """Whether somebody is connected; one who has asked nothing yet is known to the reactor alone."""
        return bool(self.connections) or any(
            isinstance(one, tcp.Server) for one in (*reactor.getReaders(), *reactor.getWriters())
        )

    async def _stop_unless_needed(self) -> None:
        is_needed = await sync_to_async(has_active_runs)()
        ports: list[Any] = [one for one in reactor.getReaders() if isinstance(one, tcp.Port)]
        for port in ports:
            port.stopReading()
        if is_needed or self._is_used():
            for port in ports:
                port.startReading()
            self.watch()
        else:
            self.has_stopped_idle = True
            self.stop()


class CommandLine(CommandLineInterface):  # type: ignore[misc]
    """daphne's own command, which may stop while nobody uses it."""

    server_class = IdleServer

    def __init__(self) -> None:
        super().__init__()
        self.parser.add_argument("--idle-seconds", type=float, default=0.0)

    def run(self, args: list[str]) -> None:
        """Serve. Raises SystemExit with IDLE_STATUS when it ended because nobody used it."""
        IdleServer.idle_seconds = self.parser.parse_args(args).idle_seconds
        super().run(args)
        if self.server.has_stopped_idle:
            sys.exit(IDLE_STATUS)


def install() -> None:
    """Have daphne take a listening socket of either version; its own parser knows version 4 alone."""
    server.serverFromString = _endpoint


def has_active_runs() -> bool:
    """Whether a run is under way; also when that could not be told."""
    from django.db import DatabaseError, InterfaceError, connections

    from runs.models import Run

    try:
        return Run.objects.active().exists()
    except (DatabaseError, InterfaceError) as error:
        logger.warning("active runs could not be counted", extra={"error": str(error)})
        return True
    finally:
        with contextlib.suppress(DatabaseError, InterfaceError):
            connections.close_all()


def _endpoint(reactor: Any, description: str) -> Any:
    if not description.startswith(_DESCRIPTOR):
        return _by_description(reactor, description)
    handle = int(description.removeprefix(_DESCRIPTOR))
    with socket.socket(fileno=os.dup(handle)) as twin:
        family = twin.family
    return _Adopted(reactor, handle, family)
