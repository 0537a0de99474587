"""On real sockets: how long, how much, over which connection, and through what."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.late_watch import LateWatch
from tests.patience import PATIENCE
from tests.trackers.http.forge import TOKEN
from tests.trackers.http.line import Talk, listening, reply
from trackers.account import Account, Purpose
from trackers.errors import NotUnderstood, Refused, Unreachable
from trackers.http import body
from trackers.http.cache import AnswerCache
from trackers.http.client import Client, over_network
from trackers.http.quota import Meter
from trackers.http.request import Request
from trackers.http.rules import Trouble
from trackers.http.transport import NetworkTransport, Response, Sender

SOON = 0.4


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def sender() -> Iterator[Sender]:
    sender = Sender(NetworkTransport(), time.monotonic)
    yield sender
    sender.close()


def ask_of(api: str, method: str = "GET") -> Request:
    return Request.of(Account(api, TOKEN), method, "/x", {"q": "1"}, None, None, "Bearer")


def once(sender: Sender, talk: Talk, seconds: float = 60.0) -> Response | Trouble:
    with listening(talk) as line:
        return sender.send(ask_of(line.api), {}, time.monotonic() + seconds)


def drip(data: bytes) -> Talk:
    def talk(connection: socket.socket, _: bytes) -> None:
        for at in range(len(data)):
            connection.sendall(data[at : at + 1])
            time.sleep(0.05)

    return talk


@pytest.mark.parametrize(
    "talk",
    [
        pytest.param(lambda connection, _: connection.recv(1), id="says nothing"),
        pytest.param(drip(reply(b"[1]") * 9), id="drips its headers"),
        pytest.param(
            lambda connection, _: (
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n"),
                drip(b" " * 900)(connection, b""),
            ),
            id="drips its body",
        ),
        pytest.param(
            lambda connection, _: (
                connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
                drip(b"1\r\n \r\n" * 900)(connection, b""),
            ),
            id="drips chunks",
        ),
        pytest.param(
            lambda connection, _: drip(b"HTTP/1.1 100 Continue\r\n\r\n" * 90)(connection, b""),
            id="asks for patience for ever",
        ),
    ],
)
def test_a_server_that_takes_its_time_is_left_at_the_deadline(sender: Sender, talk: Talk):
    began = time.monotonic()
    assert once(sender, talk, SOON) is Trouble.SLOW
    assert time.monotonic() - began < SOON + 60


def test_a_server_that_does_not_even_shake_hands_is_left_too(sender: Sender):
    with listening(lambda *_: None) as line:
        api = line.api.replace("http:", "https:")
        assert sender.send(ask_of(api), {}, time.monotonic() + SOON) is Trouble.UNREACHED


@pytest.mark.parametrize(
    ("said", "trouble"),
    [
        pytest.param(b"", Trouble.DROPPED, id="closes without a word"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-", Trouble.DROPPED, id="closes in the headers"),
        pytest.param(reply(b"[1, 2, 3]")[:-4], Trouble.DROPPED, id="closes in the body"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n[1, 2\r\n",
            Trouble.DROPPED,
            id="closes between chunks",
        ),
        pytest.param(b"SSH-2.0-OpenSSH_9\r\n", Trouble.DROPPED, id="speaks something else"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300_000, Trouble.DROPPED, id="endless headers"
        ),
        pytest.param(
            reply(b"abc", "200 OK", "Content-Encoding: br"), Trouble.GARBLED, id="packs oddly"
        ),
    ],
)
def test_what_breaks_off_is_told(sender: Sender, said: bytes, trouble: Trouble):
    def talk(connection: socket.socket, _: bytes) -> None:
        connection.sendall(said)
        connection.shutdown(socket.SHUT_WR)

    assert once(sender, talk) is trouble


def test_nobody_there_is_told(sender: Sender):
    with listening(lambda *_: None) as line:
        api = line.api
    assert sender.send(ask_of(api), {}, time.monotonic() + 60) is Trouble.UNREACHED
    gone = ask_of("http://no-such-host.invalid/api")
    assert sender.send(gone, {}, time.monotonic() + 60) is Trouble.UNREACHED


def test_a_huge_body_is_not_read(sender: Sender):
    sent = []

    def talk(connection: socket.socket, _: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 900000000\r\n\r\n")
        for _ in range(900):
            connection.sendall(b" " * 1_000_000)
            sent.append(1)

    assert once(sender, talk) is Trouble.TOO_BIG
    assert len(sent) * 1_000_000 < 2 * body.MOST_BYTES


def test_a_bomb_is_not_unpacked(sender: Sender):
    packed = gzip.compress(b" " * (3 * body.MOST_BYTES))
    bomb = reply(packed, "200 OK", "Content-Encoding: gzip")
    assert once(sender, lambda connection, _: connection.sendall(bomb)) is Trouble.TOO_BIG


def test_a_connection_is_used_again_whatever_was_answered(sender: Sender):
    answers = iter(
        [
            reply(b"[1]"),
            reply(gzip.compress(b"[2]"), "200 OK", "Content-Encoding: gzip"),
            b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n\r\n',
            b"HTTP/1.1 204 No Content\r\n\r\n",
            reply(b"", "404 Not Found"),
            reply(b"[3]"),
        ]
    )
    with listening(lambda connection, _: connection.sendall(next(answers))) as line:
        heard = [sender.send(ask_of(line.api), {}, time.monotonic() + 60) for _ in range(6)]
    assert [each.status for each in heard if isinstance(each, Response)] == [
        200,
        200,
        304,
        204,
        404,
        200,
    ]
    assert [each.body for each in heard if isinstance(each, Response)][:3] == [b"[1]", b"[2]", b""]
    assert line.connections == 1


def test_a_certificate_that_nobody_vouches_for_is_refused(sender: Sender, tmp_path: Path):
    with listening(lambda connection, _: connection.sendall(reply(b"[]")), _own(tmp_path)) as line:
        api = f"https://localhost:{line.port}/api/v1"
        assert sender.send(ask_of(api), {}, time.monotonic() + 60) is Trouble.UNTRUSTED
    assert line.heard == []


def test_an_authority_of_one_s_own_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    own = _own(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "own.pem"))
    sender = Sender(NetworkTransport(), time.monotonic)
    with listening(lambda connection, _: connection.sendall(reply(b"[1]")), own) as line:
        api = f"https://localhost:{line.port}/api/v1"
        heard = [sender.send(ask_of(api), {}, time.monotonic() + 60) for _ in range(2)]
        wrong = f"https://127.0.0.1:{line.port}/api/v1"
        assert sender.send(ask_of(wrong), {}, time.monotonic() + 60) is Trouble.UNTRUSTED
    sender.close()
    assert [each.body for each in heard if isinstance(each, Response)] == [b"[1]", b"[1]"]
    assert line.connections == 2


def test_a_server_that_drips_under_tls_is_left_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    own = _own(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "own.pem"))
    watch = LateWatch()
    sender = Sender(NetworkTransport(watch.monotonic), watch.monotonic)
    slowly = drip(reply(b"[1]") * 99)

    def talk(connection: socket.socket, request: bytes) -> None:
        watch.ahead = 60.0  # its time is up once it begins to answer
        slowly(connection, request)

    with listening(talk, own) as line:
        api = f"https://localhost:{line.port}/api/v1"
        assert sender.send(ask_of(api), {}, watch.monotonic() + 60) is Trouble.SLOW
    sender.close()


def test_the_proxy_of_the_environment_is_used_and_its_exceptions_are_kept(
    monkeypatch: pytest.MonkeyPatch,
):
    with listening(lambda connection, _: connection.sendall(reply(b"[7]"))) as proxy:
        monkeypatch.setenv("http_proxy", f"http://me:pass@127.0.0.1:{proxy.port}")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        sender = Sender(NetworkTransport(), time.monotonic)
        heard = sender.send(ask_of("http://forge.invalid/api"), {}, time.monotonic() + 60)
        direct = once(sender, lambda connection, _: connection.sendall(reply(b"[8]")))
        sender.close()
    assert isinstance(heard, Response) and heard.body == b"[7]"
    assert isinstance(direct, Response) and direct.body == b"[8]"
    assert proxy.heard[0].startswith(b"GET http://forge.invalid/api/x?q=1 HTTP/1.1")
    assert len(proxy.heard) == 1


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "http://[", "ftp://x", "http://"])
def test_a_proxy_that_cannot_be_used_is_said_to_be(monkeypatch: pytest.MonkeyPatch, proxy: str):
    monkeypatch.setenv("http_proxy", proxy)
    sender = Sender(NetworkTransport(), time.monotonic)
    assert sender.send(ask_of("http://forge.invalid"), {}, time.monotonic() + 60) is Trouble.NO_WAY


def test_a_proxy_that_lets_nobody_through_is_said_to_be(monkeypatch: pytest.MonkeyPatch):
    no = reply(b"", "407 Proxy Authentication Required")
    with listening(lambda connection, _: connection.sendall(no)) as proxy:
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{proxy.port}")
        sender = Sender(NetworkTransport(), time.monotonic)
        heard = sender.send(ask_of("https://forge.invalid"), {}, time.monotonic() + 60)
    assert heard is Trouble.NO_WAY
    assert proxy.heard[0].startswith(b"CONNECT forge.invalid:443")
    assert TOKEN.encode() not in proxy.heard[0]


def test_the_client_on_real_sockets(tmp_path: Path):
    """A list, then the same unchanged after a restart; a renamed repository; another origin."""
    with listening(lambda connection, _: connection.sendall(reply(b"[]"))) as elsewhere:

        def talk(connection: socket.socket, request: bytes) -> None:
            path = request.split(b" ")[1]
            if b"If-None-Match" in request:
                connection.sendall(b"HTTP/1.1 304 Not Modified\r\n\r\n")
            elif path.startswith(b"/api/v1/old"):
                connection.sendall(
                    reply(b"", "301 Moved Permanently", "Location: /api/v1/repositories/1")
                )
            elif path.startswith(b"/api/v1/away"):
                connection.sendall(reply(b"", "302 Found", f"Location: {elsewhere.api}/new"))
            else:
                connection.sendall(reply(b'[{"number": 1}]', "200 OK", 'ETag: "a"'))

        with listening(talk) as line:
            account = Account(line.api, TOKEN)
            for turn in range(2):
                client = over_network(tmp_path, _now)
                answer = client.call(account, "GET", "/issues", purpose=Purpose.QUEUE)
                assert answer.data == [{"number": 1}]
                assert answer.was_unchanged is (turn == 1)
                client.close()
            client = over_network(tmp_path, _now)
            moved = client.call(account, "GET", "/old", purpose=Purpose.READ)
            assert moved.data == [{"number": 1}]
            assert moved.moved_to == f"{line.api}/repositories/1"
            with pytest.raises(Refused) as caught:
                client.call(account, "GET", "/away", purpose=Purpose.READ)
            client.close()
    assert f"http://127.0.0.1:{elsewhere.port}" in str(caught.value)
    assert elsewhere.heard == []


def test_a_whole_call_ends_in_time_whatever_the_server_does():
    """On a clock that runs forty times as fast, so that the eight seconds are a fifth of one."""
    began = time.monotonic()

    def fast() -> float:
        return (time.monotonic() - began) * 40

    client = Client(
        NetworkTransport(fast),
        Meter(steady=fast),
        AnswerCache(None),
        _now,
        fast,
        lambda _: None,
        lambda: 0.5,
    )
    with (
        listening(drip(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 900)) as line,
        pytest.raises(Unreachable),
    ):
        client.call(Account(line.api), "GET", "/x", purpose=Purpose.QUEUE)
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(("purpose", "allowed"), [(Purpose.READ, 4), (Purpose.QUEUE, 3)])
def test_no_host_is_asked_by_more_than_a_few_at_a_time(purpose: Purpose, allowed: int):
    """Each answer waits until as many as are allowed are there; one more would be seen."""
    most, under_way, lock, all_there = [0], [0], threading.Lock(), threading.Barrier(allowed)

    def talk(connection: socket.socket, _: bytes) -> None:
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        all_there.wait(PATIENCE)
        with lock:
            under_way[0] -= 1
        connection.sendall(reply(b"[]"))

    def slow() -> float:
        """A clock by which a busy machine lets nobody wait too long for a turn."""
        return time.monotonic() / 40

    client = Client(
        NetworkTransport(slow),
        Meter(steady=slow),
        AnswerCache(None),
        _now,
        slow,
        lambda _: None,
        lambda: 0.5,
    )
    with listening(talk) as line:
        asked = [Account(line.api), "GET", "/x"]
        threads = [
            threading.Thread(target=client.call, args=asked, kwargs={"purpose": purpose})
            for _ in range(12)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    client.close()
    assert most[0] == allowed
    assert len(line.heard) == 12


def test_a_web_page_is_not_taken_for_an_api(tmp_path: Path):
    page = reply(b"<!doctype html><title>Log in</title>", "200 OK", "Content-Type: text/html")
    client = over_network(tmp_path, _now)
    with (
        listening(lambda connection, _: connection.sendall(page)) as line,
        pytest.raises(NotUnderstood, match="Is the address of its API right"),
    ):
        client.call(Account(line.api), "GET", "/x", purpose=Purpose.SETUP)
    client.close()


def _now() -> datetime:
    return datetime.now(UTC)


def _own(folder: Path) -> ssl.SSLContext:
    """A certificate for localhost that only its maker vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(_now() - timedelta(days=1))
        .not_valid_after(_now() + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(Encoding.PEM) + key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    (folder / "own.pem").write_bytes(pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "own.pem")
    return context
