#!/usr/bin/env python3
"""Runs as a child of its own: encrypts one push for its device and hands it to the push service.

Reads one JSON order on standard input, answers with one JSON line. The host is looked up once and
the connection goes to the very address that was looked at, so that no second answer of a name
server leads inside a network.
"""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

SECONDS = 10
SIGNED_FOR = 12 * 3600
GONE = (404, 410)
LATER = (408, 425, 429)
Answer = dict[str, Any]


def main() -> int:
    # An isolated Python looks for nothing of ours; the rule about addresses is one.
    sys.path.append(str(Path(__file__).parents[2]))
    sys.stdout.write(json.dumps(push(json.load(sys.stdin))))
    return 0


def push(order: Answer) -> Answer:
    from runs.notices.push_rules import is_outside

    parts = urlsplit(order["endpoint"])
    host, port = parts.hostname or "", parts.port or (80 if parts.scheme == "http" else 443)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:
        return {"ok": False, "final": True, "why": "its host is no name"}
    except OSError as error:
        return {"ok": False, "why": f"its host was not found: {error.strerror or error}"}
    places = [str(one[4][0]) for one in found]
    if not order["inside"] and not all(is_outside(one) for one in places):
        return {"ok": False, "final": True, "why": "its host is inside a network"}
    try:
        body = encrypted(order["text"].encode(), order["p256dh"], order["auth"])
    except Exception as error:
        why = f"the keys of the device are not fit ({type(error).__name__})"
        return {"ok": False, "final": True, "why": why}
    origin = f"{parts.scheme}://{parts.netloc}"
    headers = {
        "Host": parts.netloc,
        "Authorization": signature(order["private"], origin, order["subject"]),
        "Content-Encoding": "aes128gcm",
        "Content-Type": "application/octet-stream",
        "TTL": str(order["ttl"]),
        "Urgency": order["urgency"],
    }
    if order["topic"]:
        headers["Topic"] = order["topic"]
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    try:
        return _sent(_connection(parts.scheme, host, port, places[0]), target or "/", body, headers)
    except (OSError, http.client.HTTPException) as error:
        return {"ok": False, "why": str(error) or type(error).__name__}


def encrypted(text: bytes, p256dh: str, auth: str) -> bytes:
    """RFC 8291, by the library."""
    import http_ece  # type: ignore[import-untyped]
    from cryptography.hazmat.primitives.asymmetric import ec

    once = ec.generate_private_key(ec.SECP256R1())
    known = {"dh": _bytes(p256dh), "auth_secret": _bytes(auth)}
    return bytes(http_ece.encrypt(text, private_key=once, version="aes128gcm", **known))


def signature(private: str, origin: str, subject: str) -> str:
    """RFC 8292, by the library."""
    from py_vapid import Vapid02  # type: ignore[import-untyped]

    claims = {"aud": origin, "sub": subject, "exp": int(time.time()) + SIGNED_FOR}
    return str(Vapid02.from_raw(private.encode()).sign(claims)["Authorization"])


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class _Pinned(http.client.HTTPSConnection):
    """TLS for a name, at an address that was looked up before."""

    def __init__(self, host: str, port: int, place: str) -> None:
        self._tls = ssl.create_default_context()
        super().__init__(host, port, timeout=SECONDS, context=self._tls)
        self._place = place

    def connect(self) -> None:
        plain = socket.create_connection((self._place, self.port), SECONDS)
        self.sock = self._tls.wrap_socket(plain, server_hostname=self.host)


def _connection(scheme: str, host: str, port: int, place: str) -> http.client.HTTPConnection:
    if scheme == "http":
        return http.client.HTTPConnection(place, port, timeout=SECONDS)
    return _Pinned(host, port, place)


def _sent(
    connection: http.client.HTTPConnection, target: str, body: bytes, headers: dict[str, str]
) -> Answer:
    try:
        connection.request("POST", target, body, headers)
        answer = connection.getresponse()
        said = answer.read(300).decode("utf-8", "replace").strip()
    finally:
        connection.close()
    if 200 <= answer.status < 300:
        return {"ok": True}
    if answer.status in GONE:
        return {"ok": False, "final": True, "gone": True, "why": "the device takes none any more"}
    is_final = 300 <= answer.status < 500 and answer.status not in LATER
    return {"ok": False, "final": is_final, "why": f"status {answer.status} {said}".strip()}


if __name__ == "__main__":
    sys.exit(main())
