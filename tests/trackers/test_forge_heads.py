"""What is remembered of pull requests and blockers between ticks, as tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from trackers.base import Pull, PullState
from trackers.forges.blockers import BlockerCache, Hint
from trackers.forges.pulls import EVER, MOST_HEADS, Heads, Seen, newest, reaches

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def entry(minutes: int) -> dict[str, str]:
    return {"updated_at": (NOON + minutes * MINUTE).isoformat()}


def seen(state: PullState, minutes: int | None, number: int = 9, head: str = "afk/7") -> Seen:
    at = None if minutes is None else NOON + minutes * MINUTE
    return Seen(Pull(number, head, state), at)


@pytest.mark.row("X-03", level="pure")
@pytest.mark.parametrize(
    ("entries", "is_back"),
    [
        pytest.param([entry(5), entry(1)], False, id="all later"),
        pytest.param([entry(5), entry(0)], False, id="the very second may hide another"),
        pytest.param([entry(5), entry(-1)], True, id="earlier"),
        pytest.param([entry(-1), entry(5)], True, id="in any order"),
        pytest.param([], False, id="nothing"),
        pytest.param([{"updated_at": "yesterday"}, None], False, id="no time that can be read"),
        pytest.param([{"updated_at": 7}, entry(-1)], True, id="one that can be read"),
    ],
)
def test_whether_a_list_has_come_to_what_was_known(entries: list[Any], is_back: bool) -> None:
    assert reaches(entries, NOON) is is_back


def test_the_newest_change_of_a_list() -> None:
    assert newest([entry(1), entry(5), {"updated_at": None}, "x"]) == NOON + 5 * MINUTE
    assert newest([]) == EVER
    assert newest([{"updated_at": "2026-03-01T12:00:00"}]) == NOON


@pytest.mark.parametrize(
    ("first", "then", "state"),
    [
        pytest.param((PullState.OPEN, 0), (PullState.MERGED, 1), PullState.MERGED, id="newer"),
        pytest.param(
            (PullState.MERGED, 1), (PullState.OPEN, 0), PullState.MERGED, id="older, late"
        ),
        pytest.param(
            (PullState.OPEN, 0), (PullState.MERGED, 0), PullState.MERGED, id="same second"
        ),
        pytest.param((PullState.OPEN, None), (PullState.MERGED, 0), PullState.MERGED, id="no time"),
        pytest.param((PullState.OPEN, 0), (PullState.MERGED, None), PullState.MERGED, id="no more"),
    ],
)
def test_an_older_answer_that_comes_late_changes_nothing(
    first: tuple[PullState, int | None], then: tuple[PullState, int | None], state: PullState
) -> None:
    known = Heads()
    known.learn([seen(*first)])
    known.learn([seen(*then)])

    assert [pull.state for pull in known.of(["afk/7"])] == [state]
    assert known.of(["afk/8"]) == []


def test_as_of_when_a_head_is_known_never_goes_back() -> None:
    known = Heads()
    assert known.complete_since("afk/7") is None

    known.settle(["afk/7"], NOON)
    known.settle(["afk/7"], NOON - MINUTE)
    assert known.complete_since("afk/7") == NOON
    assert known.complete_since("afk/8") is None
    known.settle_all(NOON + MINUTE)
    known.settle_all(NOON)
    assert known.complete_since("afk/8") == known.complete_since("afk/7") == NOON + MINUTE


def test_heads_do_not_pile_up_for_ever() -> None:
    known = Heads()
    for number in range(MOST_HEADS + 2):
        known.settle([f"afk/{number}"], NOON)

    assert len(known.as_of) <= MOST_HEADS
    assert known.complete_since(f"afk/{MOST_HEADS + 1}") == NOON


# What issues wait for.


@pytest.mark.parametrize(
    ("hint", "is_free"),
    [
        pytest.param(Hint(0, NOON), True, id="GitHub says none"),
        pytest.param(Hint(2, NOON), False, id="GitHub says two"),
        pytest.param(Hint(None, NOON), False, id="the forge does not say"),
        pytest.param(Hint(None, None), False, id="nothing is told"),
    ],
)
def test_whether_an_issue_need_not_be_asked_for(hint: Hint, is_free: bool) -> None:
    waits = BlockerCache()
    assert not waits.is_free("7", NOON)

    waits.queue({"7": hint})

    assert waits.is_free("7", NOON) is is_free


def test_a_free_issue_is_looked_at_again_when_it_changed_or_after_a_while() -> None:
    waits = BlockerCache()
    waits.queue({"7": Hint(None, NOON)})
    waits.found("7", (), NOON, is_bare=True)
    waits.found("8", (), NOON, is_bare=True)

    assert waits.is_free("7", NOON + 9 * MINUTE)
    assert not waits.is_free("7", NOON + 10 * MINUTE)
    assert not waits.is_free("8", NOON)
    waits.queue({"7": Hint(None, NOON + MINUTE)})
    assert not waits.is_free("7", NOON + MINUTE)


def test_without_a_time_of_change_a_free_issue_is_asked_for_each_time() -> None:
    waits = BlockerCache()
    waits.queue({"7": Hint(None, None)})
    waits.found("7", (), NOON, is_bare=True)

    assert not waits.is_free("7", NOON)
