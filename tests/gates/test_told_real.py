"""What failed is typed into a session on real tmux, over and over."""

from __future__ import annotations

from pathlib import Path

import pytest

from runs.core.ports import Order
from runs.core.states import Gate
from runs.gates import rules
from runs.gates.rules import Next, Step
from tests.house.product import until
from tests.real import RealWorld

NAME = "demo~1~afk-7"
HEARS = 'while read -r line; do echo "heard: $line" >> "$0"; done'
MOST = 7


@pytest.mark.row("MALA-V-86", level="real")
def test_each_report_is_seen_to_come_though_the_screen_is_full_of_those_before(
    real: RealWorld, tmp_path: Path
) -> None:
    """One whose end the screen showed already, and that another pushed out of it, was not sent."""
    heard = tmp_path / "heard"
    order = Order(NAME, tmp_path / "order", tmp_path, ["sh", "-c", HEARS, str(heard)], marker="m-7")
    real.sessions.start(order)
    step = Step(Next.TELL, tuple(f"command {number} failed" for number in range(12)))
    for number in range(1, MOST + 1):
        real.sessions.say(NAME, "m-7", rules.message(step, Gate.REVIEW, number, 2))
    until(lambda: heard.exists() and f"on attempt {MOST}." in heard.read_text())
