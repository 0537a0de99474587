"""What changes between two screens, how often one is taken, and a recording read back."""

from __future__ import annotations

import random

import pytest

from runs.transcript import frames
from runs.transcript.frames import Frame, Screen


@pytest.mark.parametrize(
    ("old", "new", "number"),
    [
        ("abc", "abc", 0),
        ("abc", "abx", 1),
        ("abcdef", "bcdefg", 2),  # one off the top, one below
        ("abc", "", 1),
        ("", "abc", 1),
        ("axcye", "abcde", 2),
    ],
)
def test_changes_make_the_new_screen_of_the_old_one(old: str, new: str, number: int) -> None:
    found = frames.changes(list(old), list(new))
    assert frames.changed(list(old), found) == list(new)
    assert len(found) == number


def test_any_two_screens_are_told_apart_short_and_long() -> None:
    chance = random.Random(7)  # noqa: S311
    for size in (5, 40, 600):
        for _ in range(20):
            old = [chance.choice("abcdefgh") for _ in range(chance.randrange(size))]
            new = [*old[chance.randrange(3) :], *(chance.choice("abcxyz") for _ in range(3))]
            if chance.random() < 0.5:
                chance.shuffle(new)
            assert frames.changed(old, frames.changes(old, new)) == new


def test_a_thousand_lines_that_go_up_cost_only_what_is_new() -> None:
    old = [f"line {n}" for n in range(1000)]
    found = frames.changes(old, [*old[5:], *(f"more {n}" for n in range(5))])
    assert sum(len(put) for _, _, put in found) == 5
    found = frames.changes([*old, "* 1 s"], [*old[5:], "more", "* 2 s"])
    assert sum(len(put) for _, _, put in found) == 2


@pytest.mark.parametrize(
    ("number", "before", "after"),
    [(40, 2.0, 0.5), (4, 0.5, 0.5), (1, 0.5, 0.75), (1, 1.9, 2.0), (0, 2.0, 2.0)],
)
def test_a_spinner_is_looked_at_ever_less_often(number: int, before: float, after: float) -> None:
    assert frames.pause(number, before) == after


def test_a_recording_is_read_back_and_what_went_off_the_top_is_told() -> None:
    written = [
        Frame(10.0, frames.FIRST, 1, (80, 2), ["a", "b"]),
        Frame(11.0, by=[(2, 0, ["c", "d"])], lost=3),
    ]
    data = b"".join(one.written() for one in written)
    screen, gone = Screen(), []
    for frame in frames.told(data[:20] + b"\n" + data):
        gone += screen.apply(frame)
    assert (gone, screen.lines, screen.size) == (["a", "b"], ["c", "d"], (80, 2))
    assert [frame.lost for frame in frames.told(data)] == [0, 3]


@pytest.mark.parametrize(
    "line",
    [
        b"no json",
        b"[1]",
        b'{"at": 1}',
        b'{"at": "x", "d": []}',
        b'{"at": 1, "d": [[-1, 0, []]]}',
        b'{"at": 1, "d": [[0, 1e99, []]]}',
        b'{"k": "first", "n": 1, "at": 1, "size": [1], "lines": []}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_frame_is_passed_over(line: bytes) -> None:
    assert frames.read(line) is None


@pytest.mark.parametrize(
    ("codes", "open_"),
    [
        (["31"], "\x1b[31m"),
        (["31", "39"], ""),
        (["31", "32"], "\x1b[32m"),
        (["1;31", "0"], ""),
        (["1;31", ""], ""),
        (["0;1;34"], "\x1b[1;34m"),
        (["1", "2", "22", "4"], "\x1b[4m"),
        (["38;5;208;1"], "\x1b[38;5;208;1m"),
        (["38;2;1;2;3", "48;5;7", "49"], "\x1b[38;2;1;2;3m"),
        (["38:2::1:2:3", "7", "27"], "\x1b[38:2::1:2:3m"),
        (["97", "100"], "\x1b[97;100m"),
        (["38"], "\x1b[38m"),
    ],
)
def test_each_line_has_the_colours_that_are_in_force_where_it_begins(
    codes: list[str], open_: str
) -> None:
    line = "a" + "".join(f"\x1b[{code}m" for code in codes)
    assert frames.coloured(f"{line}\nb\nc") == [line, f"{open_}b", f"{open_}c"]
