"""`Signals` in a dictionary."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from runs.core.ports import SeamError
from runs.groups.fast_path import AllDone, Unreadable
from runs.groups.signal_rules import Crash, Inscription, SentBack, Signal
from runs.groups.terms import is_name, subject_of


@dataclass
class FakeFolder:
    expected: int
    inscription: Inscription
    signals: dict[str, Signal] = field(default_factory=dict)
    sentinel: AllDone | Unreadable | None = None
    crashes: dict[str, Crash] = field(default_factory=dict)
    sent_back: dict[str, SentBack] = field(default_factory=dict)


class FakeSignals:
    """Folders by path. `asked` counts looks at a sentinel, `listed` those at signals."""

    def __init__(self) -> None:
        self.folders: dict[Path, FakeFolder] = {}
        self.outputs: dict[tuple[Path, str], str] = {}
        self.empty: set[Path] = set()
        self.stuck: set[Path] = set()
        self.broken = ""
        self.asked = 0
        self.listed = 0

    def prepare(self, folder: Path, expected: int, inscription: Inscription) -> None:
        self._check(folder)
        self.folders[folder] = FakeFolder(expected, inscription)
        self.empty.add(folder.parent)

    def expect(self, folder: Path, expected: int, inscription: Inscription) -> None:
        there = self._there(folder)
        there.expected, there.inscription = expected, inscription
        if len(there.signals) < expected:
            there.sentinel = None
        self._seal(there, inscription.timestamp)

    def is_ready(self, folder: Path) -> bool:
        return not self.broken and folder in self.folders and self.folders[folder].expected > 0

    def sentinel(self, folder: Path) -> AllDone | Unreadable | None:
        self.asked += 1
        return self.folders[folder].sentinel if folder in self.folders else None

    def count(self, folder: Path) -> int | None:
        self.listed += 1
        return None if self.broken or folder not in self.folders else len(self._signals(folder))

    def done(self, folder: Path, wanted: Collection[str] | None = None) -> Sequence[Signal]:
        self.listed += 1
        signals = self._signals(folder)
        return [signals[key] for key in sorted(signals) if wanted is None or key in wanted]

    def crashed(self, folder: Path) -> Sequence[Crash]:
        signals = self._signals(folder)
        there = self.folders.get(folder)
        return [c for key, c in (there.crashes.items() if there else ()) if key not in signals]

    def sent_back(self, folder: Path) -> Sequence[SentBack]:
        self._check(folder)
        there = self.folders.get(folder)
        return list(there.sent_back.values()) if there else []

    def write(self, folder: Path, signal: Signal) -> bool:
        there = self._there(folder)
        if not is_name(signal.task) or (signal.worker and not is_name(signal.worker)):
            raise SeamError("no name of a task")
        is_new = signal.task not in there.signals
        if is_new:
            subject = subject_of(signal.subject, signal.task)
            there.signals[signal.task] = replace(signal, subject=subject)
        self._seal(there, signal.at)
        if back := there.sent_back.get(signal.worker):
            there.sent_back[signal.worker] = replace(back, is_over=True)
        return is_new

    def clean(self, folder: Path) -> None:
        self.clean_all(folder)

    def names(self, folder: Path) -> Sequence[str]:
        self._check_disk()
        inside = (p.relative_to(folder) for p in self.all if p != folder and folder in p.parents)
        return sorted({path.parts[0] for path in inside})

    def drop(self, folder: Path) -> None:
        self._check_disk()
        if not self.names(folder):
            self.empty.discard(folder)

    def clean_all(self, folder: Path) -> None:
        if self.broken or folder in self.stuck:
            raise SeamError(self.broken or "stuck")
        self.empty = {p for p in self.empty if not p.is_relative_to(folder)}
        self.folders = {p: f for p, f in self.folders.items() if not p.is_relative_to(folder)}

    def lacking(self, root: Path, inscription: Inscription, worker: str) -> str:
        if self.broken:
            raise SeamError(self.broken)
        return self.outputs.get((root, worker), "")

    @property
    def all(self) -> set[Path]:
        """Folders of groups, and those of projects, which stay when they are empty."""
        return {*self.folders, *self.empty}

    def _seal(self, there: FakeFolder, at: str) -> None:
        if there.sentinel is None and len(there.signals) >= there.expected:
            there.sentinel = AllDone(len(there.signals), at)

    def _signals(self, folder: Path) -> dict[str, Signal]:
        self._check(folder)
        return self.folders[folder].signals if folder in self.folders else {}

    def _there(self, folder: Path) -> FakeFolder:
        self._check(folder)
        if folder not in self.folders:
            raise SeamError("no such folder")
        return self.folders[folder]

    def _check_disk(self) -> None:
        if self.broken:
            raise SeamError(self.broken)

    def _check(self, folder: Path) -> None:
        self._check_disk()
        if not is_name(folder.name):
            raise SeamError("no name of a group")
