"""What the command does while labsite is away, and what it never shows: real processes and sockets."""

from __future__ import annotations

import http.server
import json
import resource
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labctl import http_call
from labctl.client import PATIENCE, Client, Failed
from tests.labctl.session import COMMAND, Session
from tests.ports import free_port

pytestmark = pytest.mark.real

ISSUES = {"issues": [{"key": "1", "title": "One", "labels": []}]}


class Stub(http.server.ThreadingHTTPServer):
    """Answers each request with the next of its answers, the last one for ever."""

    def __init__(self, *answers: tuple[int, Any], port: int = 0) -> None:
        self.answers = list(answers)
        self.seen: list[tuple[str, str]] = []
        super().__init__(("127.0.0.1", port), Handler)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    server: Stub

    def do_GET(self) -> None:
        self.server.seen.append((self.path, self.headers["Authorization"]))
        status, answer = self.server.answers[0]
        if len(self.server.answers) > 1:
            self.server.answers.pop(0)
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path / "session", token="the-secret-token")


@pytest.fixture
def servers() -> Iterator[list[Stub]]:
    made: list[Stub] = []
    yield made
    for server in made:
        server.close()


def test_a_restart_on_another_port_strands_nobody(session: Session, servers: list[Stub]) -> None:
    session.address.write_text(f"http://127.0.0.1:{free_port()}\n")
    process = session.start("issue", "list")
    assert process.stderr is not None
    first = process.stderr.readline()

    servers.append(Stub((200, ISSUES)))
    session.address.write_text(servers[0].url)
    out, rest = process.communicate(timeout=120)

    assert "labsite does not answer just now. Trying again for two minutes." in first
    assert (process.returncode, out, rest) == (0, "#1\tOne\n", "")


def test_a_missing_address_is_waited_for_too(session: Session, servers: list[Stub]) -> None:
    process = session.start("issue", "list")
    assert process.stderr is not None
    assert "address of labsite is not known" in process.stderr.readline()
    servers.append(Stub((200, ISSUES)))
    session.address.write_text(servers[0].url)
    assert process.communicate(timeout=120)[0] == "#1\tOne\n"


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_server_that_could_not_just_now_is_asked_again(
    session: Session, servers: list[Stub], status: int
) -> None:
    servers.append(Stub((status, {"text": "git is away."}), (200, ISSUES)))
    session.address.write_text(servers[0].url)

    said = session.run("issue", "list")

    assert (said.code, said.out) == (0, "#1\tOne\n")
    assert said.err == "git is away. Trying again for two minutes.\n"


def test_a_stranger_on_the_old_port_is_no_answer(session: Session, servers: list[Stub]) -> None:
    servers.append(Stub((404, b"<h1>not labsite</h1>"), (200, b"[]"), (200, ISSUES)))
    session.address.write_text(servers[0].url)

    said = session.run("issue", "list")

    assert (said.code, said.out) == (0, "#1\tOne\n")
    assert "Something else answered" in said.err


def test_a_refusal_is_not_asked_again(session: Session, servers: list[Stub]) -> None:
    servers.append(Stub((409, {"code": "refused", "text": "No.\x1b[2J"})))
    session.address.write_text(servers[0].url)

    said = session.run("issue", "list")

    assert (said.code, said.out, said.err) == (1, "", "labctl: No.[2J\n")
    assert len(servers[0].seen) == 1


def test_after_two_minutes_it_gives_up_with_growing_delays(tmp_path: Path) -> None:
    now, slept = [0.0], []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    client = Client(tmp_path / "nowhere", "t", clock=lambda: now[0], sleep=sleep)
    with pytest.raises(Failed, match="Gave up after two minutes"):
        client.call("GET", "/agent/issues")

    assert sum(slept) == pytest.approx(PATIENCE)
    assert slept[:6] == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0]
    assert max(slept) == 5.0
    assert len(slept) < 40


