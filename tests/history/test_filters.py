"""What an address asks of History: read, said in words, and written again."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from urllib.parse import parse_qsl

import pytest

from runs.history import filters
from runs.history.filters import Place, Sort, Wanted

GONE = "This page of the list is not known; here is the first one."


@pytest.mark.parametrize(
    ("given", "wanted", "wrong"),
    [
        pytest.param({}, Wanted(), {}, id="nothing"),
        pytest.param({"outcome": "died"}, Wanted(outcome="died"), {}, id="outcome"),
        pytest.param({"outcome": "active"}, Wanted(outcome="active"), {}, id="still running"),
        pytest.param({"outcome": "x"}, Wanted(), {"outcome": "There is no such outcome."}, id="none"),
        pytest.param({"project": "2"}, Wanted(project=2), {}, id="project"),
        pytest.param(
            {"project": "3"}, Wanted(), {"project": "There is no such project."}, id="gone project"
        ),
        pytest.param(
            {"project": "٣"}, Wanted(), {"project": "This is not on the list."}, id="other digits"
        ),
        pytest.param(
            {"project": "9" * 30}, Wanted(), {"project": "This is not on the list."}, id="too big"
        ),
        pytest.param({"agent": " Claude "}, Wanted(agent="Claude"), {}, id="spaces around"),
        pytest.param({"model": "x" * 101}, Wanted(), {"model": "At most 100 characters."}, id="long"),
        pytest.param(
            {"text": "a\0b"}, Wanted(), {"text": "This holds characters that no text has."}, id="NUL"
        ),
        pytest.param({"person": "bert"}, Wanted(person="bert"), {}, id="person"),
        pytest.param(
            {"since": "2026-11-01", "until": "2026-11-01"},
            Wanted(since=date(2026, 11, 1), until=date(2026, 11, 1)),
            {},
            id="one day",
        ),
        pytest.param(
            {"since": "2026-11-02", "until": "2026-11-01"},
            Wanted(since=date(2026, 11, 2)),
            {"until": "The last day is before the first."},
            id="days the wrong way round",
        ),
        pytest.param(
            {"since": "yesterday", "until": "2026-02-30"},
            Wanted(),
            {"since": "Write a day as 2026-11-21.", "until": "Write a day as 2026-11-21."},
            id="no days",
        ),
        pytest.param(
            {"least": "$1.50", "most": "2,25"},
            Wanted(least=Decimal("1.50"), most=Decimal("2.25")),
            {},
            id="money",
        ),
        pytest.param({"least": "0"}, Wanted(least=Decimal(0)), {}, id="nothing is an amount"),
        *(
            pytest.param(
                {"least": text}, Wanted(), {"least": "Write an amount in dollars, like 2.50."}, id=text
            )
            for text in ("-1", "NaN", "1e99", "Infinity", "much")
        ),
        pytest.param(
            {"least": "5", "most": "4"},
            Wanted(least=Decimal(5)),
            {"most": "The most is below the least."},
            id="money the wrong way round",
        ),
        pytest.param({"sort": "-cost"}, Wanted(sort=Sort.COST), {}, id="order"),
        pytest.param(
            {"sort": "id; --"}, Wanted(), {"sort": "The list cannot be sorted by that."}, id="no order"
        ),
        pytest.param({"after": "x", "at": "y"}, Wanted(), {"after": GONE, "at": GONE}, id="no page"),
        pytest.param({"at": "9" * 19}, Wanted(), {"at": GONE}, id="beyond time"),
    ],
)  # fmt: skip
def test_an_address_is_read(given: dict[str, str], wanted: Wanted, wrong: dict[str, str]) -> None:
    asked = filters.read(given, {1, 2})
    assert (asked.wanted, asked.wrong) == (wanted, wrong)
    assert asked.typed == {name: text.strip() for name, text in given.items()}


def test_an_address_is_written_as_it_is_read() -> None:
    wanted = Wanted(
        2, "timed_out", "Claude Code", "opus", "anna", date(2026, 1, 2), date(2026, 3, 4), "a&b=ü",
        Decimal("0.5"), Decimal(7), Sort.TOOK_UP,
    )  # fmt: skip
    place = Place(17, datetime(2026, 11, 23, 4, 5, 6, 789, UTC))
    written = filters.address(wanted, place)
    asked = filters.read(dict(parse_qsl(written[1:])))
    assert (asked.wanted, asked.place, asked.wrong) == (wanted, place, {})
    assert filters.address(Wanted()) == "?"
    assert filters.address(Wanted(), sort=Sort.COST) == "?sort=-cost"


@pytest.mark.parametrize(
    ("wanted", "project", "said"),
    [
        (Wanted(), "", "All runs"),
        (Wanted(project=2, outcome="timed_out"), "billing", "billing · timed out"),
        (Wanted(project=2), "", "project 2"),
        (
            Wanted(outcome="active", agent="Codex", person="anna", text="retry"),
            "",
            "still running · Codex · started by anna · “retry”",
        ),
        (
            Wanted(since=date(2026, 11, 1), least=Decimal("2.50"), most=Decimal(0)),
            "",
            "since 2026-11-01 · cost at least $2.50 · cost at most $0",
        ),
    ],
)
def test_filters_are_said_in_words(wanted: Wanted, project: str, said: str) -> None:
    assert filters.words(wanted, project) == said
    assert wanted.is_narrowed == (wanted != Wanted())


def test_each_order_has_its_opposite_and_its_words() -> None:
    assert all(one.other.other is one and one.words != one.other.words for one in Sort)
