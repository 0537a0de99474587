"""The client: what it sends, what it makes of answers, and what it never does."""

from __future__ import annotations

import json
import tempfile
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trackers.http.forge import HERE, TOKEN, Clock, Forge, a_client, ok, said
from trackers.account import Account, Purpose
from trackers.errors import (
    NotFound,
    NotUnderstood,
    RateLimited,
    Refused,
    TrackerError,
    Unreachable,
)
from trackers.http.client import Answer, Client


def ask(client: Client, method: str = "GET", **more: object) -> Answer:
    return client.call(HERE, method, "/repos/o/r/issues", purpose=Purpose.READ, **more)  # type: ignore[arg-type]


def test_a_call_goes_below_the_api_root_with_the_credential_in_one_header():
    forge = Forge(ok([{"number": 1}]))
    answer = ask(a_client(forge), params={"labels": "ready for agent", "page": 1})
    sent = forge.asked[0]
    assert answer.data == [{"number": 1}]
    assert str(sent.url) == (
        "https://forge.example/api/v1/repos/o/r/issues?labels=ready+for+agent&page=1"
    )
    assert sent.headers["authorization"] == f"Bearer {TOKEN}"
    assert sent.headers["user-agent"] == "labsite"


@pytest.mark.parametrize(
    ("reply", "error", "sent"),
    [
        pytest.param(said(500), Unreachable, 3, id="500"),
        pytest.param(said(502), Unreachable, 3, id="502"),
        pytest.param(said(503), Unreachable, 3, id="503"),
        pytest.param(said(504), Unreachable, 3, id="504"),
        pytest.param(said(501), Unreachable, 1, id="501 does not pass"),
        pytest.param(httpx.ConnectError("no"), Unreachable, 3, id="no connection"),
        pytest.param(httpx.ReadError("no"), Unreachable, 3, id="broke off"),
        pytest.param(said(401, "Bad credentials"), Refused, 1, id="401"),
        pytest.param(said(403, "Resource not accessible"), Refused, 1, id="403 is no access"),
        pytest.param(said(404, "Not Found"), NotFound, 1, id="404"),
        pytest.param(said(410, "Issues are disabled"), NotFound, 1, id="410"),
        pytest.param(said(409, "Head changed"), Refused, 1, id="409"),
        pytest.param(said(422, "Validation Failed"), Refused, 1, id="422"),
        pytest.param(said(429), RateLimited, 1, id="429"),
        pytest.param(said(403, "You exceeded a secondary rate limit"), RateLimited, 1, id="403"),
        pytest.param(httpx.Response(200, text="<html>Hi"), NotUnderstood, 1, id="a web page"),
        pytest.param(httpx.Response(200, text='[{"a": 1'), NotUnderstood, 1, id="half a JSON"),
        pytest.param(httpx.Response(200, text="[NaN]"), NotUnderstood, 1, id="no JSON number"),
        pytest.param(httpx.Response(200, text="[" * 10**6), NotUnderstood, 1, id="too deep"),
        pytest.param(httpx.Response(200, content=b'["\xff"]'), NotUnderstood, 1, id="no UTF-8"),
        pytest.param(httpx.Response(206, json=[]), NotUnderstood, 1, id="not what was asked"),
        pytest.param(httpx.Response(304), NotUnderstood, 1, id="unchanged, but nothing is kept"),
    ],
)
def test_each_bad_answer_has_its_error(
    reply: httpx.Response | Exception, error: type[TrackerError], sent: int
):
    forge = Forge(reply)
    with pytest.raises(error) as caught:
        ask(a_client(forge))
    assert type(caught.value) is error
    assert len(forge.asked) == sent
    assert "forge.example" in str(caught.value)


@pytest.mark.parametrize("method", ["POST", "PATCH"])
@pytest.mark.parametrize(
    "reply", [said(500), said(502), said(503), httpx.ConnectError("no"), httpx.ReadError("no")]
)
def test_what_could_happen_twice_is_never_sent_again(method: str, reply: httpx.Response):
    forge = Forge(reply)
    with pytest.raises(Unreachable):
        ask(a_client(forge), method, json={"title": "One"})
    assert len(forge.asked) == 1


def test_trouble_that_passes_is_waited_out():
    clock, forge = Clock(), Forge(said(502), httpx.ReadError("no"), ok([1]))
    assert ask(a_client(forge, clock)).data == [1]
    assert clock.pauses == [0.25, 0.5]


def test_a_call_may_ask_not_to_be_repeated():
    forge = Forge(said(502))
    with pytest.raises(Unreachable):
        ask(a_client(forge), "PUT", retry=False)
    assert len(forge.asked) == 1


def test_nothing_is_repeated_beyond_the_time_of_a_call():
    clock = Clock()

    def slow(_: httpx.Request) -> httpx.Response:
        clock.pass_by(7.9)
        return said(502)

    forge = Forge(slow)
    with pytest.raises(Unreachable):
        ask(a_client(forge, clock))
    assert len(forge.asked) == 1
    assert clock.pauses == []


