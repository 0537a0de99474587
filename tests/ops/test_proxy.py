"""The proxies of docs/operating.md, as they stand there: pages, WebSockets and streams through TLS."""

from __future__ import annotations

import base64
import contextlib
import http.client
import os
import re
import shutil
import socket
import ssl
import subprocess
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.house.product import ROOT, Product, lab, until
from tests.patience import PATIENCE
from tests.ports import free_port
from tests.prepared import OPERATOR

PAGE = (ROOT / "docs" / "operating.md").read_text()
NAME = "lab.example.org"
TELL = """
from django.db import transaction
from runs.core.states import NoticeKind
from runs.wiring import lab
from runs.timeline import announce
with transaction.atomic():
    announce.tell(lab(), NoticeKind.SETTING_CHANGED, 'told through the proxy')
"""


def block(language: str) -> str:
    """The one example in that language."""
    found = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert len(found) == 1, language
    return str(found[0])


def _replaced(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


def _nginx(folder: Path, upstream: str, port: int) -> list[str]:
    site = _replaced(
        block("nginx"),
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("127.0.0.1:8420", upstream),
        ("/etc/ssl/lab.example.org.pem", f"{folder}/cert.pem"),
        ("/etc/ssl/lab.example.org.key", f"{folder}/key.pem"),
    )
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/log; events {{}}\n"
        f"http {{ access_log off; {temporary}\n{site}}}\n"
    )
    return ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "log")]


def _caddy(folder: Path, upstream: str, port: int) -> list[str]:
    """With a certificate of ours, since the real one would come from the internet."""
    site = _replaced(
        block("caddy"),
        (
            "lab.example.org {",
            f"https://{NAME}:{port} {{\n    bind 127.0.0.1\n    tls {folder}/cert.pem {folder}/key.pem",
        ),
        ("127.0.0.1:8420", upstream),
    )
    (folder / "Caddyfile").write_text(f"{{\n admin off\n auto_https disable_redirects\n}}\n{site}")
    return ["caddy", "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]


def _certificate(folder: Path) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


@dataclass
class Site:
    """The proxy as a browser meets it, which believes the certificate of this test."""

    product: Product
    port: int
    trust: ssl.SSLContext
    opened: list[http.client.HTTPConnection] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"https://{NAME}:{self.port}"

    def connect(self) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        return self.trust.wrap_socket(plain, server_hostname=NAME)

    def ask(
        self, method: str, path: str, body: str = "", **headers: str
    ) -> http.client.HTTPResponse:
        """One request on a connection of its own; the answer is read by the caller."""
        connection = http.client.HTTPConnection(NAME, self.port)
        self.opened.append(connection)
        connection.sock = self.connect()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body or None, {"Host": f"{NAME}:{self.port}", **named})
        return connection.getresponse()


@pytest.fixture(params=[_nginx, _caddy], ids=["nginx", "caddy"])
def site(
    request: pytest.FixtureRequest, start: Callable[..., Product], tmp_path: Path
) -> Iterator[Site]:
    program = request.param.__name__.strip("_")
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed on this machine")
    product = start(LAB_HTTPS="1", LAB_BEHIND_PROXY="1", LAB_ALLOWED_HOSTS=NAME)
    folder = tmp_path / "proxy"
    folder.mkdir()
    _certificate(folder)
    port = free_port()
    argv = request.param(folder, urllib.parse.urlsplit(product.url).netloc, port)
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            argv, stdout=said, stderr=said, env={**os.environ, "HOME": str(folder)}
        )
    try:
        until(lambda: _listens(port), told=lambda: (folder / "said").read_text())
        made = Site(product, port, ssl.create_default_context(cafile=str(folder / "cert.pem")))
        yield made
        for connection in made.opened:
            connection.close()
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_pages_sockets_and_streams_pass_the_proxy(site: Site) -> None:
    cookies = _logged_in(site)
    assert _opens_a_socket(site, cookies, site.origin) == 101
    assert _opens_a_socket(site, cookies, "https://elsewhere.example") == 403
    _streams_at_once(site)


def _logged_in(site: Site) -> str:
    """Log in as a browser does; the answer is its cookies."""
    page = site.ask("GET", "/login/")
    text = page.read().decode()
    assert page.status == 200, text
    set_cookies = page.headers.get_all("Set-Cookie") or []
    assert set_cookies
    assert all("Secure" in cookie for cookie in set_cookies)
    assert page.headers["Strict-Transport-Security"]
    form = urllib.parse.urlencode(
        {
            "csrfmiddlewaretoken": re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', text)[
                0
            ],
            "username": OPERATOR["DJANGO_SUPERUSER_USERNAME"],
            "password": OPERATOR["DJANGO_SUPERUSER_PASSWORD"],
        }
    )
    sent = "; ".join(cookie.partition(";")[0] for cookie in set_cookies)
    answer = site.ask(
        "POST",
        "/login/",
        form,
        Cookie=sent,
        Origin=site.origin,
        Referer=f"{site.origin}/login/",
        Content_Type="application/x-www-form-urlencoded",
    )
    assert answer.status == 302, answer.read()
    more = answer.headers.get_all("Set-Cookie") or []
    return "; ".join(cookie.partition(";")[0] for cookie in more)


def _opens_a_socket(site: Site, cookies: str, origin: str) -> int:
    lines = [
        "GET /ws/board HTTP/1.1",
        f"Host: {NAME}:{site.port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
        "Sec-WebSocket-Version: 13",
        f"Origin: {origin}",
        f"Cookie: {cookies}",
    ]
    with site.connect() as tcp:
        tcp.sendall("\r\n".join([*lines, "", ""]).encode())
        return int(tcp.recv(4096).split()[1])


def _streams_at_once(site: Site) -> None:
    """An entry arrives while the answer is still open, so nothing on the way holds it back."""
    state = site.product.state
    token = lab("manage", "api_token", "anna", "--name", "proxy", state=state).stdout.strip()
    stream = site.ask("GET", "/api/v1/timeline/stream", Authorization=f"Bearer {token}")
    assert stream.status == 200, stream.read()
    told = lab("manage", "shell", "-v", "0", "-c", TELL, state=state)
    assert told.returncode == 0, told.stderr
    heard = b""
    while b"told through the proxy" not in heard:
        piece = stream.read1(4096)
        assert piece, heard
        heard += piece
    stream.close()


@pytest.mark.real
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
def test_systemd_understands_the_units(tmp_path: Path) -> None:
    units = re.findall(r"```ini\n(.*?)```", PAGE, re.DOTALL)
    assert len(units) == 4
    program = tmp_path / "lab"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for name, text in zip(
        (
            "labsite.service",
            "labsite-watch.service",
            "labsite-backup.service",
            "labsite-backup.timer",
        ),
        units,
        strict=True,
    ):
        text = text.replace("/srv/labsite/app/lab", str(program))
        text = text.replace("/srv/labsite/app", str(tmp_path)).replace("User=labsite\n", "")
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *map(str, sorted(tmp_path.glob("labsite*")))],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    ours = [line for line in done.stderr.splitlines() if "labsite" in line]
    assert ours == []
