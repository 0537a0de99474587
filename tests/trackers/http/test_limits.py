"""Limits of a forge: obeyed, told apart, and never taken for anything else."""

from __future__ import annotations

import contextlib
import threading
from datetime import timedelta

import httpx
import pytest

from tests.patience import PATIENCE
from tests.trackers.http.forge import (
    HERE,
    START,
    Clock,
    Forge,
    a_client,
    http_date,
    ok,
    rates,
    said,
)
from trackers.account import Account, Purpose
from trackers.errors import RateLimited, Refused
from trackers.http.client import Client

RESET = START + timedelta(minutes=20)


def ask(client: Client, purpose: Purpose = Purpose.QUEUE, account: Account = HERE) -> object:
    return client.call(account, "GET", "/issues", purpose=purpose).data


@pytest.mark.parametrize(
    ("reply", "seconds"),
    [
        pytest.param(said(403, "API rate limit exceeded", **rates(5000, 0, RESET)), 1200, id="primary"),
        pytest.param(said(429, "API rate limit exceeded", **rates(5000, 0, RESET)), 1200, id="as 429"),
        pytest.param(said(403, "You have exceeded a secondary rate limit", retry_after="90"), 90, id="secondary"),
        pytest.param(said(403, "You have exceeded a secondary rate limit"), 60, id="secondary, nothing told"),
        pytest.param(said(429, retry_after="30"), 30, id="429 with seconds"),
        pytest.param(said(429, retry_after=http_date(START + timedelta(minutes=2))), 120, id="429 with a date"),
        pytest.param(said(429), 60, id="429 alone"),
        pytest.param(said(503, retry_after="45"), 45, id="503 with seconds"),
        pytest.param(httpx.Response(429, text="<html>slow down"), 60, id="a proxy's web page"),
    ],
)  # fmt: skip
def test_a_limit_is_obeyed_to_its_end(reply: httpx.Response, seconds: int):
    clock, forge = Clock(), Forge(reply, ok([1]))
    client = a_client(forge, clock)
    with pytest.raises(RateLimited) as caught:
        ask(client)
    assert caught.value.until == START + timedelta(seconds=seconds)
    for purpose in Purpose:
        with pytest.raises(RateLimited) as again:
            ask(client, purpose)
        assert again.value.until == caught.value.until
    assert len(forge.asked) == 1
    clock.pass_by(seconds + 1)
    assert ask(client) == [1]


def test_another_account_goes_on():
    forge = Forge(said(429), ok([1]))
    client = a_client(forge)
    with pytest.raises(RateLimited):
        ask(client)
    assert ask(client, account=Account(HERE.api, "another")) == [1]


def test_no_access_blocks_nothing():
    forge = Forge(said(403, "Resource not accessible", **rates(5000, 4000, RESET)), ok([1]))
    client = a_client(forge)
    with pytest.raises(Refused, match="Resource not accessible"):
        ask(client)
    assert ask(client) == [1]


def test_a_limit_that_nobody_measures_is_waited_out_longer_each_time():
    clock = Clock()
    client = a_client(Forge(said(403, "secondary rate limit")), clock)
    waits = []
    for _ in range(4):
        with pytest.raises(RateLimited) as caught:
            ask(client)
        waits.append((caught.value.until - clock.now()).total_seconds())
        clock.pass_by(waits[-1])
    assert waits == [60, 120, 240, 480]


def test_polling_stops_at_the_human_s_share_and_people_go_on():
    clock, forge = Clock(), Forge(ok([1], **rates(5000, 2000, RESET)))
    client = a_client(forge, clock)
    ask(client)
    with pytest.raises(RateLimited, match="kept for people until 12:20 UTC") as caught:
        ask(client)
    assert caught.value.until == RESET
    assert ask(client, Purpose.READ) == [1]
    assert len(forge.asked) == 2
    clock.pass_by(20 * 60)
    assert ask(client) == [1]


def test_polls_side_by_side_do_not_take_the_share_either():
    forge = Forge(ok([1], **rates(5000, 2002, RESET)))
    client = a_client(forge)
    ask(client)
    gate = threading.Barrier(2)
    sent, held = [], []

    def slow(request: httpx.Request) -> httpx.Response:
        gate.wait(PATIENCE)
        return ok([1], **rates(5000, 2001 - len(sent), RESET))

    forge.replies = [slow]

    def work() -> None:
        try:
            sent.append(ask(client))
        except RateLimited as error:
            held.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with pytest.raises(RateLimited):
        ask(client)
    assert (len(sent), len(held)) == (2, 0)


def test_unchanged_answers_are_counted_apart(tmp_path):
    def reply(request: httpx.Request) -> httpx.Response:
        if "if-none-match" in request.headers:
            return httpx.Response(304)
        return ok([1], etag='"a"')

    client = a_client(Forge(reply), folder=tmp_path)
    for _ in range(5):
        ask(client)
    (spent,) = client.meter.settle(START)
    assert (spent.host, spent.account) == ("forge.example", HERE.id)
    assert spent.calls == {Purpose.QUEUE: 5}
    assert spent.unchanged == {Purpose.QUEUE: 4}


def test_each_try_and_each_move_is_counted():
    forge = Forge(said(502), httpx.Response(301, headers={"location": "/api/v1/moved"}), ok([1]))
    client = a_client(forge)
    ask(client, Purpose.READ)
    assert client.meter.settle(START)[0].calls == {Purpose.READ: 3}


@pytest.mark.parametrize("expect", [(200,), (200, 401)])
def test_a_wrong_token_does_not_hammer_the_forge(expect: tuple[int, ...]):
    clock, forge = Clock(), Forge(said(401, "Bad credentials"))
    client = a_client(forge, clock)
    for _ in range(60):
        with contextlib.suppress(Refused):
            client.call(HERE, "GET", "/issues", purpose=Purpose.QUEUE, expect=expect)
        clock.pass_by(45)
    assert len(forge.asked) < 10
    with pytest.raises(Refused, match="did not accept the token several times") as caught:
        ask(client)
    assert caught.value.status == 401
    forge.replies = [ok([1])]
    assert ask(client, Purpose.SETUP) == [1]
    assert ask(client) == [1]
