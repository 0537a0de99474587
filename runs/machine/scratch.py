"""Folders to make something in, which are removed also when their maker was killed."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def private_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A new folder below `parent`, gone at the end; those that killed processes left go first.

    A lock on each tells whether its maker still lives. Raises OSError when none can be made.
    """
    for old in parent.glob(f"{glob.escape(prefix)}*"):
        _remove_dead(old)
    place, handle = _make(parent, prefix)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        os.close(handle)


def _make(parent: Path, prefix: str) -> tuple[Path, int]:
    """A locked folder: until it has its lock, another process may take it for a dead one's."""
    while True:
        place = Path(tempfile.mkdtemp(dir=parent, prefix=prefix))
        with contextlib.suppress(FileNotFoundError):
            handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(handle, fcntl.LOCK_EX)
            if place.exists():
                return place, handle
            os.close(handle)


def _remove_dead(old: Path) -> None:
    with contextlib.suppress(OSError):
        handle = os.open(old, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(handle).st_uid == os.getuid():
                shutil.rmtree(old, ignore_errors=True)
        finally:
            os.close(handle)
