"""Signal files of task groups: what they say, and what is asked of them, part of `runs.core.ports`.

Each group that uses them has a folder. Whoever completes a task leaves `<key>.done` in it, and who
leaves the last one leaves the sentinel `.all-done` beside them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from runs.groups.fast_path import AllDone, Unreadable


@dataclass(frozen=True, slots=True)
class Signal:
    """That a task was completed, as its file says."""

    task: str
    worker: str
    subject: str
    at: str


@dataclass(frozen=True, slots=True)
class Crash:
    """A writer that ended before its signal was there: not the same as one that never ran."""

    task: str
    why: str


@dataclass(frozen=True, slots=True)
class SentBack:
    """A worker that was sent back, and the reason it was given; `is_over`: it is there now."""

    worker: str
    why: str
    at: str
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """The file that a worker has to leave behind."""

    worker: str
    file: str


@dataclass(frozen=True, slots=True)
class Inscription:
    """What is agreed before the workers start. `tasks`: those that hooks may complete."""

    workflow: str
    timestamp: str
    output_dir: str
    workers: tuple[Output, ...] = ()
    tasks: tuple[str, ...] = ()


class Signals(Protocol):
    """The signal folders of one host. A folder is `Paths.signals(project slug, group name)`.

    Names in files are checked by whoever reads them here, links are never followed, and what is
    too large or not readable is nothing that was said.
    """

    def prepare(self, folder: Path, expected: int, inscription: Inscription) -> None:
        """Make the folder, or empty it; leftovers of an earlier group are gone. Raises SeamError."""

    def expect(self, folder: Path, expected: int, inscription: Inscription) -> None:
        """Another number of tasks; signals stay, the sentinel comes or goes. Raises SeamError."""

    def is_ready(self, folder: Path) -> bool:
        """Whether the folder and its `.expected` are both there and fit."""

    def sentinel(self, folder: Path) -> AllDone | Unreadable | None:
        """What the sentinel says; None while there is none. Looks at one path only."""

    def count(self, folder: Path) -> int | None:
        """How many signals there are; None when that could not be told."""

    def done(self, folder: Path, wanted: Collection[str] | None = None) -> Sequence[Signal]:
        """Signals that say what they should, by task; of `wanted` tasks if given. Raises SeamError."""

    def crashed(self, folder: Path) -> Sequence[Crash]:
        """Writers that ended before their signal was there. Raises SeamError."""

    def sent_back(self, folder: Path) -> Sequence[SentBack]:
        """Workers that were sent back, each with its last reason. Raises SeamError."""

    def write(self, folder: Path, signal: Signal) -> bool:
        """Leave a task's signal; False when its first one stands already. Raises SeamError.

        Its worker is sent back no more.
        """

    def clean(self, folder: Path) -> None:
        """Remove the folder and all that is in it; no error when it is gone. Raises SeamError."""

    def names(self, folder: Path) -> Sequence[str]:
        """What is in the folder of a project, one group each; empty without it. Raises SeamError.

        Of the folder of all projects: one project each. What is not ours is not named.
        """

    def drop(self, folder: Path) -> None:
        """Remove the folder of a project if nothing is left in it. Raises SeamError."""

    def clean_all(self, folder: Path) -> None:
        """The same for the folder of a project, or of all projects."""

    def lacking(self, root: Path, inscription: Inscription, worker: str) -> str:
        """What a worker's output lacks below the folder it works in; empty: nothing.

        Raises SeamError when that could not be told.
        """
