"""Looks for new sentinels by time, in the worker, where the system tells of no files (RUNE-83).

A tick is offered every five seconds, so the check of a monitor may be that much later than due.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

EVERY_SECONDS = 2.0


class SignalPoll:
    """`SignalWatch` without the system's help: one directory listing a project, one path a group."""

    def __init__(self, root: Path, ask: Callable[[str], object]) -> None:
        self._root = root
        self._ask = ask
        self._over = threading.Event()
        self._told: set[tuple[str, str, int, int]] = set()

    def run(self) -> None:
        """Look until `stop`."""
        while not self._over.wait(EVERY_SECONDS):
            self.look()

    def stop(self) -> None:
        """Have `run` end."""
        self._over.set()

    def look(self) -> None:
        """Ask for a look at each project that has a sentinel that was not there before."""
        there = set(self._sentinels())
        for project in sorted({project for project, *_ in there - self._told}):
            self._ask(project)
        self._told = there

    def _sentinels(self) -> Iterator[tuple[str, str, int, int]]:
        for project in _folders(self._root):
            for group in _folders(self._root / project):
                with contextlib.suppress(OSError):
                    facts = os.lstat(self._root / project / group / ".all-done")
                    yield project, group, facts.st_ino, facts.st_mtime_ns


def _folders(path: Path) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return [e.name for e in entries if e.is_dir(follow_symlinks=False)]
    except OSError:
        return []
