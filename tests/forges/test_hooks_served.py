"""The door for webhooks in the real web process: raw HTTP, bodies in pieces, and the worker's bell."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from runs.forges.hook_rules import MOST_BYTES
from tests.patience import PATIENCE, comes_within
from tests.web.daphne_fixture import Served

PREPARE = """
from runs.core.states import ProjectState
from runs.forges import acts as forges, hooks
Settings.current()
Project.objects.all().delete()
Forge.objects.all().delete()
forge = forges.add(lab, name="Ours", kind="gitea", web="https://git.example",
                   credential={"token": "t"}, by="anna")
project = Project.objects.create(
    name="demo", slug="demo", source="/x", url="/x", tracker="gitea", forge=forge,
    tracker_root=f"{forge.pk}/lab/demo", state=ProjectState.READY, created_at=lab.now())
result = hooks.make_secret(lab, project, by="anna")
"""


@pytest.fixture(scope="module")
def served(once_served: Served) -> Served:
    return once_served


@pytest.fixture
def secret(served: Served) -> str:
    return str(served.do(PREPARE))


@pytest.fixture
def bell(served: Served) -> Iterator[socket.socket]:
    """The worker's ear."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as box:
        box.bind(str(served.paths.worker_socket))
        box.settimeout(PATIENCE)
        yield box
    served.paths.worker_socket.unlink()


def post(served: Served, secret: str, body: bytes, delivery: str, *, whole: bool) -> Any:
    """Send a delivery, its body whole or in pieces of unannounced length; status and answer."""
    signed = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    size = f"Content-Length: {len(body)}" if whole else "Transfer-Encoding: chunked"
    head = (
        "POST /hooks/demo/ HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\n{size}\r\nX-Gitea-Event: issues\r\n"
        f"X-Gitea-Delivery: {delivery}\r\nX-Gitea-Signature: {signed}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE) as line:
        line.sendall(head.encode())
        if whole:
            line.sendall(body)
        else:
            for start in range(0, len(body), 65_536):
                piece = body[start : start + 65_536]
                line.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
            line.sendall(b"0\r\n\r\n")
        told = b""
        while piece := line.recv(65_536):
            told += piece
    top, _, content = told.partition(b"\r\n\r\n")
    return int(top.split()[1]), json.loads(content)


@pytest.mark.parametrize("whole", [True, False], ids=["length announced", "in pieces"])
def test_a_delivery_is_answered_at_once_and_rings_the_worker(
    served: Served, secret: str, bell: socket.socket, whole: bool
) -> None:
    status, told = post(served, secret, b"{}", "one", whole=whole)
    assert (status, told["code"]) == (200, "woke"), told
    assert bell.recv(4096) == b"demo"

    def answers(number: int) -> None:
        body, delivery = b"[%d]" % number, f"more-{number}"
        assert post(served, secret, body, delivery, whole=whole)[1]["code"] == "woke"

    comes_within(1, answers)
    assert post(served, secret, b"[0]", "more-0", whole=whole)[1]["code"] == "seen"
    assert post(served, "wrong", b"[]", "two", whole=whole)[0] == 403


@pytest.mark.parametrize("whole", [True, False], ids=["length announced", "in pieces"])
def test_a_body_beyond_the_bound_is_refused_however_it_comes(
    served: Served, secret: str, whole: bool
) -> None:
    status, told = post(served, secret, b"x" * (MOST_BYTES + 1), "big", whole=whole)
    assert (status, told["code"]) == (413, "too_big")
    assert post(served, secret, b"x" * MOST_BYTES, "fits", whole=whole)[0] == 200
    assert secret not in served.log()
