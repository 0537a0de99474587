"""The screen of a session, recorded on real tmux while no process of the product runs."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from runs.core import masking
from runs.core.ports import Order
from runs.transcript import frames
from runs.transcript.camera import Film
from runs.transcript.frames import Frame, Screen

NAME = "demo~1~afk-7"


def begin(real: Any, code: str, limit: int = 1_000_000, **more: Any) -> Path:
    folder: Path = real.folder / NAME
    argv = [sys.executable, "-c", "import os,sys,time\n" + code]
    marker = real.folder.name
    real.sessions.start(
        Order(NAME, folder, real.folder, argv, marker=marker, recording=limit, columns=100, **more)
    )
    return folder


def seen(folder: Path) -> tuple[list[Frame], Screen, list[str]]:
    """All frames, the screen after them, and what went off its top."""
    found, screen, gone = [], Screen(), []
    for name in frames.FILES:
        path = folder / name
        for frame in frames.told(path.read_bytes()) if path.exists() else ():
            found.append(frame)
            gone += screen.apply(frame)
    return found, screen, gone


def shows(folder: Path, text: str) -> bool:
    return text in "\n".join(seen(folder)[1].lines)


def camera_of(real: Any) -> list[int]:
    """The recording child: it was forked from the launcher, and has no terminal."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            stat = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        # The tmux server has the command of its first session as its own.
        is_ours = words[0] == sys.executable.encode() and str(real.folder / NAME).encode() in words
        if is_ours and stat[4] == "0" and stat[0] != "Z":
            found.append(int(entry.name))
    return found


@pytest.mark.row("LAB-130", level="real")
def test_a_screen_is_recorded_with_what_went_past_and_without_secrets(real: Any) -> None:
    secret = "gLp-Kq3vX9tR7wZ2mN5b"
    code = (
        "print('hello'); time.sleep(0.8)\n"
        "for n in range(120): print('line', n)\n"
        f"print('\\033[31m{secret[:9]}\\033[32m{secret[9:]}\\033[0m end', flush=True); time.sleep(600)"
    )
    folder = begin(real, code, files={masking.FILE: json.dumps([secret])})
    real.until(lambda: shows(folder, "end"))
    found, screen, gone = seen(folder)
    assert found[0].whole == frames.FIRST
    assert found[0].size == screen.size == (100, 48)
    text = "\n".join([*gone, *screen.lines])
    assert [f"line {n}" for n in range(120)] == [x for x in text.split("\n") if "line" in x]
    assert "hello" in text
    assert "[hidden]" in text
    raw = b"".join((folder / n).read_bytes() for n in frames.FILES if (folder / n).exists())
    assert secret[:9].encode() not in raw
    assert secret[9:].encode() not in raw
    assert not (folder / masking.FILE).exists()
    assert (folder / frames.FILES[0]).stat().st_mode & 0o777 == 0o600
    size = len(raw)
    real.sessions.kill(NAME, real.folder.name)
    assert sum((folder / n).stat().st_size for n in frames.FILES if (folder / n).exists()) >= size


@pytest.mark.row("LAB-130", level="real")
def test_a_recorder_that_is_killed_begins_anew_and_says_that_it_saw_nothing_meanwhile(
    real: Any,
) -> None:
    folder = begin(
        real,
        "print('one', flush=True); sys.stdin.readline(); print('two', flush=True); time.sleep(600)",
    )
    real.until(lambda: shows(folder, "one"))
    (camera,) = camera_of(real)
    os.kill(camera, signal.SIGKILL)
    real.until(lambda: camera_of(real) not in ([], [camera]))
    real.sessions.press(NAME, real.folder.name, "Enter")
    real.until(lambda: shows(folder, "two"))
    kinds = [frame.whole for frame in seen(folder)[0] if frame.whole]
    assert kinds == [frames.FIRST, frames.GAP]


def test_the_last_screen_of_a_program_is_recorded_and_nothing_of_the_recorder_stays(
    real: Any,
) -> None:
    last = (
        "print('up', flush=True); sys.stdin.readline(); print('the last', flush=True); sys.exit(3)"
    )
    folder = begin(real, last)
    real.until(lambda: shows(folder, "up"))  # a program may be over before its recorder has begun
    real.sessions.press(NAME, real.folder.name, "Enter")
    real.until(lambda: not real.sessions.look()[NAME].alive)
    assert real.sessions.exit_of(folder).status == 3
    assert shows(folder, "the last")
    real.until(lambda: camera_of(real) == [])
    assert not (folder / frames.PIPE).exists()


def test_without_room_for_it_nothing_is_kept_and_the_pipe_tells_of_changes(real: Any) -> None:
    folder = begin(real, "print('one', flush=True); time.sleep(600)", limit=0)
    real.until(lambda: "one" in real.sessions.screens([NAME]).get(NAME, ""))
    assert (folder / frames.PIPE).is_fifo()
    assert not any((folder / name).exists() for name in frames.FILES)
    # Told to end while nothing is printed it does, or each end of an agent would wait for it.
    real.until(lambda: camera_of(real))  # it may leave the terminal after its agent has begun
    (camera,) = camera_of(real)
    os.kill(camera, signal.SIGTERM)
    real.until(lambda: camera not in camera_of(real))


def test_of_a_long_recording_the_middle_gives_way(tmp_path: Path) -> None:
    film = Film(str(tmp_path), 4000)
    at = 0
    for _ in range(60):
        for _ in range(5):
            at += 1
            film.keep(Frame(float(at), by=[(0, 1, ["x" * 40])]))
        if film.is_full:
            film.turn()
            film.keep(Frame(float(at), frames.KEY, film.number, (80, 1), ["x"]))
    sizes = [(tmp_path / name).stat().st_size for name in frames.FILES]
    assert sum(sizes) < 4000 + 3 * 500
    kept = [
        [one.at for one in frames.told((tmp_path / name).read_bytes())] for name in frames.FILES
    ]
    assert kept[0][0] == 1.0
    assert max(map(max, kept)) == 300.0
    again = Film(str(tmp_path), 4000)
    assert (again.is_new, again.number) == (False, film.number)
