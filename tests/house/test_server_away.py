"""A PostgreSQL server that is away at the start, or goes away while the product runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import postgres
from tests.house.product import Product, lab, until
from tests.web.daphne_fixture import Served
from tests.web.socket_client import SocketClient

pytestmark = [
    pytest.mark.skipif(
        postgres.programs() is None, reason="PostgreSQL's server programs are not installed"
    ),
    pytest.mark.real,
]

FACTS = """
from django.db import connections
connections.close_all()
result = {
    "tick": str(Host.objects.get().last_tick_at) if Host.objects.exists() else "",
    "error": "".join(Host.objects.values_list("last_error", flat=True)),
}
"""


@pytest.fixture(scope="module")
def installed() -> Iterator[postgres.Server]:
    made = postgres.Server()
    yield made
    made.close()


@pytest.fixture
def server(installed: postgres.Server) -> Iterator[postgres.Server]:
    """A server that this test may stop and start."""
    installed.stop()
    installed.start()
    yield installed
    installed.stop()


@pytest.fixture
def hand(tmp_path: Path, server: postgres.Server) -> Iterator[Served]:
    """A process of its own beside the product; each question is asked on a new connection."""
    made = Served(tmp_path / "state", LAB_DATABASE_URL=server.url())
    yield made
    made.close()


def test_a_database_that_is_not_there_is_one_sentence_without_the_password(
    server: postgres.Server, tmp_path: Path
) -> None:
    url = server.url("nosuch").replace("lab@", "lab:verysecret@")
    done = lab("up", "--port", "0", state=tmp_path / "state", LAB_DATABASE_URL=url)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "“nosuch”" in done.stderr
    assert "LAB_DATABASE_URL" in done.stderr
    assert "verysecret" not in done.stderr


def test_text_that_could_not_hold_every_letter_is_refused(
    server: postgres.Server, tmp_path: Path
) -> None:
    import psycopg

    with psycopg.connect(server.url(), autocommit=True) as maker:
        maker.execute(
            "CREATE DATABASE narrow ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' "
            "TEMPLATE template0"
        )
    done = lab("manage", "prepare", state=tmp_path, LAB_DATABASE_URL=server.url("narrow"))
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "LATIN1" in done.stderr


@pytest.mark.row("X-09", level="real")
def test_a_start_waits_for_its_server_and_a_restart_of_it_is_survived_by_web_feed_and_worker(
    server: postgres.Server, hand: Served, tmp_path: Path
) -> None:
    server.stop()
    product = Product(tmp_path / "state", LAB_DATABASE_URL=server.url())
    try:
        until(lambda: "does not answer yet" in product.log, told=lambda: product.log)
        server.start()
        product.wait_until_ready()
        hand.do("Settings.current(); Settings.objects.update(tick_seconds=5)")
        cookie = hand.cookie()
        programs = product.children()
        port = int(product.url.rpartition(":")[2])
        with SocketClient(port, "overview", cookie).hello(0) as page:
            page.frame()  # from here on it is fed; one that is only being let in is closed
            until(lambda: hand.do(FACTS)["tick"], told=lambda: product.log)
            server.stop()
            assert product.get("/readyz") == 503
            assert product.get("/healthz") == 200
            server.start()
            until(lambda: product.get("/readyz") == 200, told=lambda: product.log)
            before = hand.do(FACTS)["tick"]
            hand.do("result = tell('the server is back')")
            shown = ""
            while "the server is back" not in shown:
                shown = page.frame()["content"]
            # A tick that the restart fell into may end after it, and tells of it until the next one.
            until(lambda: _has_looked_well(hand, before), told=lambda: product.log)
        assert product.children() == programs
    finally:
        product.close()


def _has_looked_well(hand: Served, before: str) -> bool:
    now = hand.do(FACTS)
    return bool(now["tick"] > before and now["error"] == "")