def test_a_repeated_delete_says_what_it_found():
    """What the first try did is for the caller to know: gone is what was wanted."""
    forge = Forge(httpx.ReadError("no"), said(404))
    assert ask(a_client(forge), "DELETE", expect=(204, 404)).status == 404


def moved(status: int, location: str) -> httpx.Response:
    return httpx.Response(status, headers={"location": location})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "location",
    [
        "https://forge.example/api/v1/repositories/7",
        "https://forge.example:443/api/v1/repositories/7",
        "https://me:pass@forge.example/api/v1/repositories/7#top",
        "/api/v1/repositories/7",
        "../../../repositories/7",
    ],
)
def test_a_renamed_repository_is_followed(status: int, location: str):
    forge = Forge(moved(status, location), ok([1]))
    answer = ask(a_client(forge))
    assert answer.data == [1]
    assert answer.moved_to == "https://forge.example/api/v1/repositories/7"
    assert forge.asked[1].headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize(
    "location",
    [
        "https://elsewhere.example/api/v1/x",
        "//elsewhere.example/api/v1/x",
        "http://forge.example/api/v1/x",
        "https://forge.example:8443/api/v1/x",
        "https://forge.example@elsewhere.example/x",
        "https://sub.forge.example/x",
        "ftp://forge.example/x",
    ],
)
def test_the_credential_never_goes_to_another_origin(location: str):
    forge = Forge(moved(302, location), ok([1]))
    with pytest.raises(Refused, match="does not send a token to another place"):
        ask(a_client(forge))
    assert len(forge.asked) == 1


@pytest.mark.parametrize("location", ["http://[", "https://forge.example:port/x", "\x00"])
def test_a_move_to_nowhere_is_not_understood(location: str):
    with pytest.raises((NotUnderstood, Refused)):
        ask(a_client(Forge(moved(302, location))))


def test_a_move_in_circles_is_not_understood():
    forge = Forge(moved(302, "/api/v1/repos/o/r/issues"))
    with pytest.raises(NotUnderstood):
        ask(a_client(forge))
    assert len(forge.asked) == 4


@pytest.mark.parametrize("method", ["POST", "PATCH", "PUT", "DELETE"])
@pytest.mark.parametrize("status", [301, 307])
def test_an_act_is_never_sent_on(method: str, status: int):
    forge = Forge(moved(status, "/api/v1/repositories/7"), ok([1]))
    with pytest.raises(Refused, match="was moved"):
        ask(a_client(forge), method)
    assert len(forge.asked) == 1


@pytest.mark.parametrize(
    "path",
    ["issues", "", "/repos/../user", "/repos/./x", "/x?token=1", "/x#y", "/x\\..\\y", "//../x"],
)
def test_a_path_cannot_leave_the_api(path: str):
    forge = Forge(ok([1]))
    with pytest.raises(Refused):
        a_client(forge).call(HERE, "GET", path, purpose=Purpose.READ)
    assert forge.asked == []


@pytest.mark.parametrize("path", ["//elsewhere.example/x", "/@elsewhere.example/x", "/:80@x/"])
def test_a_path_cannot_change_the_host(path: str):
    forge = Forge(ok([1]))
    a_client(forge).call(HERE, "GET", path, purpose=Purpose.READ)
    assert forge.asked[0].url.host == "forge.example"


@pytest.mark.parametrize(
    "api", ["", "forge.example", "ftp://forge.example", "http://", "http://[", "file:///x"]
)
def test_an_api_that_is_no_address_is_refused(api: str):
    with pytest.raises(Refused):
        a_client(Forge(ok())).call(Account(api, TOKEN), "GET", "/x", purpose=Purpose.READ)


def test_no_cookie_is_kept():
    forge = Forge(ok([1], set_cookie="session=1; Path=/"), ok([2]))
    client = a_client(forge)
    ask(client)
    ask(client)
    assert "cookie" not in forge.asked[1].headers


def test_without_a_credential_none_is_sent():
    forge = Forge(ok([1]))
    a_client(forge).call(Account(HERE.api), "GET", "/x", purpose=Purpose.READ)
    assert "authorization" not in forge.asked[0].headers


def test_an_error_page_of_a_status_that_was_expected_is_an_answer_without_data():
    answer = ask(a_client(Forge(httpx.Response(404, text="<html>"))), expect=(200, 404))
    assert (answer.status, answer.data) == (404, None)


def test_nothing_is_left_of_a_deleted_thing():
    answer = ask(a_client(Forge(httpx.Response(204))), "DELETE", expect=(204,))
    assert (answer.status, answer.data) == (204, None)


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/labels/a%20b", "/labels/a%20b"),
        ("/labels/a%2Fb%3Fc%23d%25e", "/labels/a%2Fb%3Fc%23d%25e"),
        ("/labels/é", "/labels/%C3%A9"),
        ("/labels/100%25", "/labels/100%25"),
    ],
)
def test_a_quoted_path_arrives_as_it_was_quoted(path: str, sent: str):
    forge = Forge(ok([1]))
    a_client(forge).call(HERE, "GET", path, purpose=Purpose.READ)
    assert forge.asked[0].url.raw_path == f"/api/v1{sent}".encode()


