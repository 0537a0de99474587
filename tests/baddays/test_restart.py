"""The machine restarts: everything is gone but the disk."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from runs import tick
from runs.core import lease
from runs.core.ports import Steady
from runs.dispatch import start_requests
from runs.lifecycle import launch
from runs.machine import processes
from runs.models import Run
from tests.world.stories import look, press_start, ready

pytestmark = pytest.mark.django_db(transaction=True)

BEFORE = "00000000-1111-2222-3333-444444444444:4242:17"


class Dies:
    """The process ends at the step before the session, without a chance to tidy up."""

    def approve(self, *_: object) -> None:
        raise KeyboardInterrupt


def test_after_a_restart_each_run_is_told_as_it_is_and_all_work_is_there(day):
    real = day.real
    died, done = day.run("7"), day.run("8")
    real.memory.add_pull("demo", "afk/8")
    for key in ("9", "10"):
        ready(real, key)
        start_requests.request(real.lab, day.project, "anna", wanted=key)
    tick.tick(real.lab, project="demo")
    old = replace(real.lab, process=BEFORE, trust=Dies())
    with contextlib.suppress(KeyboardInterrupt):
        launch.carry_out(old, real.queue.launches[0])
    real.queue.launches.clear()
    half, asked = Run.objects.get(issue_key="9"), Run.objects.get(issue_key="10")
    assert half.launcher == BEFORE
    assert Path(half.worktree).is_dir()
    assert lease.acquire(old) is not None

    marks = [run.marker(real.lab.paths) for run in (died, done)]
    for pid in [*day.servers(), *(pid for mark in marks for pid in processes.marked(mark))]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    real.until(lambda: not day.servers() and not any(map(processes.marked, marks)))
    real.lab = replace(real.lab, steady=lambda: Steady("another boot", 3.0))

    report = look(real)
    assert not report.was_skipped
    died, done, half = day.again(died), day.again(done), day.again(half)
    assert (died.outcome, done.outcome, half.outcome) == ("died", "succeeded", "failed")
    assert died.reason == "the session is gone, and there is no pull request"
    assert "interrupted" in half.reason
    assert (died.worktree_fate, done.worktree_fate) == ("kept", "kept")
    assert not (real.paths.worktrees / "demo-9").exists()
    real.offset += timedelta(seconds=6)
    look(real)
    real.work()
    assert day.again(asked).state == "working"
    assert real.repos.claims(day.project.repo(real.paths)) == {"7", "8", "10"}
    assert press_start(real, day.project).run.issue_key == "9"
