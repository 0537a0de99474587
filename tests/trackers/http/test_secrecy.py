"""Where a credential is not: addresses, texts, reprs, logs, and the locals of any traceback."""

from __future__ import annotations

import logging
import socket
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tests.trackers.http.forge import HERE, START, TOKEN, Forge, a_client, ok, said
from tests.trackers.http.line import listening, reply
from trackers.account import Account, Purpose
from trackers.errors import TrackerError
from trackers.http.client import Client, over_network


def told(error: BaseException) -> Iterator[str]:
    """Everything that a log or a debug page could show of an error: texts, reprs, locals."""
    seen: BaseException | None = error
    while seen is not None:
        yield str(seen)
        yield repr(seen)
        yield from traceback.format_exception(seen)
        for frame, _ in traceback.walk_tb(seen.__traceback__):
            if "/tests/" not in frame.f_code.co_filename:
                yield from (repr(value) for value in frame.f_locals.values())
        seen = seen.__cause__ or seen.__context__


def error_of(client: Client, account: Account = HERE, **more: object) -> BaseException:
    with pytest.raises(TrackerError) as caught:
        client.call(account, "GET", "/x", purpose=Purpose.READ, **more)  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize(
    "answer",
    [
        said(401, f"Bad credentials: {TOKEN}"),
        said(403, f"{TOKEN}"),
        said(404),
        said(422, "No", x_echo=TOKEN),
        said(429, retry_after="5"),
        said(500),
        httpx.Response(200, text=f"<html>{TOKEN}"),
        httpx.Response(200, text=f'["{TOKEN}'),
        httpx.Response(302, headers={"location": "https://elsewhere.example/"}),
        httpx.Response(302, headers={"location": "http://["}),
        httpx.ConnectError("no"),
        httpx.ReadTimeout("no"),
    ],
)
def test_no_error_shows_it(answer: httpx.Response | Exception):
    for text in told(error_of(a_client(Forge(answer)))):
        assert TOKEN not in text


@pytest.mark.parametrize("bad", [TOKEN + "\n", TOKEN + "\r\nX: y", TOKEN + "ü", f"{TOKEN} two"])
def test_a_credential_that_cannot_be_sent_is_not_quoted(bad: str):
    forge = Forge(ok())
    for text in told(error_of(a_client(forge), Account(HERE.api, bad))):
        assert TOKEN not in text
    assert forge.asked == []


def test_the_key_of_an_app_is_not_shown_either():
    account = replace(HERE, app_id="1", app_installation="2", app_key="-----BEGIN SECRET")
    for text in told(error_of(a_client(Forge(said(500))), account)):
        assert "BEGIN SECRET" not in text


def test_an_address_with_a_password_in_it_is_not_shown():
    account = Account("https://me:pass-word@forge.example/api/v1")
    forge = Forge(ok([1]), said(500))
    client = a_client(forge)
    client.call(account, "GET", "/x", purpose=Purpose.READ)
    assert "pass-word" not in str(forge.asked[0].url)
    assert "authorization" not in forge.asked[0].headers
    assert "pass-word" not in str(error_of(client, account))


def test_queries_are_no_part_of_a_text():
    text = str(error_of(a_client(Forge(said(500))), params={"q": "something-private"}))
    assert text == "forge.example (GET /api/v1/x) answered 500."


def test_what_a_forge_answers_is_no_part_of_a_repr():
    """An installation's token comes in an answer."""
    answer = a_client(Forge(ok({"token": TOKEN}, x_y=TOKEN))).call(
        HERE, "GET", "/x", purpose=Purpose.READ
    )
    assert TOKEN not in repr(answer)


def test_nothing_that_lives_long_shows_it(tmp_path: Path):
    client = a_client(Forge(ok([1])), folder=tmp_path)
    client.call(HERE, "GET", "/x", purpose=Purpose.READ)
    assert TOKEN not in repr(client.meter.settle(START))
    assert TOKEN not in repr(client)
    assert TOKEN not in repr(vars(client))


@pytest.mark.parametrize(
    "said", [reply(b"[]", "500 No"), reply(b"[")[:-1], b"", b"garbage\r\n\r\n"]
)
def test_on_real_sockets_neither_errors_nor_logs_show_it(
    said: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    def talk(connection: socket.socket, _: bytes) -> None:
        connection.sendall(said)
        connection.shutdown(socket.SHUT_WR)

    client = over_network(tmp_path, lambda: START, pause=lambda _: None)
    with caplog.at_level(logging.DEBUG), listening(talk) as line:
        error = error_of(client, Account(line.api, TOKEN))
        for text in told(error):
            assert TOKEN not in text
    client.close()
    assert TOKEN.encode() in line.heard[0]
    assert TOKEN not in caplog.text
    assert not [record for record in caplog.records if record.name.startswith(("http", "h11"))]
