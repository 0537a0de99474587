"""Which issues are asked about for their blockers: those that could start next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from trackers.forges.blockers import GOOD_FOR, MOST_ASKED, BlockerCache, BlockerQuery, Hint

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


class Forge:
    """Says what issues wait for, and notes who was asked about."""

    def __init__(self, count: int) -> None:
        self.keys = [str(number) for number in range(1, count + 1)]
        self.blocked: dict[str, list[str]] = {}
        self.asked: list[str] = []
        self.waits = BlockerCache()
        self.now = NOW
        self.touch()

    def touch(self, *changed: str) -> None:
        """The queue was read; these issues have changed."""
        old = {key: hint.at for key, hint in self.waits.hints.items()}
        at = {key: self.now if key in changed else old.get(key, NOW) for key in self.keys}
        self.waits.queue({key: Hint(None, at[key]) for key in self.keys})

    def say(self, some: Sequence[str]) -> Mapping[str, Sequence[str]]:
        self.asked += some
        told = {key: self.blocked.get(key, []) for key in some}
        for key, by in told.items():
            self.waits.found(key, by, self.now, is_bare=not by)
        return told

    def turn(self, enough: int) -> tuple[list[str], list[str], int]:
        """Who waits, who was not asked about, and how many were."""
        self.asked = []
        found = BlockerQuery(self.waits, self.keys, enough, self.now, self.say).answers()
        waits = [key for key, by in found.items() if by]
        return waits, [key for key, by in found.items() if by is None], len(self.asked)


def test_the_first_is_asked_about_and_nobody_behind_it() -> None:
    forge = Forge(300)
    assert forge.turn(1) == ([], forge.keys[1:], 1)
    assert forge.turn(1)[2] == 0
    assert forge.turn(3) == ([], forge.keys[3:], 2)


def test_one_that_could_start_is_asked_about_again_after_ten_minutes() -> None:
    forge = Forge(3)
    forge.turn(0)
    forge.now += GOOD_FOR
    assert forge.turn(1) == ([], [], 1)
    assert forge.asked == ["1"]


def test_one_that_changed_is_asked_about_at_once() -> None:
    forge = Forge(3)
    forge.turn(0)
    forge.now += timedelta(seconds=45)
    forge.blocked["1"] = ["9"]
    forge.touch("1")
    assert forge.turn(1) == (["1"], [], 1)


def test_behind_blocked_ones_others_are_asked_about() -> None:
    forge = Forge(20)
    forge.blocked = {str(number): ["99"] for number in range(1, 8)}
    waits, unasked, asked = forge.turn(1)
    assert waits == forge.keys[:7] and asked <= 16
    assert "8" not in unasked and "20" in unasked


def test_no_more_than_two_dozen_are_asked_about_at_once() -> None:
    forge = Forge(300)
    forge.blocked = {key: [f"x{key}"] for key in forge.keys}
    waits, unasked, asked = forge.turn(0)
    assert (len(waits), asked) == (MOST_ASKED, MOST_ASKED)
    assert len(unasked) == 300 - MOST_ASKED


def test_of_those_that_wait_for_the_same_one_is_asked_and_all_are_when_it_is_free() -> None:
    forge = Forge(20)
    forge.blocked = {key: ["99"] for key in forge.keys}
    forge.turn(0)
    forge.now += timedelta(seconds=45)
    assert forge.turn(1) == (forge.keys, [], 1)
    forge.blocked = {}
    waits, _, asked = forge.turn(20)
    assert (waits, asked) == ([], 20)


def test_blocked_ones_are_asked_about_in_turn_those_asked_longest_ago_first() -> None:
    forge = Forge(20)
    forge.blocked = {key: [f"x{key}"] for key in forge.keys}
    forge.turn(0)
    seen: set[str] = set()
    for _ in range(3):
        forge.now += timedelta(seconds=45)
        assert forge.turn(1)[2] == 8
        seen |= set(forge.asked)
    assert seen == set(forge.keys)
