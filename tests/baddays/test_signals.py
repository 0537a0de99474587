"""Bad days of signal files: what somebody planted in them, and what is there only for a moment."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runs import tick
from runs.core.paths import Paths
from runs.core.states import NoticeKind
from runs.groups import signal_folders, signal_import, tasks
from runs.groups.fast_path import AllDone, Unreadable
from runs.groups.signal_files import SignalFolders
from runs.groups.signal_rules import Crash, Inscription, SentBack, Signal
from runs.groups.terms import TaskStatus
from runs.models import Task, TaskGroup, Worker
from tests import make
from tests.fake_signals import FakeFolder, FakeSignals
from tests.fakes import World
from tests.groups.monitor_house import a_watched, complete, offer, passes, prepare, told, watched

AGREED = Inscription("work", "2026-11-21T12:00:00Z", "", (), ("1", "2"))
ODD = ["a\x00b", "a\ud800b", "a\x1b[31mb", "a\u202eb"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = Paths(tmp_path).signals("demo", "wave")
    SignalFolders().prepare(folder, 2, AGREED)
    return folder


def plant(folder: Path, name: str, said: dict[str, Any]) -> None:
    (folder / name).write_text(json.dumps(said))


@pytest.mark.row("RUNE-75", level="contract")
@pytest.mark.parametrize("text", ODD, ids=["nul", "half a letter", "escape", "direction"])
def test_no_file_says_what_a_database_or_a_page_would_not_take(folder: Path, text: str) -> None:
    signals = SignalFolders()
    plant(folder, "1.done", {"task_id": "1", "subject": text, "completed_at": text})
    plant(folder, "2.began", {"why": text})
    plant(folder, "ann.sent-back", {"why": text, "at": text, "times": 1})
    plant(folder, ".all-done", {"total": 2, "completed_at": text})
    (done,), (crash,) = signals.done(folder), signals.crashed(folder)
    (back,), sentinel = signals.sent_back(folder), signals.sentinel(folder)
    assert isinstance(sentinel, AllDone)
    said = (done.subject, done.at, crash.why, back.why, back.at, sentinel.at)
    assert all(one[0] == "a" and one[-1] == "b" and one.isprintable() for one in said)


@pytest.mark.row("RUNE-69", level="contract")
@pytest.mark.parametrize("total", [10**18, 0, -1, True, 1.0, "2"])
def test_a_sentinel_with_a_total_that_is_none_is_corrupted(folder: Path, total: object) -> None:
    plant(folder, ".all-done", {"total": total, "completed_at": "now"})
    assert SignalFolders().sentinel(folder) is Unreadable.CORRUPTED


def test_files_of_a_thousand_workers_that_nobody_knows_are_not_all_read(folder: Path) -> None:
    for number in range(1100):
        plant(folder, f"w{number}.sent-back", {"why": "x", "at": "now", "times": 1})
        plant(folder, f"t{number}.began", {"why": "x"})
    assert len(SignalFolders().sent_back(folder)) == 1000
    assert len(SignalFolders().crashed(folder)) == 1100


@pytest.mark.django_db(transaction=True)
class TestTakenOver:
    def test_a_group_whose_files_cannot_be_taken_over_holds_up_nobody(
        self, world: World, caplog: pytest.LogCaptureFixture
    ) -> None:
        """No pass of its monitor, no other group of the project, and no look at its runs."""
        monitor = a_watched(world, 2, fast=True)
        other = make.a_group(monitor.group.project, "other", 1)
        prepare(world, other)
        there(world, monitor.group).crashes["1"] = Crash("1", "half a letter \ud800")
        signal_of(world, other, "1")
        offer(world)
        report = tick.tick(world.lab, "demo")
        assert Task.objects.get(group=other).status == TaskStatus.COMPLETED
        assert not report.errors
        assert "could not be taken over" in caplog.text
        complete(monitor, "1", "2")
        passes(world, 2)
        monitor.refresh_from_db()
        assert not monitor.is_running

    @pytest.mark.row("RUNE-87", level="contract")
    def test_a_worker_that_finished_is_not_told_to_be_sent_back_once_more(
        self, world: World
    ) -> None:
        """Its file would say so until it goes idle again, and that may be never."""
        group = a_watched(world, 2, fast=True).group
        worker = Worker.objects.create(group=group, name="ann")
        there(world, group).sent_back["ann"] = SentBack("ann", "ann.md is missing.", "now")
        signal_import.absorb(world.lab, group)
        task = tasks.claim(world.lab, group, worker, by="anna")
        assert task is not None
        tasks.complete(world.lab, group, task.key, worker=worker, by="anna")
        signal_import.absorb(world.lab, group)
        worker.refresh_from_db()
        assert worker.sent_back_why == ""
        assert told(NoticeKind.TASK_SENT_BACK) == ["ann was sent back: ann.md is missing."]

    @pytest.mark.row("RUNE-66", level="contract")
    def test_signals_that_are_taken_over_are_not_written_once_more(self, world: World) -> None:
        """Each would list the folder and ask for a look: of 2,000 at once the lease ran out."""
        group = a_watched(world, 2, fast=True).group
        signal_of(world, group, "1")
        signal_of(world, group, "2")
        before, world.signals.listed = list(world.bell.looks), 0
        assert signal_import.absorb(world.lab, group) == 2
        assert world.signals.listed == 1
        assert world.bell.looks == before

    def test_files_of_workers_that_nobody_knows_ask_the_database_nothing(
        self, world: World
    ) -> None:
        group = a_watched(world, 1, fast=True).group
        with watched() as before:
            signal_import.absorb(world.lab, group)
        for number in range(50):
            one = SentBack(f"w{number}", "x", "now")
            there(world, group).sent_back[one.worker] = one
        with watched() as after:
            signal_import.absorb(world.lab, group)
        assert len(after) == len(before) + 1


@pytest.mark.row("RUNE-87", level="contract")
@pytest.mark.parametrize("signals", [FakeSignals(), SignalFolders()], ids=["fake", "disk"])
def test_who_completes_a_task_is_sent_back_no_more(signals: Any, tmp_path: Path) -> None:
    folder = Paths(tmp_path).signals("demo", "wave")
    signals.prepare(folder, 2, AGREED)
    if isinstance(signals, FakeSignals):
        signals.folders[folder].sent_back["ann"] = SentBack("ann", "x", "now")
    else:
        plant(folder, "ann.sent-back", {"why": "x", "at": "now", "times": 2})
        plant(folder, "2.held", {"task_id": "2", "worker": "ann"})
    signals.write(folder, Signal("1", "ann", "Read", "later"))
    assert [(one.why, one.is_over) for one in signals.sent_back(folder)] == [("x", True)]
    assert [one.task for one in signals.done(folder)] == ["1"]


@pytest.mark.django_db(transaction=True)
def test_a_group_that_is_made_during_a_sweep_keeps_its_folder(world: World) -> None:
    """Without it the hooks of its workers would leave nothing, and say nothing of it."""
    monitor = a_watched(world, 1, fast=True)
    project = monitor.group.project
    made: list[TaskGroup] = []

    class Signals(FakeSignals):
        def names(self, folder: Path) -> Sequence[str]:
            if not made:
                made.append(make.a_group(project, "late", 1))
                prepare(world, made[0])
            return super().names(folder)

    signals = Signals()
    signals.folders = world.signals.folders
    signal_folders.sweep(replace(world.lab, signals=signals), project)
    assert sorted(path.name for path in signals.folders) == ["late", "wave"]


def there(world: World, group: TaskGroup) -> FakeFolder:
    return world.signals.folders[signal_folders.folder(world.lab, group)]


def signal_of(world: World, group: TaskGroup, key: str) -> None:
    folder = signal_folders.folder(world.lab, group)
    world.signals.write(folder, Signal(key, "fa-1", f"Part {key}", world.clock().isoformat()))
