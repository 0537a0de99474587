"""What anybody may send to the real web process before it knows who that is."""

from __future__ import annotations

import contextlib
import socket
import sys
from pathlib import Path

import pytest

from labsite import programs
from tests import databases
from tests.patience import PATIENCE
from tests.web.daphne_fixture import Served

HEAD = "POST /login/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
HURRIED = """
import runpy
from labsite.web import bounds
bounds.MOST_SECONDS = 0.3
runpy.run_module("labsite.web", run_name="__main__", alter_sys=True)
"""


@pytest.fixture(scope="module")
def served(once_served: Served) -> Served:
    return once_served


def _memory(pid: int) -> int:
    """The most that a process ever had in memory, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def _answer(tcp: socket.socket) -> str:
    said = b""
    while piece := tcp.recv(65536):
        said += piece
    return said.decode()


def _send(tcp: socket.socket, piece: bytes, times: int) -> None:
    """As much of it as the other side takes."""
    try:
        for _ in range(times):
            tcp.sendall(piece)
    except OSError:
        return


def test_a_body_that_is_announced_as_too_large_is_refused_before_it_is_sent(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE) as tcp:
        tcp.sendall(f"{HEAD}Content-Length: 3000000000\r\n\r\n".encode())
        said = _answer(tcp)
    assert said.startswith("HTTP/1.1 413 ")
    assert "A request has at most 4 MB. Nothing was done." in said


@pytest.mark.parametrize("head", ["Content-Length: 200000000", "Transfer-Encoding: chunked"])
def test_whatever_is_sent_all_the_same_costs_no_memory(served: Served, head: str) -> None:
    piece, end = b"x" * 1_000_000, b""
    if "chunked" in head:
        piece, end = b"%x\r\n%s\r\n" % (len(piece), piece), b"0\r\n\r\n"
    before = _memory(served.web_pid)
    with socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE) as tcp:
        tcp.sendall(f"{HEAD}{head}\r\n\r\n".encode())
        _send(tcp, piece, 200)
        _send(tcp, end, 1)
        with contextlib.suppress(OSError):
            tcp.recv(100)
    assert served.is_up()
    assert _memory(served.web_pid) - before < 40_000_000


def test_a_body_that_does_not_come_to_its_end_is_refused_after_a_while(
    prepared_state: Path, tmp_path: Path
) -> None:
    served = Served(databases.copy(prepared_state, tmp_path / "state"))
    hurried = [sys.executable, "-c", HURRIED, *programs.web_argv("127.0.0.1", served.port)[3:]]
    try:
        served.start(hurried)
        with socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE) as tcp:
            tcp.sendall(f"{HEAD}Content-Length: 100\r\n\r\nusername=".encode())
            assert _answer(tcp).startswith("HTTP/1.1 408 ")
        assert served.is_up()
    finally:
        served.close()


def test_a_form_of_three_megabytes_is_refused_in_the_words_of_a_page(served: Served) -> None:
    body = b"a=" + b"x" * 3_000_000
    with socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE) as tcp:
        tcp.sendall(
            f"{HEAD}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        )
        said = _answer(tcp)
    assert said.startswith("HTTP/1.1 4")
    assert "at most 4 MB" not in said
