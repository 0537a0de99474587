"""Reads small files of others without being held up or misled, makes folders that go again, and
tells when a disk is full.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from runs.core.ports import Output

ALMOST_FULL = 1 << 20


def read_small(path: Path, limit: int) -> str | None:
    """The text of a regular file of at most `limit` bytes; None for anything else.

    Agents may write into the folders that we read: a pipe would block us, a link would lead
    elsewhere, a huge file would fill our memory. None of them is opened further than to see it.
    """
    found = read_piece(path, 0, limit + 1)
    if found is None or len(found.data) > limit:
        return None
    try:
        return found.data.decode()
    except ValueError:
        return None


def read_piece(path: Path, start: int, limit: int) -> Output | None:
    """At most `limit` bytes of a regular file from `start` on, or from its end for a negative one.

    None for anything else, by the same rules as `read_small`.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            return None
        begin = start if start >= 0 else max(0, facts.st_size + start)
        data = os.pread(handle, limit, begin)
        return Output(data, facts.st_size, datetime.fromtimestamp(facts.st_mtime, UTC))
    except (OSError, ValueError, OverflowError):
        return None
    finally:
        os.close(handle)


def is_full(folder: Path) -> bool:
    """Whether the disk of a folder takes no more data or no more files; False when unsure."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    has_room = disk.f_bavail * disk.f_frsize > ALMOST_FULL
    has_names = disk.f_files == 0 or disk.f_favail > 0
    return not (has_room and has_names)


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
