"""A small WebSocket client on a plain socket, so that a test sees exactly what a browser would."""

from __future__ import annotations

import base64
import json
import os
import socket
import struct
import time
from typing import Any

from tests.patience import PATIENCE

TEXT, CLOSE, PING, PONG = 0x1, 0x8, 0x9, 0xA


class Refused(Exception):
    """The server did not open the socket; `status` is its HTTP status."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status


class Closed(Exception):
    """The server closed the socket with a code, or just went away (code 0)."""

    def __init__(self, code: int) -> None:
        super().__init__(f"closed with {code}")
        self.code = code


class SocketClient:
    """One open page as the server sees it. Raises Refused."""

    def __init__(
        self, port: int, topic: str, cookie: str = "", *, origin: str | None = None
    ) -> None:
        self._rest = b""
        self._taken = b""
        self._tcp = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        here = f"127.0.0.1:{port}"
        lines = [
            f"GET /ws/{topic} HTTP/1.1",
            f"Host: {here}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
            "Sec-WebSocket-Version: 13",
            f"Origin: {origin if origin is not None else f'http://{here}'}",
            f"Cookie: lab_session={cookie}",
        ]
        self._tcp.sendall("\r\n".join([*lines, "", ""]).encode())
        head = self._until(b"\r\n\r\n").decode()
        status = int(head.split()[1])
        if status != 101:
            self.drop()
            raise Refused(status)

    def hello(self, last: int | None) -> SocketClient:
        """Say what the page shows."""
        self._write(TEXT, json.dumps({"last": last}).encode())
        return self

    def frame(self, seconds: float = PATIENCE) -> dict[str, Any]:
        """The next frame. Raises Closed, and TimeoutError when none comes."""
        until = time.monotonic() + seconds  # whatever else comes: a silent socket answers pings
        while (left := until - time.monotonic()) > 0:
            self._tcp.settimeout(left)
            kind, body = self._read()
            if kind == TEXT:
                return json.loads(body)
            if kind == PING:
                self._write(PONG, body)
            if kind == CLOSE:
                self.drop()
                raise Closed(struct.unpack("!H", body[:2])[0])
        raise TimeoutError

    def silence(self, seconds: float) -> bool:
        """Whether nothing comes for a while."""
        try:
            self.frame(seconds)
        except TimeoutError:
            return True
        return False

    @property
    def handle(self) -> socket.socket:
        """For a reader that waits for many pages at once."""
        return self._tcp

    def drop(self) -> None:
        """Go away without a word, as a closed laptop does."""
        self._tcp.close()

    def __enter__(self) -> SocketClient:
        return self

    def __exit__(self, *exc: object) -> None:
        self.drop()

    def _write(self, kind: int, body: bytes) -> None:
        assert len(body) < 126
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(body))
        self._tcp.sendall(bytes([0x80 | kind, 0x80 | len(body)]) + mask + masked)

    def _read(self) -> tuple[int, bytes]:
        """One whole frame; what had come of it before a timeout is read again next time."""
        self._taken = b""
        try:
            return self._read_frame()
        except TimeoutError:
            self._rest = self._taken + self._rest
            raise

    def _read_frame(self) -> tuple[int, bytes]:
        first, second = self._take(2)
        length = second & 0x7F
        if length == 126:
            length = struct.unpack("!H", self._take(2))[0]
        elif length == 127:
            length = struct.unpack("!Q", self._take(8))[0]
        return first & 0x0F, self._take(length)

    def _take(self, count: int) -> bytes:
        while len(self._rest) < count:
            self._more()
        taken, self._rest = self._rest[:count], self._rest[count:]
        self._taken += taken
        return taken

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._rest:
            self._more()
        head, _, self._rest = self._rest.partition(mark)
        return head

    def _more(self) -> None:
        try:
            read = self._tcp.recv(65536)
        except ConnectionResetError:
            read = b""
        if not read:
            raise Closed(0)
        self._rest += read
