"""A scripted model behind the two APIs that real agents speak, on the loopback.

Claude Code asks `POST /v1/messages` (Anthropic Messages API), Codex `POST /v1/responses` (OpenAI
Responses API); both get what the script of the conversation says. A conversation is recognised by
a word in its first message. Every request is kept for tests to look at.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.agents import messages_api, responses_api
from tests.agents.script import Refuse, Say, Script, Step, Wait
from tests.patience import PATIENCE


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: where, its headers, its body, the word of its script (None: no conversation)."""

    path: str
    headers: Mapping[str, str] = field(repr=False)
    body: Mapping[str, Any] = field(repr=False)
    word: str | None = None

    @property
    def text(self) -> str:
        """All that was asked, as text."""
        return json.dumps(self.body, ensure_ascii=False)


class ModelServer:
    """Both APIs on one port of the loopback."""

    def __init__(self) -> None:
        self._scripts: list[Script] = []
        self._asked: list[Asked] = []
        self._lock = threading.Lock()
        self.is_closed = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def script(self, *steps: Step, word: str = "") -> Script:
        """What is answered in conversations whose first message holds the word; the newest wins."""
        made = Script(word, steps)
        with self._lock:
            self._scripts.insert(0, made)
        return made

    def forget(self) -> None:
        """Drop scripts and requests of an earlier test."""
        with self._lock:
            self._scripts.clear()
            self._asked.clear()

    def asked(self, word: str | None = None) -> list[Asked]:
        """The requests of conversations so far, oldest first; of one script, or of all."""
        with self._lock:
            found = [one for one in self._asked if one.word is not None]
        return [one for one in found if word in (None, one.word)]

    def all_asked(self) -> list[Asked]:
        """Every request, those outside conversations included."""
        with self._lock:
            return list(self._asked)

    def close(self) -> None:
        self.is_closed.set()
        self._http.shutdown()
        self._http.server_close()

    def step_for(self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> Step:
        """The answer to a request of an agent; what is no conversation is answered in a word."""
        api = responses_api if path.startswith("/v1/responses") else messages_api
        first = api.first_words(body) if api.is_conversation(body) else None
        with self._lock:
            script = None
            if first is not None:
                script = next((one for one in self._scripts if one.word in first), None)
            self._asked.append(Asked(path, headers, body, script.word if script else None))
        if script is None:
            return Say('{"title": "Work"}')
        step = script.next()
        while isinstance(step, Wait):
            self._wait(step.for_)
            step = script.next()
        return step

    def _wait(self, event: threading.Event) -> None:
        for _ in range(int(PATIENCE / 0.1)):
            if event.wait(0.1) or self.is_closed.is_set():
                return


def _handler(server: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Nothing on the terminal of the tests."""

        def do_HEAD(self) -> None:
            self._answer(200, b"")

        def do_GET(self) -> None:
            is_list = self.path.startswith("/v1/models")
            self._json(200 if is_list else 404, {"object": "list", "data": [], "models": []})

        def do_POST(self) -> None:
            body = self._body()
            path = self.path.partition("?")[0]
            if path == "/v1/messages/count_tokens":
                self._json(200, {"input_tokens": 100})
            elif path in ("/v1/messages", "/v1/responses"):
                self._model(path, body)
            else:
                self._json(404, {"error": {"type": "not_found_error", "message": path}})

        def _model(self, path: str, body: Mapping[str, Any]) -> None:
            step = server.step_for(path, dict(self.headers), body)
            api = responses_api if path == "/v1/responses" else messages_api
            if isinstance(step, Refuse):
                self._json(step.status, api.error(step), step.headers)
            elif body.get("stream"):
                self._stream(api.events(step, body))
            else:
                self._json(200, api.whole(step, body))

        def _body(self) -> Mapping[str, Any]:
            size = int(self.headers.get("Content-Length") or 0)
            try:
                said = json.loads(self.rfile.read(size) or b"{}")
            except ValueError:
                return {}
            return said if isinstance(said, dict) else {}

        def _json(
            self, status: int, said: Mapping[str, Any], headers: Mapping[str, str] | None = None
        ) -> None:
            self._answer(
                status,
                json.dumps(said).encode(),
                {"Content-Type": "application/json", **(headers or {})},
            )

        def _stream(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
            text = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)
            self._answer(200, text.encode(), {"Content-Type": "text/event-stream"})

        def _answer(
            self, status: int, body: bytes, headers: Mapping[str, str] | None = None
        ) -> None:
            with contextlib.suppress(OSError):  # an agent that was ended hears no answer
                self.send_response(status)
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

    return Handler


@contextlib.contextmanager
def running() -> Iterator[ModelServer]:
    """A server for as long as it is needed."""
    server = ModelServer()
    try:
        yield server
    finally:
        server.close()
