"""Answers `labctl` in a trial: a small server on the loopback that knows one issue and one branch.

A trial has no project and no run, so the product's own agent API knows nothing of it.
"""

from __future__ import annotations

import hmac
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from runs.core.ports import SeamError

KEY, TITLE = "1", "Add a file with one line"
BODY = "Make a file named hello.txt with one line in it. Nothing else: this is a trial."
BODY_BYTES = 100_000
MOST_ASKED = 200
_ISSUE: Mapping[str, Any] = {
    **{"key": KEY, "title": TITLE, "body": BODY, "is_open": True},
    **{"labels": ["ready-for-agent"], "author": "labsite", "comments": []},
}


class TrialDesks:
    """`Desks` on this machine."""

    def open(self, token: str, branch: str, is_pushed: Callable[[], bool]) -> TrialDesk:
        try:
            return TrialDesk(token, branch, is_pushed)
        except OSError as error:
            raise SeamError(f"nothing could listen on the loopback: {error.strerror}") from error


class TrialDesk:
    """`Desk` on a free port of the loopback, in threads of its own."""

    def __init__(self, token: str, branch: str, is_pushed: Callable[[], bool]) -> None:
        self._token, self._branch, self._is_pushed = token, branch, is_pushed
        self._lock = threading.Lock()
        self._asked: list[str] = []
        self._pull: dict[str, Any] | None = None
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def asked(self) -> Sequence[str]:
        with self._lock:
            return tuple(self._asked)

    def has_pull(self) -> bool:
        with self._lock:
            return self._pull is not None

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(
        self, method: str, path: str, token: str, sent: Mapping[str, Any]
    ) -> tuple[int, Any]:
        """Status and content of the answer to one request."""
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            return 401, {"text": "This token is not valid."}
        with self._lock:
            if len(self._asked) < MOST_ASKED:
                self._asked.append(f"{method} {path}")
        match method, path:
            case "GET", "/agent/issues":
                return 200, {"issues": [_ISSUE]}
            case "GET", "/agent/issues/1":
                return 200, _ISSUE
            case "POST", "/agent/issues/1/comments":
                return 201, {"key": KEY}
            case "POST", "/agent/pull":
                return self._open_pull(sent)
            case "GET", "/agent/pull" if self._pull is not None:
                return 200, self._pull
        return 404, {"text": f"There is no {path[:60]} in a trial."}

    def _open_pull(self, sent: Mapping[str, Any]) -> tuple[int, Any]:
        try:
            is_pushed = self._is_pushed()
        except SeamError as error:
            return 503, {"text": f"git did not answer: {error}"}
        if not is_pushed:
            text = f"Push {self._branch} with a commit first: git push origin {self._branch}"
            return 409, {"text": text}
        made = {
            **{"number": 1, "title": str(sent.get("title", ""))[:200], "state": "open"},
            **{"head": self._branch, "base": "main", "url": "", "comments": []},
            "body": str(sent.get("body", ""))[:2000],
        }
        with self._lock:
            self._pull = made
        return 201, made


def _handler(desk: TrialDesk) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 30

        def log_message(self, *_: object) -> None:
            """Nothing: the trial tells what was asked."""

        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "0")
            size = int(length) if length.isdigit() else 0
            data = self.rfile.read(min(size, BODY_BYTES))
            try:
                sent = json.loads(data or b"{}")
            except ValueError:
                sent = None
            self._answer(sent if isinstance(sent, dict) else {})

        def _answer(self, sent: Mapping[str, Any]) -> None:
            token = self.headers.get("Authorization", "").removeprefix("Bearer ").strip()
            status, content = desk.answer(self.command, self.path, token, sent)
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler
