"""Reads a small file that may be anything: a pipe, a device or a huge file holds up nobody."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

SMALL = 4096


def opened(path: Path) -> int:
    """A handle on a plain file, or on what a link leads to if that is one. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "is no plain file", str(path))
    return handle


def text_of(path: Path) -> str:
    """The text of a small file without white space around. Raises OSError, ValueError."""
    with os.fdopen(opened(path), "rb") as file:
        raw = file.read(SMALL + 1)
    if len(raw) > SMALL:
        raise ValueError(f"{path.name} is larger than can be meant")
    return raw.decode("ascii").strip()
