"""A web process that nobody uses ends, and the next connection starts one again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.house.product import ROOT, Product, until
from tests.patience import PATIENCE

pytestmark = pytest.mark.real

# Each case is looked at for three minutes of a clock that is moved; the idle time is one minute.
RULE = """
import asyncio, json, sys
from labsite.web import idle
from twisted.internet import tcp
from twisted.internet.task import Clock

class Reactor(Clock):
    def __init__(self, readers):
        super().__init__()
        self.readers = readers
    def getReaders(self):
        return self.readers
    def getWriters(self):
        return []

class Port(tcp.Port):
    def __init__(self):
        self.is_reading = True
    def stopReading(self):
        self.is_reading = False
    def startReading(self):
        self.is_reading = True

async def stopped_after(
    is_used=False, is_silent=False, is_connected_at=0, has_runs=False, is_connected_late=False
):
    port = Port()
    idle.reactor = Reactor([port] + [tcp.Server.__new__(tcp.Server)] * is_silent)

    def has_active_runs():
        if is_connected_late:
            idle.reactor.readers.append(tcp.Server.__new__(tcp.Server))
        return has_runs

    idle.has_active_runs = has_active_runs
    server = idle.IdleServer(None, endpoints=["none"])
    server.connections = {"protocol": {}} if is_used else {}
    server.idle_seconds, stopped = 60, []
    server.stop = lambda: stopped.append(idle.reactor.seconds())
    server.watch()
    for second in range(1, 181):
        if second == is_connected_at:
            server.protocol_connected("short")
            server.connections.clear()
        idle.reactor.advance(1)
        if getattr(server, "_asking", None):
            await server._asking
            server._asking = None
    assert port.is_reading is not bool(stopped)
    return stopped

cases = json.loads(sys.argv[1])
print(json.dumps([asyncio.run(stopped_after(**case)) for case in cases]))
"""
CASES: dict[str, tuple[dict[str, object], list[float]]] = {
    "nobody came": ({}, [60.0]),
    "somebody came in between": ({"is_connected_at": 45}, [104.0]),
    "a page is open": ({"is_used": True}, []),
    "a connection that has asked nothing yet": ({"is_silent": True}, []),
    "somebody connects while it is about to end": ({"is_connected_late": True}, []),
    "runs are under way, whose agents ask": ({"has_runs": True}, []),
}


def test_a_web_process_ends_once_nobody_uses_it() -> None:
    asked = json.dumps([case for case, _ in CASES.values()])
    done = subprocess.run(
        [sys.executable, "-c", RULE, asked],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    stopped = dict(zip(CASES, json.loads(done.stdout), strict=True))
    assert stopped == {name: expected for name, (_, expected) in CASES.items()}


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_next_connection_starts_one_again(start: Callable[..., Product], host: str) -> None:
    product = start("--port", "0", "--host", host, LAB_WEB_IDLE_SECONDS="1")
    first = product.children().get("web")
    until(lambda: set(product.children()) == {"worker"}, told=lambda: product.log)
    said = product.log
    for _ in range(2):
        assert product.get("/login/") == 200
        assert product.children()["web"] != first
        until(lambda: set(product.children()) == {"worker"}, told=lambda: product.log)
    assert product.log == said, "nothing about it has to be read by anybody"
    product.press_ctrl_c()
    assert product.wait() == 0
