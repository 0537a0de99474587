"""Whether a list goes on, row by row."""

from __future__ import annotations

import pytest

from trackers.http.rules import Next, Page, after, next_address

A = "https://api.example/repositories/1/issues?page=2"
LINK = {"link": f'<{A}>; rel="next", <https://api.example/x?page=9>; rel="last"'}
LAST = {"link": '<https://api.example/x?page=1>; rel="first"'}


def total(number: object) -> dict[str, str]:
    return {"x-total-count": str(number)}


@pytest.mark.parametrize(
    ("page", "then"),
    [
        pytest.param(Page(1, 100, 100, 100, LINK), Next(2, A), id="a link"),
        pytest.param(Page(1, 0, 0, 100, LINK), Next(2, A), id="empty, but a link"),
        pytest.param(Page(1, 7, 7, 100, LINK), Next(2, A), id="short, but a link"),
        pytest.param(Page(2, 100, 100, 100, LAST), None, id="full, the link knows no next"),
        pytest.param(Page(1, 100, 100, 100, LAST, was_unchanged=True), Next(2), id="full and unchanged: the link may be old"),
        pytest.param(Page(1, 99, 99, 100, LAST, was_unchanged=True), None, id="unchanged, not full"),
        pytest.param(Page(1, 100, 100, 100, {}), Next(2), id="full, nothing said"),
        pytest.param(Page(1, 99, 99, 100, {}), None, id="not full, nothing said"),
        pytest.param(Page(1, 0, 0, 100, {}), None, id="empty, nothing said"),
        pytest.param(Page(2, 100, 100, 100, {}, repeats=True), None, id="a list that does not page"),
        pytest.param(Page(1, 50, 50, 50, total(51)), Next(2), id="a total"),
        pytest.param(Page(1, 50, 50, 50, total(50)), None, id="a total that is reached"),
        pytest.param(Page(2, 0, 50, 50, total(120)), Next(3), id="an empty page in the middle"),
        pytest.param(Page(3, 0, 50, 50, total(120)), None, id="an empty page at the end"),
        pytest.param(Page(1, 0, 0, 50, total(120)), Next(2), id="an empty page at the beginning"),
        pytest.param(Page(1, 20, 20, 50, total(45)), Next(2), id="a forge that gives less than asked"),
        pytest.param(Page(3, 5, 20, 50, total(45)), None, id="such a forge at its end"),
        pytest.param(Page(1, 50, 50, 50, total(50), was_unchanged=True), Next(2), id="unchanged: the total may be old"),
        pytest.param(Page(1, 50, 50, 50, total("many")), Next(2), id="a total that is none"),
        pytest.param(Page(1, 50, 50, 50, total("9" * 30)), Next(2), id="an absurd total"),
    ],
)  # fmt: skip
def test_what_follows_a_page(page: Page, then: Next | None):
    assert after(page) == then


@pytest.mark.parametrize(
    ("link", "address"),
    [
        ("", ""),
        (LINK["link"], A),
        (
            '<https://a/x?page=1>; rel="prev", <https://a/x?page=3>; rel="next"',
            "https://a/x?page=3",
        ),
        ("<https://a/x?page=3>;rel=next", "https://a/x?page=3"),
        ('<https://a/x?a=1,2;3&page=3>; title="x"; rel="next"', "https://a/x?a=1,2;3&page=3"),
        ('<https://a/x>; rel="prefetch next"', "https://a/x"),
        ('<https://a/x>; rel="nextish"', ""),
        ("garbage", ""),
        ('<unfinished; rel="next"', ""),
    ],
)
def test_the_address_of_the_next_page(link: str, address: str):
    assert next_address(link) == address
