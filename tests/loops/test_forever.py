"""`./lab loop --forever` on a clock that the test moves: when the next loop begins, and which one."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest

from runs.core.refusal import ActRefused
from runs.loop_command.command import Command, HumanLines
from runs.loop_command.forever import Forever


class Scripted:
    """A loop that ends with a code as soon as one is given."""

    def __init__(self) -> None:
        self.code: int | None = None
        self.pressed = 0
        self.was_left = False

    def press(self, times: int) -> int | None:
        self.pressed = times
        return None

    def news(self) -> int | None:
        return self.code

    def leave(self) -> None:
        self.was_left = True


class Day:
    """One command, its clock, and the loops that it began."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.loops = [Scripted()]
        self.told: list[int] = []
        self.refuses = False
        self.forever = Forever(self.loops[0], self._begin, lambda: self.now)

    def _begin(self, code: int) -> Scripted:
        self.told.append(code)
        if self.refuses:
            raise ActRefused("Error: nothing is ready.")
        self.loops.append(Scripted())
        return self.loops[-1]

    def ends(self, code: int) -> None:
        self.loops[-1].code = code
        assert self.forever.news() is None

    def after(self, seconds: float) -> int:
        """How many loops there are so long after."""
        self.now += seconds
        assert self.forever.news() is None
        return len(self.loops)


@pytest.mark.row("RALPH-72", level="contract")
@pytest.mark.parametrize(("code", "pause"), [(0, 300), (3, 0), (1, 60), (2, 60), (130, 60)])
def test_the_next_loop_begins_after_the_pause_of_the_code_before(code, pause):
    day = Day()
    day.ends(code)
    if pause:
        assert day.after(pause - 1) == 1
        assert day.after(1) == 2
    else:
        assert day.after(0) == 2
    assert day.told == [code]


def test_a_start_that_is_refused_is_tried_again_after_a_minute(capsys):
    day = Day()
    day.refuses = True
    day.ends(0)
    assert day.after(300) == 1
    assert "Error: nothing is ready." in capsys.readouterr().err
    assert day.after(59) == 1
    day.refuses = False
    assert day.after(1) == 2
    assert day.told == [0, 0], "a refusal is no end of the loop before"


def test_ctrl_c_ends_it_with_the_loop_that_runs_or_at_once_between_two():
    day = Day()
    assert day.forever.press(1) is None
    assert day.loops[0].pressed == 1
    day.loops[0].code = 130
    assert day.forever.news() == 130

    between = Day()
    between.ends(0)
    assert between.forever.press(1) == 130
    assert (between.loops[0].was_left, day.loops[0].was_left) == (True, False)


@pytest.mark.parametrize(
    ("prompt", "code", "asked"),
    [
        ("", 0, ("", False)),
        ("", 1, ("", False)),
        ("Count", 0, ("", False)),
        ("Count", 2, ("7", True)),
    ],
)
def test_what_is_asked_for_after_a_loop(monkeypatch, prompt, code, asked):
    seen: list[Command] = []
    monkeypatch.setattr(Command, "one", lambda command: seen.append(command))
    typed = Command("demo", "", False, {}, HumanLines(StringIO()), prompt)
    replace(typed, goes_on=True).after(code, "7")
    assert (seen[0].issue, seen[0].continues) == asked
    assert seen[0].prompt == ("" if asked[1] else prompt)


def test_a_loop_that_begins_anew_in_place_is_followed_on_also_once_it_has_ended(monkeypatch):
    loops: list[Scripted] = []

    def one(command: Command) -> Scripted:
        loops.append(Scripted())
        return loops[-1]

    monkeypatch.setattr(Command, "one", one)
    typed = Command("demo", "", False, {}, HumanLines(StringIO()), goes_on=True)
    forever = typed.begin()
    assert isinstance(forever, Forever)
    loops[0].code = 3
    assert forever.news() is None  # a restart
    assert forever.news() is None
    loops[0].code = 0
    assert forever.news() is None
    assert forever.press(1) == 130  # between two loops, so that its end was told
    assert len(loops) == 1