@pytest.mark.row("X-05", level="real")
def test_the_token_is_sent_and_shown_nowhere(session: Session, servers: list[Stub]) -> None:
    session.address.write_text(f"http://127.0.0.1:{free_port()}")
    process = session.start("issue", "list")
    assert process.stderr is not None
    process.stderr.readline()
    seen = (
        Path(f"/proc/{process.pid}/cmdline").read_bytes()
        + Path(f"/proc/{process.pid}/environ").read_bytes()
    )
    assert b"labctl" in seen
    assert b"the-secret-token" not in seen

    servers.append(Stub((200, ISSUES)))
    session.address.write_text(servers[0].url)
    out, err = process.communicate(timeout=120)

    assert servers[0].seen == [("/agent/issues", "Bearer the-secret-token")]
    assert "the-secret-token" not in out + err


def test_a_reader_that_has_seen_enough_is_no_error(session: Session, servers: list[Stub]) -> None:
    many = {"issues": [{"key": str(n), "title": "x" * 200, "labels": []} for n in range(5000)]}
    servers.append(Stub((200, many)))
    session.address.write_text(servers[0].url)
    process = session.start("issue", "list")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.wait(120)
    process.stderr.close()


# wake


@pytest.fixture
def box(session: Session) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(str(session.socket))
        made.settimeout(120)
        yield made


def test_wake_sends_the_project_as_one_datagram(session: Session, box: socket.socket) -> None:
    assert session.run("wake").code == 0
    assert box.recv(1000) == b"demo"
    assert session.run("wake", "other").code == 0
    assert box.recv(1000) == b"other"


def test_wake_works_for_the_hook_that_has_no_environment(
    session: Session, box: socket.socket
) -> None:
    done = subprocess.run(
        [*COMMAND, "wake", "--socket", str(session.socket), "demo"], env={}, check=False
    )
    assert done.returncode == 0
    assert box.recv(1000) == b"demo"


def test_wake_is_content_when_nobody_listens(session: Session, tmp_path: Path) -> None:
    (tmp_path / "a-file").touch()
    for path in (session.socket, tmp_path / "a-file", tmp_path / ("x" * 200)):
        said = session.run("wake", "--socket", str(path), "demo")
        assert (said.code, said.out, said.err) == (0, "", "")


def test_wake_does_not_wait_for_a_full_mailbox(session: Session, box: socket.socket) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        with pytest.raises(BlockingIOError):
            while True:
                sender.sendto(b"x", str(session.socket))
    assert session.run("wake").code == 0


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}more", (200, b"{}")),
        (b"HTTP/1.0 404 No\nServer: x\n\n{}", (404, b"{}")),
        (b"HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 201 OK\r\n\r\n{}", (201, b"{}")),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1;a=b\r\n{\r\n1\r\n}\r\n0\r\nX: y\r\n\r\n",
            (200, b"{}"),
        ),
        (b"HTTP/1.1 204 None\r\nContent-Length: 9\r\n\r\n", (204, b"")),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -9\r\n\r\n{}", None),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", None),
        (b"HTTP/1.1 200 OK\r\nContent-Le", None),
        (b"HTTP/1.1 OK\r\n\r\n", None),
        (b"SSH-2.0-OpenSSH\r\n", None),
        (b"x" * 100_000, None),
        (b"HTTP/1.1 200 OK\r\n" + b"".join(b"X%d: y\r\n" % n for n in range(300)), None),
        (b"", None),
    ],
)
def test_an_answer_is_whole_or_none(raw: bytes, found: tuple[int, bytes] | None) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1_000_000)
        theirs.sendall(raw)
        theirs.shutdown(socket.SHUT_WR)
        if found is None:
            with pytest.raises(http_call.Broken):
                http_call.read_answer(ours)
        else:
            assert http_call.read_answer(ours) == found


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("http://127.0.0.1:8000", ("http", "127.0.0.1", 8000, "")),
        ("https://lab.example/under/", ("https", "lab.example", 443, "/under")),
        ("http://[::1]:81/", ("http", "::1", 81, "")),
        ("http://[::1]", ("http", "::1", 80, "")),
        ("http://me@lab.example", ("http", "lab.example", 80, "")),
        ("", None),
        ("lab.example:80", None),
        ("ftp://lab.example", None),
        ("http://", None),
        ("http://lab.example:port", None),
    ],
)
def test_an_address_is_read_or_refused(url: str, parts: tuple[object, ...] | None) -> None:
    if parts is None:
        with pytest.raises(ValueError, match=r"address|invalid literal"):
            http_call.Address(url)
    else:
        made = http_call.Address(url)
        assert (made.scheme, made.host, made.port, made.prefix) == parts


