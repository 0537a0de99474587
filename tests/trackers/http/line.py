"""A real server on a socket that says, byte by byte, what a test wants it to say."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.patience import PATIENCE

Talk = Callable[[socket.socket, bytes], None]


@dataclass
class Line:
    """Where it listens, what it heard, and how many connections were made."""

    port: int
    heard: list[bytes] = field(default_factory=list)
    connections: int = 0

    @property
    def api(self) -> str:
        return f"http://127.0.0.1:{self.port}/api/v1"


@contextmanager
def listening(talk: Talk, tls: ssl.SSLContext | None = None) -> Iterator[Line]:
    """Serve each request by `talk` until the end of the test. It may close the connection."""
    over = threading.Event()
    open_sockets: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        line = Line(server.getsockname()[1])

        def spoken(connection: socket.socket) -> socket.socket:
            if tls is not None:
                with connection:
                    connection = tls.wrap_socket(connection, server_side=True)
            open_sockets.append(connection)
            return connection

        def serve(connection: socket.socket) -> None:
            with contextlib.suppress(OSError), spoken(connection) as connection:
                while (request := _request(connection)) and not over.is_set():
                    line.heard.append(request)
                    talk(connection, request)

        def accept() -> None:
            while not over.is_set():
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                line.connections += 1
                thread = threading.Thread(target=serve, args=(connection,))
                thread.start()
                threads.append(thread)

        threads = [threading.Thread(target=accept)]
        threads[0].start()
        try:
            yield line
        finally:
            over.set()
            server.shutdown(socket.SHUT_RDWR)
            for each in open_sockets:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join(PATIENCE)


def _request(connection: socket.socket) -> bytes:
    """One whole request, or nothing when the other side is gone."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return b""
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    length = next(
        (
            int(each.split(b":")[1])
            for each in head.split(b"\r\n")
            if each.lower().startswith(b"content-length:")
        ),
        0,
    )
    while len(rest) < length:
        rest += connection.recv(65536)
    return head + b"\r\n\r\n" + rest


def reply(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    """An answer with its length."""
    told = "".join(f"{each}\r\n" for each in headers)
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{told}\r\n".encode() + body
