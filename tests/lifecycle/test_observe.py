"""What is read from a screen."""

from __future__ import annotations

import pytest

from runs.transcript import screens

RULE = "─" * 60


@pytest.mark.parametrize(
    ("screen", "line"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param("one\n\x1b[32m two \x1b[0m\n\n$ \n", "two", id="colours and an empty prompt"),
        pytest.param(
            f"● Editing\n\n{RULE}\n❯ Try again\n{RULE}\n  bypass permissions on\n",
            "● Editing",
            id="input box",
        ),
        pytest.param(
            f"{RULE}\nReport\n{RULE}\n" + "row\n" * 20, "row", id="rules of a report further up"
        ),
        pytest.param(
            "done\n\nPane is dead (status 7, Sat Nov 21 02:15:37 2026)", "done", id="dead pane"
        ),
        pytest.param("│ inside a box │", "inside a box", id="frame"),
        pytest.param("x" * 400, "x" * 300, id="long"),
    ],
)
def test_the_last_line_that_says_something(screen, line):
    assert screens.last_line(screen) == line
