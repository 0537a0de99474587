"""Signal folders on this machine's disk. What is in a file is `labctl`'s to know, for both sides."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from labctl import outputs, sending_back, signal_files
from labctl.safe_files import Unfit, below, drop, is_name, names, opened, remove
from runs.core.ports import SeamError
from runs.groups.fast_path import AllDone, Unreadable
from runs.groups.signal_rules import Crash, Inscription, SentBack, Signal


class SignalFolders:
    """`Signals` on a disk."""

    def prepare(self, folder: Path, expected: int, inscription: Inscription) -> None:
        with _told(folder), opened(str(folder), make=True) as at:
            signal_files.prepare(at, expected, _written(inscription))

    def expect(self, folder: Path, expected: int, inscription: Inscription) -> None:
        with _told(folder), opened(str(folder)) as at:
            signal_files.expect(at, expected, _written(inscription))

    def is_ready(self, folder: Path) -> bool:
        try:
            with opened(str(folder)) as at:
                return signal_files.expected(at) is not None
        except (OSError, Unfit):
            return False

    def sentinel(self, folder: Path) -> AllDone | Unreadable | None:
        try:
            with opened(str(folder)) as at:
                said = signal_files.sentinel(at)
        except FileNotFoundError:
            return None
        except (OSError, Unfit):
            return Unreadable.CORRUPTED
        return None if said is None else AllDone(said["total"], said["completed_at"])

    def count(self, folder: Path) -> int | None:
        try:
            with opened(str(folder)) as at:
                return len(signal_files.keys(at))
        except (OSError, Unfit):
            return None

    def done(self, folder: Path, wanted: Collection[str] | None = None) -> Sequence[Signal]:
        with _told(folder), _there(folder) as at:
            if at is None:
                return []
            found = signal_files.done(at, wanted)
        return [Signal(s["task_id"], s["worker"], s["subject"], s["completed_at"]) for s in found]

    def crashed(self, folder: Path) -> Sequence[Crash]:
        with _told(folder), _there(folder) as at:
            found = [] if at is None else signal_files.crashed(at)
        return [Crash(c["task_id"], c["why"]) for c in found]

    def sent_back(self, folder: Path) -> Sequence[SentBack]:
        with _told(folder), _there(folder) as at:
            found = [] if at is None else sending_back.sent_back(at)
        return [SentBack(b["worker"], b["why"], b["at"], b["is_over"]) for b in found]

    def write(self, folder: Path, signal: Signal) -> bool:
        with _told(folder), opened(str(folder)) as at:
            is_new = signal_files.write(at, signal.task, signal.worker, signal.subject, signal.at)
            sending_back.is_back(at, signal.worker, signal.at)
            return is_new

    def clean(self, folder: Path) -> None:
        with _told(folder), contextlib.suppress(FileNotFoundError):
            project = folder.parent
            with below(str(project.parent), [project.name]) as at:
                remove(at, folder.name)

    def names(self, folder: Path) -> Sequence[str]:
        try:
            with _told(folder), below(str(folder.parent), [folder.name]) as at:
                return sorted(filter(is_name, names(at, folders=True)))
        except SeamError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return []
            raise

    def drop(self, folder: Path) -> None:
        above = str(folder.parent)
        with _told(folder), contextlib.suppress(FileNotFoundError), below(above, []) as at:
            drop(at, folder.name)

    def clean_all(self, folder: Path) -> None:
        above = str(folder.parent)
        with _told(folder), contextlib.suppress(FileNotFoundError), below(above, []) as at:
            remove(at, folder.name)

    def lacking(self, root: Path, inscription: Inscription, worker: str) -> str:
        with _told(root):
            return outputs.lacking(str(root), _written(inscription), worker)


def _written(inscription: Inscription) -> dict[str, Any]:
    """An inscription as its file holds it; `teammates` is what agents' own scripts call workers."""
    return {
        "workflow": inscription.workflow,
        "timestamp": inscription.timestamp,
        "output_dir": inscription.output_dir,
        "teammates": [{"name": w.worker, "output_file": w.file} for w in inscription.workers],
        "tasks": list(inscription.tasks),
    }


@contextlib.contextmanager
def _there(folder: Path) -> Iterator[int | None]:
    """The folder's descriptor; None when there is none."""
    if not os.path.lexists(folder):
        yield None
        return
    with opened(str(folder)) as at:
        yield at


@contextlib.contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, Unfit) as error:
        why = getattr(error, "strerror", None) or error
        raise SeamError(f"{folder} could not be used: {why}.") from error
