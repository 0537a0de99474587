"""Asking with a validator: what costs nothing, and what is never believed."""

from __future__ import annotations

import threading
from pathlib import Path

import httpx
import pytest

from tests.trackers.http.forge import HERE, Clock, Forge, a_client, http_date, ok, said
from trackers.account import Account, Purpose
from trackers.errors import NotUnderstood, Unreachable
from trackers.http.client import Answer, Client

PATH = "/repos/o/r/pulls"


def by_etag(data: object, etag: str = '"a"', **headers: str):
    """A forge that sends the data unless it is asked with its ETag."""

    def reply(request: httpx.Request) -> httpx.Response:
        if request.headers.get("if-none-match") == etag:
            return httpx.Response(304, headers={"etag": etag})
        return ok(data, etag=etag, **headers)

    return reply


def ask(client: Client, account: Account = HERE, path: str = PATH, **more: object) -> Answer:
    return client.call(account, "GET", path, purpose=Purpose.PULLS, **more)  # type: ignore[arg-type]


def test_an_unchanged_answer_is_the_one_that_was_kept(tmp_path: Path):
    forge = Forge(by_etag([{"number": 1}], link='<https://x>; rel="next"'))
    client = a_client(forge, folder=tmp_path)
    first, second = ask(client), ask(client)
    assert (first.was_unchanged, second.was_unchanged) == (False, True)
    assert first.data == second.data == [{"number": 1}]
    assert second.status == 200
    assert second.headers["link"] == '<https://x>; rel="next"'
    assert client.meter.settle(Clock().now())[0].unchanged == {Purpose.PULLS: 1}


def test_headers_about_a_body_that_is_not_sent_do_no_harm(tmp_path: Path):
    """Some proxies tell of the packing of what they do not send."""
    forge = Forge(ok([1], etag='"a"'), httpx.Response(304, headers={"content-encoding": "br"}))
    client = a_client(forge, folder=tmp_path)
    ask(client)
    assert ask(client).data == [1]


def test_it_is_asked_each_time_and_survives_a_restart(tmp_path: Path):
    forge = Forge(by_etag([1]))
    for _ in range(3):
        ask(a_client(forge, folder=tmp_path))
    assert [request.headers.get("if-none-match") for request in forge.asked] == [None, '"a"', '"a"']


def test_freshness_is_not_believed(tmp_path: Path):
    forge = Forge(ok([1], etag='"a"', cache_control="private, max-age=3600"), ok([2], etag='"b"'))
    client = a_client(forge, folder=tmp_path)
    assert [ask(client).data, ask(client).data] == [[1], [2]]


def test_an_answer_is_kept_for_one_account_only(tmp_path: Path):
    forge = Forge(by_etag([1]))
    client = a_client(forge, folder=tmp_path)
    for account in (
        HERE,
        Account(HERE.api, "another"),
        Account(HERE.api),
        Account("https://forge.example/api/v3", HERE.token),
    ):
        assert not ask(client, account).was_unchanged
    assert ask(client, HERE).was_unchanged


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"params": {"page": 2}}, id="another page"),
        pytest.param({"path": "/repos/o/r/issues"}, id="another path"),
        pytest.param({"headers": {"Accept": "text/x"}}, id="another form"),
    ],
)
def test_an_answer_is_kept_for_one_question_only(tmp_path: Path, more: dict[str, object]):
    client = a_client(Forge(by_etag([1])), folder=tmp_path)
    ask(client)
    assert not ask(client, **more).was_unchanged
    assert ask(client, **more).was_unchanged


def test_a_time_is_used_where_there_is_no_etag(tmp_path: Path):
    clock = Clock()
    then = http_date(clock.now())
    clock.pass_by(3600)
    forge = Forge(ok([1], last_modified=then, date=http_date(clock.now())), httpx.Response(304))
    client = a_client(forge, clock, tmp_path)
    ask(client)
    assert ask(client).was_unchanged
    assert forge.asked[1].headers["if-modified-since"] == then


@pytest.mark.parametrize("damage", [b"", b"{}\n[]", b"\xff" * 40])
def test_a_damaged_file_is_asked_for_anew(tmp_path: Path, damage: bytes):
    forge = Forge(by_etag([1]))
    client = a_client(forge, folder=tmp_path)
    ask(client)
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage)
    assert ask(client).data == [1]
    assert forge.asked[1].headers.get("if-none-match") is None
    assert ask(client).was_unchanged


def test_unchanged_without_anything_kept_is_not_understood(tmp_path: Path):
    with pytest.raises(NotUnderstood):
        ask(a_client(Forge(httpx.Response(304)), folder=tmp_path))


def test_trouble_and_errors_leave_the_kept_answer_alone(tmp_path: Path):
    forge = Forge(ok([1], etag='"a"'), said(500), said(500), said(500), httpx.Response(304))
    client = a_client(forge, folder=tmp_path)
    ask(client)
    with pytest.raises(Unreachable):
        ask(client)
    assert ask(client).data == [1]


@pytest.mark.parametrize("method", ["POST", "PATCH", "PUT", "DELETE", "HEAD"])
def test_only_what_is_read_is_kept(tmp_path: Path, method: str):
    client = a_client(Forge(ok([1], etag='"a"')), folder=tmp_path)
    client.call(HERE, method, PATH, purpose=Purpose.WRITE)
    assert list(tmp_path.iterdir()) == []


def test_what_was_expected_to_be_missing_is_not_kept(tmp_path: Path):
    client = a_client(Forge(said(404, etag='"a"')), folder=tmp_path)
    assert ask(client, expect=(200, 404)).status == 404
    assert list(tmp_path.iterdir()) == []


def test_forgetting_asks_anew(tmp_path: Path):
    client = a_client(Forge(by_etag([1])), folder=tmp_path)
    ask(client)
    client.forget()
    assert not ask(client).was_unchanged


def test_no_credential_is_written_to_the_disk(tmp_path: Path):
    ask(a_client(Forge(by_etag([1])), folder=tmp_path))
    for path in tmp_path.iterdir():
        assert HERE.token.encode() not in path.read_bytes()
        assert HERE.token not in path.name


def test_two_threads_get_whole_answers(tmp_path: Path):
    """While the list changes under them: each answer is one that the forge gave."""
    turn = iter(range(10_000))
    lock = threading.Lock()

    def reply(request: httpx.Request) -> httpx.Response:
        with lock:
            number = next(turn) // 7
        if request.headers.get("if-none-match") == f'"{number}"':
            return httpx.Response(304)
        return ok([number] * 500, etag=f'"{number}"')

    wrong: list[object] = []
    clients = [a_client(Forge(reply), folder=tmp_path) for _ in range(2)]

    def work(client: Client) -> None:
        for _ in range(60):
            data = ask(client).data
            if len(data) != 500 or len(set(data)) != 1:
                wrong.append(data)

    threads = [threading.Thread(target=work, args=(clients[each % 2],)) for each in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
