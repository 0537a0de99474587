"""The notifier: the fake and Apprise in its child process answer alike."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from runs.core.ports import SeamError, UnfitAddress
from runs.notices.notifier import AppriseNotifier
from runs.notices.rules import Notifier
from tests.fakes import FakeNotifier
from tests.patience import PATIENCE


class Listener:
    """A program on this machine that is told things over HTTP."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str, Any]] = []
        self.status = 200
        self.hangs = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.heard.append(("POST", self.path, json.loads(body)))
                self._answer()

            def do_GET(self) -> None:
                outer.heard.append(("GET", self.path, None))
                self._answer()

            def _answer(self) -> None:
                if outer.status == 0:
                    # One byte now and then: each alone is within any time limit of a socket.
                    self.wfile.write(b"HTTP/1.1 200 OK\r\n")
                    while not outer.hangs.wait(0.3):
                        self.wfile.write(b"X-Slow: 1\r\n")
                    return
                self.send_response(outer.status)
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.at = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.hangs.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.close()


@pytest.fixture(params=["fake", pytest.param("real", id="apprise", marks=pytest.mark.real)])
def notifier(request: pytest.FixtureRequest) -> Notifier:
    return FakeNotifier() if request.param == "fake" else AppriseNotifier(os.environ, PATIENCE)


def test_an_address_names_its_service(notifier: Notifier) -> None:
    assert notifier.check("json://127.0.0.1:1/x") == "JSON"


def test_what_is_told_arrives_and_a_ping_is_heard(notifier: Notifier, listener: Listener) -> None:
    notifier.send(f"json://{listener.at}/hook", "demo #7: died", "exit status 3")
    notifier.ping(f"http://{listener.at}/ping/abc")
    if isinstance(notifier, FakeNotifier):
        assert notifier.told[0][1:] == ("demo #7: died", "exit status 3")
        assert notifier.pinged == [f"http://{listener.at}/ping/abc"]
        return
    (post, ping) = listener.heard
    assert post[:2] == ("POST", "/hook")
    assert (post[2]["title"], post[2]["message"]) == ("demo #7: died", "exit status 3")
    assert ping == ("GET", "/ping/abc", None)


@pytest.mark.parametrize("url", ["", "nonsense", "bogus://host/secret77", "file:///etc/passwd"])
def test_an_address_that_can_never_work_is_unfit(notifier: Notifier, url: str) -> None:
    for ask in (lambda: notifier.check(url), lambda: notifier.send(url, "t", "x")):
        with pytest.raises(UnfitAddress) as said:
            ask()
        assert "secret77" not in str(said.value)
    with pytest.raises(UnfitAddress):
        notifier.ping(url)


@pytest.fixture
def real() -> Notifier:
    return AppriseNotifier(os.environ, PATIENCE)


@pytest.mark.row("X-05", level="real")
def test_a_refusal_is_told_without_the_address(real: Notifier, listener: Listener) -> None:
    listener.status = 404
    with pytest.raises(SeamError) as refused:
        real.send(f"json://user77:secret77@{listener.at}/token77", "t", "x")
    with pytest.raises(SeamError) as unreached:
        real.send("json://127.0.0.77:1/token77", "t", "x")
    with pytest.raises(SeamError) as unheard:
        real.ping(f"http://{listener.at}/token77")
    assert "404" in str(refused.value)
    assert "404" in str(unheard.value)
    for error in (refused, unheard):
        assert not isinstance(error.value, UnfitAddress)
    for error in (refused, unreached, unheard):
        for part in ("user77", "secret77", "token77", "127.0.0.77", listener.at):
            assert part not in str(error.value)


@pytest.mark.real
def test_a_service_that_drips_is_given_up_and_leaves_no_process(listener: Listener) -> None:
    listener.status = 0
    quick = AppriseNotifier(os.environ, 3.0)
    for ask in (
        lambda: quick.send(f"json://{listener.at}/x", "t", "x"),
        lambda: quick.ping(f"http://{listener.at}/x"),
    ):
        began = time.monotonic()
        with pytest.raises(SeamError, match="no answer within 3 seconds"):
            ask()
        assert time.monotonic() - began < 60


def test_nobody_there_is_an_error_to_try_again(real: Notifier) -> None:
    with pytest.raises(SeamError) as error:
        real.send("json://127.0.0.1:1/x", "t", "x")
    assert not isinstance(error.value, UnfitAddress)
