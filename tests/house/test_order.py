"""Files that wait for programs are spread evenly among those that compute."""

from __future__ import annotations

import pytest

from tests import order
from tests.house.product import ROOT


@pytest.mark.parametrize(
    "waiting, computing, together",
    [
        ("AB", "abcd", "AabBcd"),
        ("ABC", "ab", "ABaCb"),
        ("A", "", "A"),
        ("", "ab", "ab"),
    ],
)
def test_both_kinds_keep_their_order_and_take_turns(
    waiting: str, computing: str, together: str
) -> None:
    assert "".join(order.interleaved(waiting, computing)) == together


def test_what_starts_most_programs_begins_first() -> None:
    assert sorted(["web", "agents", "story"], key=order.place) == ["story", "agents", "web"]


def test_what_takes_longest_begins_before_all_others_and_is_there() -> None:
    files = [("story", "test_gates.py"), ("web", "test_every_page_look.py"), ("web", "test_x.py")]
    assert sorted(files, key=lambda one: order.place(*one))[0] == files[1]
    assert [name for name in order.LONG if not (ROOT / "tests" / name).is_file()] == []
