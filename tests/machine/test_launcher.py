"""What a session's launcher reads of its order, with and without the C part of `json`."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from runs.machine import launcher

ORDER = {
    "argv": ["agent", "it's “so” \\ \n\t\u2028 \ud83d\ude00", "", "\udcff"],
    "env": {"A": "1", "EMPTY": ""},
    "nofile": 0,
    "recording": 5_000_000_000_000,
    "screen": {"limit": 1.5, "is_secret_shared": False, "tmux": None},
    "wake": [],
}


@pytest.mark.parametrize("has_c", [True, False])
def test_an_order_is_read_as_json_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_c: bool
) -> None:
    if not has_c:
        monkeypatch.setitem(sys.modules, "_json", None)
    text = json.dumps(ORDER)
    (tmp_path / "order.json").write_text(text)
    assert launcher.read_order(str(tmp_path)) == json.loads(text)


def test_an_error_that_is_expected_is_left_and_another_is_not() -> None:
    with launcher.suppress(OSError, ValueError):
        raise FileNotFoundError
    with pytest.raises(KeyError), launcher.suppress(OSError):
        raise KeyError


def test_an_agent_works_where_its_screen_cannot_be_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pane")
    camera = launcher.Camera(str(tmp_path), {"is_secret_shared": True})

    def refuse() -> int:
        raise BlockingIOError

    monkeypatch.setattr(os, "fork", refuse)
    camera.start()
    assert camera.pid == 0
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
