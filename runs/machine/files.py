"""Reads small files of others without being held up or misled, and tells when a disk is full."""

from __future__ import annotations

import os
import stat
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
