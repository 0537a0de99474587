"""The last line of a run and the dialog it shows, on screens that Claude Code 2.1.197 and Codex 0.169.0 drew at 160x48."""

from __future__ import annotations

from pathlib import Path

import pytest

from runs.transcript import screens
from runs.waits import rules
from runs.web import terminal

SCREENS = Path(__file__).with_name("screens")


@pytest.mark.parametrize(
    ("screen", "line"),
    [
        ("claude_working", "● Bash(echo started; sleep 30)"),
        ("claude_done", "I stop here."),
        ("claude_api_error", "API Error: 500 Internal server error. This is a server-side issue"),
        ("claude_left", "I stop here."),
        ("claude_332_background", "● Done one."),
        ("claude_332_back", "● Done two."),
        ("claude_332_left", "● Second"),
        ("codex_working", "› SLEEPWORK please"),
        ("codex_done", "• All is done here."),
        ("codex_left", ""),
        ("codex_171_interrupted", "■ Conversation interrupted"),
    ],
)
def test_the_last_line_is_about_the_work(screen: str, line: str) -> None:
    found = screens.last_line((SCREENS / f"{screen}.txt").read_text())
    assert found.startswith(line)
    assert bool(found) == bool(line)


@pytest.mark.parametrize(
    ("screen", "line"),
    [
        (
            "● Bash(make test)\n  ⎿  Error: Exit code 1\n     1\n     2\n     … +22 lines (ctrl+o to expand)",
            "Error: Exit code 1",
        ),
        (
            "● Bash(make test)\n  ⎿  ok\n     … +2 lines (ctrl+o to expand)\n✻ Brewed for 1m 2s",
            "⎿  ok",
        ),
        ("• Ran it\n› Ask Codex to do anything\n  gpt · ~/x\n  ← for agents", "• Ran it"),
        ("› Write\n" + "row\n" * 10, "row"),
        ("* one for 2 and two for 3", "* one for 2 and two for 3"),
        ("Working for you since 1999\nError rates are fine", "Error rates are fine"),
    ],
)
def test_other_lines_stay(screen: str, line: str) -> None:
    assert screens.last_line(screen) == line


@pytest.mark.parametrize(
    ("screen", "choices"),
    [
        ("claude_permission", ["Yes", "Yes, and don’t ask again for: git tag *", "No"]),
        ("codex_trust", ["Trust and continue", "Back to Agent Command Center"]),
        (
            "codex_permission",
            [
                "Yes, proceed (y)",
                "Yes, and don't ask again for commands that start with `git tag asked` (p)",
                "No, and tell Codex what to do differently (esc)",
            ],
        ),
    ],
)
def test_a_dialog_is_known(screen: str, choices: list[str]) -> None:
    found = shown(screen)
    assert [one.text for one in found.choices] == choices
    assert (found.is_open, found.cursor) == (True, 1)
    assert found.wants_enter is screen.startswith("codex")


def test_no_other_screen_shows_a_dialog() -> None:
    """Not even where a person gave a list, which both show behind the sign for a choice."""
    names = [path.stem for path in SCREENS.glob("*.txt")]
    open_ones = {name for name in names if shown(name).is_open}
    assert open_ones == {"claude_permission", "codex_trust", "codex_permission"}


def shown(screen: str) -> rules.Dialog:
    return rules.dialog(screens.plain(screens.tidy((SCREENS / f"{screen}.txt").read_text())))


@pytest.mark.parametrize("mark", ["\u202e", "\u2067", "\u061c", "\u200b", "\ufeff", "\U000e0041"])
def test_no_mark_that_turns_text_is_kept_of_a_screen_or_shown_of_it(mark: str) -> None:
    screen = f"● Wrote {mark}gpj.exe\n"
    assert screens.tidy(screen) == "● Wrote gpj.exe"
    assert screens.last_line(screen) == "● Wrote gpj.exe"
    assert mark not in terminal.render(screen)
    assert mark not in terminal.plain(screen)
