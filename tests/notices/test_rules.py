"""What is told outside, in what words, and when a failed try is repeated: the rules as tables."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs.core.states import NoticeKind, Outcome
from runs.notices import rules as delivering
from tests.fakes import START

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("tries", "is_final", "minutes"),
    [
        pytest.param(1, False, 1, id="first failure"),
        pytest.param(2, False, 5, id="second"),
        pytest.param(5, False, 240, id="fifth: four hours"),
        pytest.param(6, False, None, id="sixth: given up"),
        pytest.param(1, True, None, id="an address that cannot work is not tried again"),
        pytest.param(0, False, 1, id="nonsense counts as the first"),
    ],
)
def test_failed_tries_are_repeated_at_growing_intervals(
    tries: int, is_final: bool, minutes: int | None
) -> None:
    assert delivering.pause(tries, is_final) == (None if minutes is None else minutes * MINUTE)


@pytest.mark.parametrize(
    ("kind", "outcome", "topic"),
    [
        pytest.param(NoticeKind.RUN_ENDED, "died", "ended.died", id="an end, by its outcome"),
        pytest.param(NoticeKind.AUTO_PAUSED, "", "auto.paused", id="a pause"),
        pytest.param(NoticeKind.DISK_WARNED, "", "disk.warned", id="a full disk"),
        pytest.param(NoticeKind.WATCH_FAILED, "", "watch.failed", id="a failed session"),
        pytest.param(NoticeKind.VALIDATION_STEP, "", "", id="a step of a validation is not told"),
        pytest.param(NoticeKind.WATCH_IDLE, "", "", id="idleness is not told"),
        pytest.param(NoticeKind.RUN_STEP, "", "", id="a step is never told"),
        pytest.param(NoticeKind.DELIVERY_FAILED, "", "", id="a failed delivery tells no more"),
        pytest.param("unknown.kind", "", "", id="an unknown word"),
        pytest.param(NoticeKind.RUN_ENDED, "", "", id="an end without outcome"),
    ],
)
def test_each_timeline_entry_is_one_topic_or_none(kind: str, outcome: str, topic: str) -> None:
    assert delivering.topic_of(kind, outcome) == topic


def test_every_outcome_can_be_chosen_and_few_kinds_are_at_first() -> None:
    keys = [topic.key for topic in delivering.TOPICS]
    assert {f"ended.{outcome.value}" for outcome in Outcome} <= set(keys)
    assert len(keys) == len(set(keys))
    assert set(delivering.AT_FIRST) <= set(keys)
    assert len(delivering.AT_FIRST) <= 7


@pytest.mark.parametrize(
    ("chosen", "minutes", "wanted"),
    [
        pytest.param(["ended.died"], 0, True, id="chosen"),
        pytest.param(["auto.paused"], 0, False, id="not chosen"),
        pytest.param(["ended.died"], 1, False, id="from before the address was there"),
        pytest.param([], 0, False, id="nothing chosen"),
    ],
)
def test_an_address_gets_what_it_chose_from_its_first_moment_on(
    chosen: list[str], minutes: int, wanted: bool
) -> None:
    since = START + minutes * MINUTE
    assert delivering.is_wanted("ended.died", chosen, since, START) is wanted


@pytest.mark.row("X-05", level="pure")
@pytest.mark.parametrize(
    ("said", "address"),
    [
        pytest.param(
            "could not reach sEcretTopic at ntfy", "ntfys://ntfy.sh/secrettopic", id="path"
        ),
        pytest.param("bad login p@ss word", "mailtos://u:p%40ss@mail.example", id="encoded"),
        pytest.param("https://hooks.example/T1234/abcd", "slack://T1234/abcd", id="a link of it"),
        pytest.param("line\nsecret7\x1b[31m", "json://host/?key=secret7", id="query, odd letters"),
    ],
)
def test_a_reason_holds_no_part_of_the_address(said: str, address: str) -> None:
    shown = delivering.redacted(said, address).lower()
    for secret in ("secrettopic", "p@ss", "t1234", "abcd", "secret7", "\n", "\x1b"):
        assert secret not in shown


def test_a_letter_says_where_and_what_first_and_links_last() -> None:
    made = delivering.letter(
        "demo #7", "ended.died", "exit\nstatus 3", "https://lab.example/runs/1/"
    )
    assert made.title == "demo #7: a run ended: died"
    assert made.text == "exit status 3\nhttps://lab.example/runs/1/"
    assert "http" not in delivering.letter("demo", "disk.warned", "90 %", "").text
    assert len(delivering.letter("x" * 500, "ended.died", "y" * 9000, "").text) <= 1500


@pytest.mark.parametrize(
    ("seconds", "was_healthy", "healthy", "pings"),
    [
        pytest.param(None, True, True, True, id="never pinged"),
        pytest.param(30, True, True, False, id="half a minute ago"),
        pytest.param(60, True, True, True, id="a minute ago"),
        pytest.param(-30, True, True, True, id="the clock was set back"),
        pytest.param(5, True, False, True, id="turned ill: at once"),
        pytest.param(5, False, False, False, id="still ill"),
        pytest.param(5, False, True, False, id="well again: within the minute"),
    ],
)
def test_a_ping_is_due_once_a_minute(
    seconds: int | None, was_healthy: bool, healthy: bool, pings: bool
) -> None:
    last = None if seconds is None else START - timedelta(seconds=seconds)
    assert delivering.may_ping(START, last, was_healthy, healthy) is pings
