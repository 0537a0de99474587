"""New signal files: told by the system at once, or found by time where the system tells nothing."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from inotify_simple import INotify, flags

logger = logging.getLogger(__name__)

# A file that is linked or renamed into place is whole.
_NEW = flags.CREATE | flags.MOVED_TO
_FOLDER = _NEW | flags.ONLYDIR | flags.DONT_FOLLOW
_TELLING = (".done", ".all-done", ".sent-back")


class SignalWatch:
    """Watches the signal folders of all projects below `root`; `ask` is given a project's slug."""

    def __init__(self, root: Path, ask: Callable[[str], object]) -> None:
        self._root = root
        self._ask = ask
        self._events: INotify | None = None
        self._over = os.eventfd(0, os.EFD_CLOEXEC)
        # What each watch is of: no name for the root, a project's, or a project's and a group's.
        self._places: dict[int, tuple[str, ...]] = {}

    def run(self) -> None:
        """Watch until `stop`; ends at once, with a line in the log, where that cannot be."""
        try:
            with INotify() as self._events:
                self._begin()
                while self._wait(self._events):
                    for event in self._events.read(timeout=0):
                        self._hear(event.wd, event.mask, event.name)
        except OSError as error:
            logger.warning("signal files are looked at by time only", extra={"error": str(error)})
        finally:
            self._events = None
            self._places.clear()

    def stop(self) -> None:
        """Have `run` end."""
        os.eventfd_write(self._over, 1)

    def _wait(self, events: INotify) -> bool:
        ready, _, _ = select.select([events.fileno(), self._over], [], [])
        return self._over not in ready

    def _begin(self) -> None:
        self._root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._places.clear()
        self._watch(())

    def _watch(self, place: tuple[str, ...]) -> None:
        """Watch a folder and those in it. They are listed afterwards, so that none is missed."""
        folder = self._root.joinpath(*place)
        assert self._events is not None  # noqa: S101
        try:
            self._places[self._events.add_watch(folder, _FOLDER)] = place
            below = [e.name for e in os.scandir(folder) if e.is_dir(follow_symlinks=False)]
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            if not place:
                raise
            # One that nobody may read, or one too many: the others are still heard of.
            what = {"folder": str(folder), "error": str(error)}
            logger.warning("signal files of one folder are looked at by time only", extra=what)
            return
        if len(place) < 2:
            for name in below:
                self._watch((*place, name))

    def _hear(self, watch: int, mask: int, name: str) -> None:
        if mask & flags.Q_OVERFLOW:
            self._lost()
            return
        place = self._places.get(watch)
        if mask & flags.IGNORED:  # the folder is gone
            self._places.pop(watch, None)
            if place == ():
                self._begin()
        elif place is not None and mask & flags.ISDIR and len(place) < 2:
            self._watch((*place, name))
            self._ask((*place, name)[0])
        elif place is not None and len(place) == 2 and name.endswith(_TELLING):
            self._ask(place[0])

    def _lost(self) -> None:
        """More happened than the system kept: look everywhere."""
        self._begin()
        for project in {place[0] for place in self._places.values() if place}:
            self._ask(project)


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
