"""Looking at more screens than tmux takes in one command."""

from __future__ import annotations

import pytest

from tests.real import RealWorld


@pytest.mark.row("X-17", level="real")
def test_the_screens_of_a_crowd_are_read_although_tmux_refuses_long_commands(
    real: RealWorld,
) -> None:
    names = [f"{'long-' * 28}{number}" for number in range(50)]
    for name in names:
        real.by_hand(name, "sh", "-c", f"echo I am {name[-6:]}; exec sleep 600")
    gone = "demo~1~afk-7"
    for name in names:
        real.until(lambda name=name: "I am" in real.sessions.screens([name])[name])
    seen = real.sessions.screens([*names[:20], gone, *names[20:]])
    assert set(seen) == set(names)
    assert all(f"I am {name[-6:]}" in text for name, text in seen.items())