# What it costs and stands on.

SLOW = {
    *("email", "hashlib", "http", "pathlib", "random", "runpy", "secrets", "selectors", "shutil"),
    *("socket", "ssl", "subprocess", "typing", "urllib"),
}


def spent_by(*argv: str) -> float:
    """Milliseconds of processor time of one program from start to end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, env={}, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1000


@pytest.mark.parametrize(
    ("arguments", "floor", "times"),
    [
        (["wake", "--socket", "/nowhere", "demo"], "pass", 2),
        (["hook", "session"], "import json", 2),
        (["issue", "list"], "import argparse, json", 2),
    ],
    ids=["wake", "hook session", "issue list"],
)
def test_it_costs_few_times_what_python_itself_costs(
    arguments: list[str], floor: str, times: float
) -> None:
    # Beside a floor in turns, so that no slow machine is what is measured; the least of each, since
    # what else a busy one does can only add to what a program spends.
    pairs = [
        (spent_by(COMMAND[0], "-I", "-S", "-c", floor), spent_by(*COMMAND, *arguments))
        for _ in range(9)
    ]
    least, spent = (min(values) for values in zip(*pairs, strict=True))
    assert spent < times * least


def test_it_needs_nothing_but_the_standard_library() -> None:
    program = f"""
import runpy, sys
sys.argv = ["labctl", "issue", "list"]
try:
    runpy.run_path({COMMAND[-1]!r}, run_name="__main__")
except SystemExit:
    pass
print(*({{name.partition(".")[0] for name in sys.modules}} - set(sys.stdlib_module_names)))
"""
    done = subprocess.run(
        [COMMAND[0], "-I", "-S", "-c", program], capture_output=True, text=True, env={}, check=False
    )
    assert set(done.stdout.split()) <= {"__main__", "labctl"}, done.stderr
    assert "labctl" in done.stdout


def test_it_loads_no_module_that_takes_long(session: Session) -> None:
    argv = [COMMAND[0], "-X", "importtime", *COMMAND[1:], "issue", "view"]
    session.address.write_text(f"http://127.0.0.1:{free_port()}\n")
    done = subprocess.Popen(argv, env=session.env, stderr=subprocess.PIPE, text=True)
    with done:
        assert done.stderr is not None
        loaded = set()
        for line in done.stderr:
            if not line.startswith("import time:"):
                break  # it was asked by now, and nobody answered
            loaded.add(line.rpartition("|")[2].strip())
        done.kill()
    assert "labctl.http_call" in loaded
    assert not SLOW & loaded
    assert len(loaded) <= 70


@pytest.mark.parametrize(
    ("arguments", "most"),
    [(["wake", "--socket", "/nowhere", "demo"], 15), (["hook", "session"], 45)],
)
def test_what_hooks_call_loads_next_to_nothing(arguments: list[str], most: int) -> None:
    argv = [COMMAND[0], "-X", "importtime", *COMMAND[1:], *arguments]
    done = subprocess.run(argv, env={}, input="", capture_output=True, text=True, check=True)

    lines = done.stderr.splitlines()[1:]
    loaded = [line.rpartition("|")[2].strip() for line in lines]
    ours = loaded[loaded.index("__future__") :]  # before it what Python itself loads
    assert not SLOW & {*ours}
    assert len(ours) <= most


def test_it_is_found_by_its_folder_too(session: Session, servers: list[Stub]) -> None:
    servers.append(Stub((200, ISSUES)))
    session.address.write_text(servers[0].url)

    # As sessions of the version before call it.
    argv = [*COMMAND[:-1], str(Path(COMMAND[-1]).parent), "issue", "list"]
    done = subprocess.run(argv, env=session.env, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, "#1\tOne\n", "")
