"""The double on a real socket, so that several processes and real HTTP can meet it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.trackers.forge.asking import Asked, Dropped, Told


@contextmanager
def serving(answer: Callable[[Asked], Told]) -> Iterator[str]:
    """Serve until the block ends; gives "http://127.0.0.1:<port>"."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            size = int(self.headers.get("content-length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(size)
            try:
                self.send(answer(Asked(self.command, self.path, headers, body)))
            except (Dropped, ConnectionError):
                self.close_connection = True

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = do_HEAD = handle_any  # noqa: N815

        def send(self, told: Told) -> None:
            self.send_response(told.status)
            for name, value in told.headers.items():
                self.send_header(name, value)
            if told.status not in (204, 304):
                self.send_header("content-length", str(len(told.body)))
            self.end_headers()
            for piece in told.pieces():
                self.wfile.write(piece)
                self.wfile.flush()

        def log_message(self, format: str, *args: object) -> None:
            """Tests read the double's own log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
