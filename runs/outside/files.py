"""Reads small files that somebody else may have put there, without being held up or misled."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def read_small(path: Path, limit: int) -> str | None:
    """The text of a regular file of at most `limit` bytes; None for anything else.

    Agents may write into the folders that we read: a pipe would block us, a link would lead
    elsewhere, a huge file would fill our memory. None of them is opened further than to see it.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        raw = os.read(handle, limit + 1)
        return raw.decode() if len(raw) <= limit else None
    except (OSError, ValueError):
        return None
    finally:
        os.close(handle)
