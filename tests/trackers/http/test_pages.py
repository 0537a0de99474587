"""Lists of more than one page: read completely, or an error; never a part for the whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.trackers.http.forge import HERE, Clock, Forge, a_client, ok, said
from trackers.account import Purpose
from trackers.errors import NotUnderstood, Unreachable
from trackers.http.client import Client

API = HERE.api


def every(client: Client, size: int = 2, **more: Any) -> list[list[Any]]:
    asked = {"per_page": size, "state": "all"}
    pages = client.pages(HERE, "/pulls", purpose=Purpose.PULLS, params=asked, size=size, **more)
    return list(pages)


def linked(data: object, to: str) -> httpx.Response:
    return ok(data, link=f'<{to}>; rel="next"')


def test_links_are_followed_to_the_end():
    forge = Forge(linked([1, 2], f"{API}/pulls?after=xyz&per_page=2"), ok([3]))
    assert every(a_client(forge)) == [[1, 2], [3]]
    assert forge.queries() == ["per_page=2&state=all", "after=xyz&per_page=2"]


def test_pages_are_numbered_where_there_are_no_links():
    forge = Forge(ok([1, 2]), ok([3, 4]), ok([]))
    assert every(a_client(forge)) == [[1, 2], [3, 4], []]
    assert forge.queries()[1:] == ["per_page=2&state=all&page=2", "per_page=2&state=all&page=3"]


def test_250_pulls_are_read_although_the_forge_gives_less_than_asked():
    def reply(request: httpx.Request) -> httpx.Response:
        page = int(request.url.params.get("page", 1))
        return ok(list(range(250))[(page - 1) * 50 : page * 50], x_total_count="250")

    pages = every(a_client(Forge(reply)), size=100)
    assert [number for page in pages for number in page] == list(range(250))


def test_an_empty_page_in_the_middle_is_not_the_end():
    forge = Forge(linked([1, 2], f"{API}/pulls?page=2"), linked([], f"{API}/pulls?page=3"), ok([3]))
    assert every(a_client(forge)) == [[1, 2], [], [3]]


def test_an_error_on_a_later_page_is_no_short_list():
    forge = Forge(linked([1, 2], f"{API}/pulls?page=2"), said(500))
    pages = a_client(forge).pages(HERE, "/pulls", purpose=Purpose.PULLS, params={}, size=2)
    assert next(pages) == [1, 2]
    with pytest.raises(Unreachable):
        next(pages)


def test_pages_are_asked_for_as_they_are_taken():
    forge = Forge(linked([1, 2], f"{API}/pulls?page=2"), ok([3]))
    pages = a_client(forge).pages(HERE, "/pulls", purpose=Purpose.PULLS, params={}, size=2)

    assert next(pages) == [1, 2]
    assert len(forge.asked) == 1


def test_a_list_without_an_end_is_not_understood():
    forge = Forge(linked([1, 2], f"{API}/pulls?page=2"))
    with pytest.raises(NotUnderstood, match="more than 5 pages"):
        every(a_client(forge), most=5)
    assert len(forge.asked) == 5


def test_a_list_that_never_pages_is_read_once():
    """Some lists say all at once, whatever page is asked for."""
    forge = Forge(ok([1, 2, 3]))
    assert every(a_client(forge)) == [[1, 2, 3]]
    assert len(forge.asked) == 2


def test_a_list_that_takes_for_ever_is_given_up():
    clock = Clock()

    def reply(request: httpx.Request) -> httpx.Response:
        clock.pass_by(7)
        return linked([1], f"{API}/pulls?page={len(forge.asked) + 1}")

    forge = Forge(reply)
    with pytest.raises(Unreachable, match="too long"):
        every(a_client(forge, clock))
    assert len(forge.asked) < 7


@pytest.mark.parametrize("data", [{}, "text", 7, None, {"items": 1}, {"pulls": {}}])
def test_something_that_is_no_list_is_not_understood(data: object):
    with pytest.raises(NotUnderstood, match="no list"):
        every(a_client(Forge(ok(data))), within="pulls" if isinstance(data, dict) else "")


def test_a_list_inside_of_something_is_found():
    assert every(a_client(Forge(ok({"total_count": 1, "runs": [1]}))), within="runs") == [[1]]


@pytest.mark.parametrize(
    "link",
    [
        "http://localhost:3000/api/v1/pulls?page=2&limit=2",
        "https://elsewhere.example/steal?page=2&limit=2",
        "https://forge.example:8443/api/v1/pulls?page=2&limit=2",
        "https://user:pass@elsewhere.example/api/v1/pulls?page=2&limit=2",
    ],
)
def test_a_link_to_another_name_is_asked_here(link: str):
    forge = Forge(linked([1, 2], link), ok([3]))
    assert every(a_client(forge)) == [[1, 2], [3]]
    assert str(forge.asked[1].url) == f"{API}/pulls?page=2&limit=2"


def test_a_link_that_is_no_address_is_not_understood():
    with pytest.raises(NotUnderstood):
        every(a_client(Forge(linked([1, 2], "http://[/"))))


def test_what_came_to_a_full_page_that_did_not_change_is_seen(tmp_path: Path):
    """The first page stays the same when the list grows beyond it; its kept link says nothing."""
    numbers = [1, 2]

    def reply(request: httpx.Request) -> httpx.Response:
        page = int(request.url.params.get("page", 1))
        part = numbers[(page - 1) * 2 : page * 2]
        if request.headers.get("if-none-match") == f'"{part}"':
            return httpx.Response(304)
        return ok(part, etag=f'"{part}"', link='<https://forge.example/x>; rel="first"')

    client = a_client(Forge(reply), folder=tmp_path)
    assert every(client) == [[1, 2]]
    numbers.append(3)
    assert every(client) == [[1, 2], [3]]
    assert every(client) == [[1, 2], [3]]
