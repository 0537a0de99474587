"""Folders to make something in: gone at the end, gone after a kill, and nobody else's."""

from __future__ import annotations

import fcntl
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runs.machine import files


def test_a_folder_is_there_for_as_long_as_it_is_used(tmp_path: Path) -> None:
    with files.private_folder(tmp_path, "work-") as folder:
        (folder / "file").write_text("made")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_goes_first_and_what_a_live_one_uses_stays(
    tmp_path: Path,
) -> None:
    for name in ("work-dead", "work-live", "other-dead"):
        (tmp_path / name).mkdir()
    held = os.open(tmp_path / "work-live", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    with files.private_folder(tmp_path, "work-"):
        assert not (tmp_path / "work-dead").exists()
    os.close(held)
    assert {path.name for path in tmp_path.iterdir()} == {"work-live", "other-dead"}


def test_many_at_once_never_take_each_others_folder_for_a_dead_ones(tmp_path: Path) -> None:
    def use(number: int) -> bool:
        with files.private_folder(tmp_path, "work-") as folder:
            (folder / "file").write_text(str(number))
            return (folder / "file").read_text() == str(number)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(use, range(400)))
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="missing"), files.private_folder(tmp_path / "missing", "a"):
        pass
