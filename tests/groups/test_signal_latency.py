"""How soon a monitor has ended after the last signal, in real time, where the system tells of files."""

from __future__ import annotations

import queue
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from runs import tick
from runs.core.ports import Lab
from runs.groups import acts as groups
from runs.groups import monitors
from runs.groups.signal_files import SignalFolders
from runs.groups.signal_watch import SignalWatch
from runs.groups.tasks import NewTask
from runs.groups.terms import MonitorState
from runs.models import Monitor, Project
from tests import make
from tests.labctl.session import Session
from tests.patience import PATIENCE

pytestmark = pytest.mark.real

SAMPLES, WITHIN = 60, 1.0


@pytest.mark.row("RUNE-83", level="real")
@pytest.mark.django_db(transaction=True)
def test_with_file_events_an_end_is_noticed_within_a_second(world, tmp_path: Path) -> None:
    """The hook is a process that knows no socket to wake; its files alone tell of it."""
    lab = replace(world.lab, signals=SignalFolders())
    project = make.a_project()
    asked: queue.Queue[str] = queue.Queue()
    watch = SignalWatch(lab.paths.signals(), asked.put)
    thread = threading.Thread(target=watch.run)
    thread.start()
    try:
        spent: list[float] = []
        while len(spent) < SAMPLES and min(spent, default=WITHIN + 1) > WITHIN:
            spent.append(_sample(lab, project, asked, tmp_path, len(spent)))
    finally:
        watch.stop()
        thread.join(PATIENCE)
    # Most of them may be held up by whatever else this machine does; by time it would be five
    # seconds, each time, so that one is enough.
    assert min(spent) <= WITHIN, spent


def _sample(
    lab: Lab, project: Project, asked: queue.Queue[str], tmp_path: Path, number: int
) -> float:
    name = f"group-{number}"
    group = groups.make(lab, project, name, new=[NewTask("Read it")], by="anna")
    monitor = monitors.start(lab, group, by="anna")
    tick.tick(lab)
    signals = str(lab.paths.signals(project.slug))
    session = Session(tmp_path / name, more={"LAB_SIGNALS": signals, "LAB_WAKE_SOCKET": ""})
    text = f'{{"team_name": "{name}", "task_id": "1"}}'
    began = time.monotonic()
    said = session.run("hook", "task-completed", text=text)
    assert (said.code, said.err) == (0, "")
    while Monitor.objects.get(pk=monitor.pk).state == MonitorState.RUNNING:
        tick.tick(lab, project=asked.get(timeout=PATIENCE))
    return time.monotonic() - began
