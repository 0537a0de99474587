"""What the system tells of new signal files: every project and group, early and late, and what is gone."""

from __future__ import annotations

import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from runs.core.paths import Paths
from runs.groups.signal_files import SignalFolders
from runs.groups.signal_rules import Inscription, Signal
from runs.groups.signal_watch import SignalPoll, SignalWatch
from tests.labctl.session import ROOT
from tests.patience import PATIENCE

SIGNALS = SignalFolders()
AGREED = Inscription("work", "", "", (), ("1",))


class Heard:
    """What a watch asked for, and its end."""

    def __init__(self, root: Path) -> None:
        self.all: queue.Queue[str] = queue.Queue()
        self.watch = SignalWatch(root, self.all.put)
        self.thread = threading.Thread(target=self.watch.run)

    def next(self) -> str:
        return self.all.get(timeout=PATIENCE)

    def forget(self) -> None:
        """Whatever came so far."""
        while not self.all.empty():
            self.all.get()


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path)


@pytest.fixture
def heard(paths):  # type: ignore[no-untyped-def]
    heard = Heard(paths.signals())
    yield heard
    heard.watch.stop()
    heard.thread.join(PATIENCE)
    assert not heard.thread.is_alive()


def begin(heard: Heard, paths: Paths) -> None:
    """Start it, and wait until it hears what is new."""
    heard.thread.start()
    marker = 0
    while heard.all.empty():
        marker += 1
        (paths.signals() / f"begin-{marker}").mkdir(parents=True, exist_ok=True)
        threading.Event().wait(0.02)


@pytest.mark.real
def test_a_signal_is_heard_of_in_old_groups_and_in_new_ones(paths, heard):
    old, new = paths.signals("demo", "old"), paths.signals("other", "new")
    SIGNALS.prepare(old, 2, AGREED)
    begin(heard, paths)
    heard.forget()
    SIGNALS.write(old, Signal("1", "", "", "now"))
    while heard.next() != "demo":
        pass
    SIGNALS.prepare(new, 1, AGREED)
    SIGNALS.write(new, Signal("1", "", "", "now"))
    while heard.next() != "other":
        pass


def test_after_everything_was_removed_it_goes_on(paths, heard):
    SIGNALS.prepare(paths.signals("demo", "old"), 1, AGREED)
    begin(heard, paths)
    SIGNALS.clean_all(paths.signals())
    for turn in range(5000):  # until the new root is watched
        SIGNALS.prepare(paths.signals(f"turn-{turn}", "new"), 1, AGREED)
        try:
            while not heard.all.get(timeout=0.05).startswith("turn-"):
                pass
            break
        except queue.Empty:
            continue
    else:
        pytest.fail("nothing was heard of after the folders were removed")


def test_links_and_other_files_are_not_heard_of(paths, heard, tmp_path):
    folder = paths.signals("demo", "old")
    SIGNALS.prepare(folder, 2, AGREED)
    begin(heard, paths)
    (tmp_path / "elsewhere" / "group").mkdir(parents=True)
    (paths.signals() / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "group" / "1.done").write_text("{}")
    (folder / "1.done.tmp.7").write_text("{}")
    SIGNALS.prepare(paths.signals("last", "new"), 1, AGREED)
    seen = set()
    while "last" not in seen:
        seen.add(heard.next())
    assert not seen & {"demo", "linked"}


@pytest.mark.row("RUNE-83", level="real")
def test_where_the_system_tells_nothing_a_sentinel_is_found_by_time_once(paths, tmp_path):
    asked: list[str] = []
    poll = SignalPoll(paths.signals(), asked.append)
    poll.look()  # nothing is there yet, not even the folder
    for project in ("demo", "other"):
        SIGNALS.prepare(paths.signals(project, "group"), 1, AGREED)
    (tmp_path / "elsewhere" / "group").mkdir(parents=True)
    (tmp_path / "elsewhere" / "group" / ".all-done").write_text("{}")
    (paths.signals() / "linked").symlink_to(tmp_path / "elsewhere")
    poll.look()
    assert asked == []
    SIGNALS.write(paths.signals("demo", "group"), Signal("1", "", "", "now"))
    for _ in range(2):
        poll.look()
    assert asked == ["demo"]
    SIGNALS.prepare(paths.signals("demo", "group"), 1, AGREED)
    poll.look()
    SIGNALS.write(paths.signals("demo", "group"), Signal("1", "", "", "now"))
    poll.look()
    assert asked == ["demo", "demo"]
    poll.stop()
    poll.run()


def test_where_nothing_can_be_watched_it_says_so_and_ends(tmp_path, caplog):
    (tmp_path / "signals").write_text("a file")
    watch = SignalWatch(tmp_path / "signals", lambda project: None)
    watch.run()
    assert "by time only" in caplog.text
    shutil.rmtree(tmp_path)


UNREADABLE = """
import os, sys, threading
from pathlib import Path
from runs.groups.signal_rules import Inscription, Signal
from runs.groups.signal_files import SignalFolders
from runs.groups.signal_watch import SignalWatch

if os.geteuid() == 0:
    os.seteuid(65534)  # to root every folder is readable
root, heard = Path(sys.argv[1]), threading.Event()
for name in ("bad", "good"):
    SignalFolders().prepare(root / name / "group", 9, Inscription("work", "", "", (), ()))
(root / "bad").chmod(0)
watch = SignalWatch(root, lambda project: heard.set() if project == "good" else None)
thread = threading.Thread(target=watch.run, daemon=True)
thread.start()
for number in range(4000):
    SignalFolders().write(root / "good" / "group", Signal(str(number), "", "", "now"))
    if heard.wait(0.05):
        break
(root / "bad").chmod(0o700)
sys.exit(not heard.is_set())
"""


@pytest.mark.real
def test_a_folder_that_nobody_may_read_keeps_no_other_project_unheard() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        argv = [sys.executable, "-c", UNREADABLE, f"{folder}/signals"]
        subprocess.run(argv, cwd=ROOT, check=True, timeout=PATIENCE)
