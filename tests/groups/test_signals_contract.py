"""Signal folders: the fake and the real ones answer alike."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from labctl import safe_files
from runs.core.paths import Paths
from runs.core.ports import SeamError
from runs.groups import terms as grouping
from runs.groups.fast_path import AllDone
from runs.groups.signal_files import SignalFolders
from runs.groups.signal_rules import Inscription, Output, Signal
from tests.fake_signals import FakeSignals

AGREED = Inscription(
    "review", "2026-11-21T12:00:00Z", "out", (Output("ann", "ann.md"),), ("1", "2")
)


def signal(task: str, at: str = "2026-11-21T12:05:00Z", subject: str = "Read it") -> Signal:
    return Signal(task, "ann", subject, at)


@pytest.fixture(params=["fake", pytest.param("real", id="disk")])
def signals(request):  # type: ignore[no-untyped-def]
    return FakeSignals() if request.param == "fake" else SignalFolders()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Paths(tmp_path / "state").signals("demo", "reviewers")


@pytest.mark.row("RUNE-61", "RUNE-66", "RUNE-67", "RUNE-64", level="contract")
def test_the_last_signal_brings_the_sentinel_and_it_comes_once(signals, folder):
    assert not signals.is_ready(folder)
    assert signals.sentinel(folder) is None
    assert signals.count(folder) is None
    signals.prepare(folder, 2, AGREED)
    assert signals.is_ready(folder)
    assert signals.write(folder, signal("1"))
    assert (signals.sentinel(folder), signals.count(folder)) == (None, 1)
    assert signals.write(folder, signal("2", "2026-11-21T12:06:00Z"))
    assert signals.sentinel(folder) == AllDone(2, "2026-11-21T12:06:00Z")
    assert signals.write(folder, signal("3", "2026-11-21T12:07:00Z"))
    assert signals.sentinel(folder) == AllDone(2, "2026-11-21T12:06:00Z")
    assert [s.task for s in signals.done(folder)] == ["1", "2", "3"]
    assert signals.done(folder, {"2"}) == [signal("2", "2026-11-21T12:06:00Z")]


@pytest.mark.row("RUNE-73", level="contract")
def test_the_first_signal_of_a_task_stands(signals, folder):
    signals.prepare(folder, 2, AGREED)
    assert signals.write(folder, signal("1"))
    assert not signals.write(folder, signal("1", subject="Another"))
    assert signals.done(folder) == [signal("1")]


@pytest.mark.row("RUNE-64", level="contract")
def test_leftovers_of_an_earlier_group_are_gone(signals, folder):
    signals.prepare(folder, 1, AGREED)
    signals.write(folder, signal("1"))
    signals.prepare(folder, 1, AGREED)
    assert (signals.sentinel(folder), signals.count(folder)) == (None, 0)


def test_another_number_of_tasks_brings_the_sentinel_or_takes_it_away(signals, folder):
    signals.prepare(folder, 1, AGREED)
    signals.write(folder, signal("1"))
    signals.expect(folder, 2, AGREED)
    assert signals.sentinel(folder) is None
    signals.expect(folder, 1, AGREED)
    assert signals.sentinel(folder).total == 1
    assert signals.count(folder) == 1


@pytest.mark.row("RUNE-74", level="contract")
@pytest.mark.parametrize("name", ["../x", "a b", "a/b", "n" * 129, "", ".", ".."])
def test_an_odd_name_is_refused(signals, folder, name):
    signals.prepare(folder, 1, AGREED)
    with pytest.raises(SeamError):
        signals.write(folder, signal(name))
    assert signals.count(folder) == 0
    assert safe_files.is_name(name) is grouping.is_name(name) is False


@pytest.mark.row("RUNE-75", level="contract")
def test_a_subject_is_cut_and_an_empty_one_names_the_task(signals, folder):
    signals.prepare(folder, 3, AGREED)
    signals.write(folder, signal("1", subject="s" * 300))
    signals.write(folder, signal("2", subject="  \n"))
    assert [s.subject for s in signals.done(folder)] == ["s" * 256, "Task 2"]


@pytest.mark.row("RUNE-79", "RUNE-80", level="contract")
def test_groups_are_apart_and_cleaning_up_twice_is_no_error(signals, folder, tmp_path):
    other = folder.parent / "auditors"
    for one in (folder, other):
        signals.prepare(one, 1, AGREED)
    signals.write(folder, signal("1"))
    assert signals.sentinel(other) is None
    for _ in range(2):
        signals.clean(folder)
    assert not signals.is_ready(folder)
    assert signals.is_ready(other)
    assert (signals.done(folder), signals.crashed(folder), signals.sent_back(folder)) == ([],) * 3
    with pytest.raises(SeamError):
        signals.write(folder, signal("1"))
    for _ in range(2):
        signals.clean_all(Paths(tmp_path / "state").signals())
    assert not signals.is_ready(other)


@pytest.mark.row("RUNE-80", level="contract")
def test_the_folder_of_a_project_goes_when_no_group_is_left_in_it(signals, folder, tmp_path):
    everything = Paths(tmp_path / "state").signals()
    assert signals.names(everything) == []
    signals.prepare(folder, 1, AGREED)
    signals.drop(folder.parent)
    assert (signals.names(everything), signals.names(folder.parent)) == (["demo"], ["reviewers"])
    signals.clean(folder)
    for _ in range(2):
        signals.drop(folder.parent)
    assert signals.names(everything) == []


def test_only_folders_of_ours_are_named_and_no_link_is_followed(folder, tmp_path):
    real, all_of_it = SignalFolders(), Paths(tmp_path / "state").signals()
    real.prepare(folder, 1, AGREED)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "work").write_text("of somebody")
    for place in (all_of_it, folder.parent):
        (place / "link").symlink_to(outside)
        (place / "file").write_text("")
        (place / "of.another").mkdir()
    assert real.names(all_of_it) == ["demo"]
    assert real.names(folder.parent) == ["reviewers"]
    real.clean(folder)
    real.drop(folder.parent)
    assert sorted(path.name for path in folder.parent.iterdir()) == ["file", "link", "of.another"]
    with pytest.raises(SeamError):
        real.drop(all_of_it / "link")
    assert (outside / "work").read_text() == "of somebody"


@pytest.mark.row("RUNE-64", "RUNE-66", "RUNE-67", level="contract")
def test_what_the_files_hold(folder):
    real = SignalFolders()
    real.prepare(folder, 1, AGREED)
    assert (folder / ".expected").read_text() == "1"
    assert json.loads((folder / "inscription.json").read_text()) == {
        "workflow": "review",
        "timestamp": "2026-11-21T12:00:00Z",
        "output_dir": "out",
        "teammates": [{"name": "ann", "output_file": "ann.md"}],
        "tasks": ["1", "2"],
    }
    real.write(folder, signal("1"))
    assert json.loads((folder / "1.done").read_text()) == {
        "task_id": "1",
        "worker": "ann",
        "subject": "Read it",
        "completed_at": "2026-11-21T12:05:00Z",
    }
    assert json.loads((folder / ".all-done").read_text()) == {
        "total": 1,
        "expected": 1,
        "completed_at": "2026-11-21T12:05:00Z",
    }
    assert sorted(p.name for p in folder.iterdir()) == [
        *(".all-done", ".expected"),
        *("1.done", "inscription.json"),
    ]
