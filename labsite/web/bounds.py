"""Bounds the body of a request by size and time while it arrives.

Twisted takes in a body whole, and daphne puts all of it into memory, before any of our code sees
the request. So whoever can reach the port, logged in or not, could fill the machine's memory.
"""

from __future__ import annotations

import logging
from io import BytesIO
from typing import Any

from labsite.loading import without
from labsite.web import libraries  # noqa: F401  (first, since it says how they are loaded)

with without("OpenSSL"):
    from daphne import (
        server as server,  # installs the reactor, so it comes before whatever asks for one
    )
    from daphne.cli import CommandLineInterface as CommandLineInterface
    from daphne.http_protocol import HTTPFactory, WebRequest
    from twisted.internet import reactor as _reactor

MOST_BYTES = 4 * 1024 * 1024  # twice what Django lets a form have, which has the better words
MOST_SECONDS = 60.0
LINGER_SECONDS = 5.0

_TOO_LARGE = (413, "Content Too Large", f"A request has at most {MOST_BYTES >> 20} MB.")
_TOO_SLOW = (408, "Request Timeout", f"A request has to arrive within {MOST_SECONDS:g} seconds.")

logger = logging.getLogger(__name__)
reactor: Any = _reactor  # a module to the type checker, and the event loop in fact


class BoundedRequest(WebRequest):  # type: ignore[misc]  # daphne has no types
    """A request that is refused as soon as its body is too large or takes too long."""

    _taken = 0
    _is_refused = False
    _late: Any = None

    def gotLength(self, length: int | None) -> None:  # noqa: N802  (Twisted's name)
        """The headers are there, and say how long the body is: None when it comes in chunks."""
        if length is not None and length > MOST_BYTES:
            self._refuse(*_TOO_LARGE)
            return
        super().gotLength(length)
        if length != 0:
            self._late = reactor.callLater(MOST_SECONDS, self._refuse, *_TOO_SLOW)

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802
        """A piece of the body."""
        self._taken += len(data)
        if not self._is_refused and self._taken > MOST_BYTES:
            self._refuse(*_TOO_LARGE)
        if not self._is_refused:
            super().handleContentChunk(data)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:  # noqa: N802
        """The body is complete."""
        self._forget_late()
        if not self._is_refused:
            super().requestReceived(command, path, version)

    def connectionLost(self, reason: Any) -> None:  # noqa: N802
        self._forget_late()
        super().connectionLost(reason)

    def _refuse(self, status: int, name: str, text: str) -> None:
        """Answer at once and close; what still arrives is thrown away for a moment.

        Without that moment the answer is lost: closing on unread data resets the connection.
        """
        self._forget_late()
        self._is_refused = True
        self.content = BytesIO()
        logger.warning("request was refused", extra={"status": status})
        transport = self.channel.transport
        body = f"{text} Nothing was done.\n".encode()
        head = (
            f"HTTP/1.1 {status} {name}\r\nContent-Type: text/plain; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        transport.write(head.encode() + body)
        transport.loseWriteConnection()
        reactor.callLater(LINGER_SECONDS, transport.abortConnection)

    def _forget_late(self) -> None:
        if self._late is not None and self._late.active():
            self._late.cancel()
        self._late = None


class BoundedFactory(HTTPFactory):  # type: ignore[misc]  # daphne has no types
    """daphne's factory with bounded requests, and without Twisted's own log, which nobody reads."""

    def buildProtocol(self, addr: Any) -> Any:  # noqa: N802
        protocol = super().buildProtocol(addr)
        protocol.requestFactory = BoundedRequest
        return protocol

    def log(self, request: WebRequest) -> None:
        """Makes no line of a request."""

    def _updateLogDateTime(self) -> None:  # noqa: N802
        """Asks for no time each second, as lines of that log would need."""


def install() -> None:
    """Have daphne make bounded requests; it takes its factory by name and has no argument for it."""
    server.HTTPFactory = BoundedFactory