NAMES = st.sampled_from(
    [
        "retry-after",
        "date",
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
        "x-ratelimit-resource",
        "link",
        "x-total-count",
        "etag",
        "last-modified",
        "cache-control",
        "location",
        "content-encoding",
        "content-type",
    ]
)
VALUES = st.one_of(
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40),
    st.integers(-(10**30), 10**30).map(str),
    st.datetimes().map(lambda at: at.strftime("%a, %d %b %Y %H:%M:%S GMT")),
    st.sampled_from(['<https://forge.example/x?page=2>; rel="next"', "gzip", "0", '"a"', "//x"]),
)
BODIES = st.one_of(
    st.binary(max_size=60),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8)),
        lambda each: st.one_of(
            st.lists(each, max_size=4), st.dictionaries(st.text(max_size=8), each, max_size=4)
        ),
        max_leaves=8,
    ).map(lambda data: json.dumps(data).encode()),
)


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(
    answers=st.lists(
        st.tuples(st.integers(200, 599), st.dictionaries(NAMES, VALUES, max_size=6), BODIES),
        min_size=1,
        max_size=3,
    ),
    method=st.sampled_from(["GET", "POST", "DELETE", "HEAD"]),
)
def test_whatever_a_server_says_ends_as_an_answer_or_as_one_of_our_errors(
    answers: list[tuple[int, dict[str, str], bytes]], method: str
):
    clock = Clock()
    replies = [
        httpx.Response(status, headers=headers, stream=httpx.ByteStream(content))
        for status, headers, content in answers
    ]
    with tempfile.TemporaryDirectory() as folder:
        client = a_client(Forge(*replies), clock, Path(folder))
        for _ in range(3):
            try:
                answer = ask(client, method)
                assert answer.status == 200
                json.dumps(answer.data).encode()
            except RateLimited as error:
                assert timedelta(0) < error.until - clock.now() <= timedelta(hours=1)
            except TrackerError as error:
                assert str(error).isprintable()
            try:
                for page in client.pages(
                    HERE, "/x", purpose=Purpose.QUEUE, params={}, size=2, most=3
                ):
                    assert isinstance(page, list)
            except TrackerError as error:
                assert str(error).isprintable()


def read(client: Client, *hosts: str) -> str:
    path = "/repos/o/r/actions/jobs/1/logs"
    return client.text(HERE, path, purpose=Purpose.READ, hosts=hosts)


def sent_on(to: str) -> httpx.Response:
    return httpx.Response(302, headers={"location": to})


STORE = "https://results1.store.example/log?sig=secret"


def test_a_text_is_read_as_it_is() -> None:
    assert read(a_client(Forge(httpx.Response(200, content=b"a\xff\n[1")))) == "a\ufffd\n[1"


def test_a_text_in_the_store_of_the_forge_is_read_without_the_token() -> None:
    forge = Forge(sent_on(STORE), httpx.Response(200, text="log"))
    assert read(a_client(forge), ".store.example") == "log"
    first, second = forge.asked
    assert first.headers["authorization"] == f"Bearer {TOKEN}"
    assert (str(second.url), second.headers.get("authorization")) == (STORE, None)
    assert TOKEN not in repr(second.headers)


@pytest.mark.parametrize(
    ("to", "hosts"),
    [
        pytest.param(STORE, (), id="no store is known"),
        pytest.param(STORE.replace("https", "http"), (".store.example",), id="without TLS"),
        pytest.param("https://evilstore.example/x", (".store.example",), id="another name"),
        pytest.param("https://store.example.evil/x", (".store.example",), id="another domain"),
    ],
)
def test_a_text_that_lies_elsewhere_is_refused(to: str, hosts: tuple[str, ...]) -> None:
    forge = Forge(sent_on(to), httpx.Response(200, text="log"))
    with pytest.raises(Refused, match="does not send a token"):
        read(a_client(forge), *hosts)
    assert len(forge.asked) == 1


@pytest.mark.parametrize(
    ("replies", "error"),
    [
        pytest.param([said(404)], NotFound, id="gone"),
        pytest.param([sent_on(STORE), httpx.Response(404, text="x")], NotFound, id="gone there"),
        pytest.param([sent_on(STORE), httpx.Response(403)], Unreachable, id="too late there"),
        pytest.param([sent_on(STORE), httpx.ConnectError("no")], Unreachable, id="store is away"),
        pytest.param([sent_on("/a")], NotUnderstood, id="in a circle"),
        pytest.param([said(403, "no")], Refused, id="no access"),
        pytest.param([httpx.Response(200, html="<html>Log in")], NotUnderstood, id="a web page"),
    ],
)
def test_each_text_that_cannot_be_read_has_its_error(
    replies: list[httpx.Response | Exception], error: type[TrackerError]
) -> None:
    with pytest.raises(error) as caught:
        read(a_client(Forge(*replies)), ".store.example")
    assert type(caught.value) is error
    assert "sig=" not in str(caught.value)
