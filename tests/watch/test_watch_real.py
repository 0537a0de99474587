"""Watch sessions with real tmux, git and processes (MALA-W)."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from runs import tick
from runs.machine import processes
from runs.models import Run, Validation, WatchSession
from runs.validation import acts as validations
from runs.validation import runner
from runs.watch import acts as watches
from runs.watch.session import Request, Terms
from tests.patience import PATIENCE
from tests.real import RealWorld, git

pytestmark = pytest.mark.django_db(transaction=True)

# Writes a file, commits and pushes it as an agent does, and stays.
DELIVERS = """
import pathlib, subprocess, time
def run(*argv): return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()
branch = run('git', 'branch', '--show-current')
pathlib.Path(branch.replace('/', '-') + '.txt').write_text('done')
run('git', 'add', '-A'); run('git', 'commit', '-qm', 'feat: done'); run('git', 'push', '-q', 'origin', branch)
print('delivered', flush=True)
time.sleep(600)
"""
STUBBORN = """
import signal, subprocess, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
subprocess.Popen(['sleep', '600'])
print('ready', flush=True)
while True: time.sleep(1)
"""
GIVES_WAY = """
import time
print('ready', flush=True)
try: time.sleep(600)
except KeyboardInterrupt: pass
"""


class Bench:
    """One project on real tmux and git; whoever waits for something outside looks meanwhile."""

    def __init__(self, real: RealWorld, program: str, *keys: str, checks: str = "") -> None:
        self.real, self.lab = real, real.lab
        self.project = real.project(argv=[sys.executable, "-c", program, "{prompt}"])
        self.project.checks, self.project.parallel_runs = checks, 2
        self.project.fix_attempts = 0
        self.project.save()
        for key in keys:
            real.memory.add_issue("demo", f"Issue {key}", key, labels=["ready-for-agent"])

    def opens(self, terms: Terms) -> None:
        watches.open(self.lab, self.project, terms, "anna")
        self.look()

    def look(self) -> None:
        tick.tick(self.lab, project="demo")
        self.real.work()
        validations.tend(self.lab)
        while self.real.queue.validations:
            runner.carry_out(self.lab, self.real.queue.validations.pop(0))

    def until_said(self, word: str) -> None:
        def all_said() -> bool:
            names = self.real.session_names()
            shown = self.lab.sessions.screens(names)
            return shown.keys() == set(names) and all(word in text for text in shown.values())

        self.real.until(all_said)

    def delivered(self) -> None:
        """The agents' pull requests are there."""
        for branch in list(Run.objects.active().values_list("branch", flat=True)):
            self.real.memory.add_pull("demo", branch, created_at=self.lab.now())

    def until_over(self, seconds: float = PATIENCE) -> WatchSession:
        def is_over() -> bool:
            self.look()
            return not self.session.is_open

        self.real.until(is_over, seconds)
        return self.session

    @property
    def session(self) -> WatchSession:
        return WatchSession.objects.latest("pk")


@pytest.mark.row("MALA-W-06", "MALA-W-21", "MALA-W-30", "MALA-W-62", "MALA-W-67", level="real")
def test_a_session_delivers_validates_together_and_ends_with_nought(real: RealWorld) -> None:
    bench = Bench(real, DELIVERS, *"123", checks="ls")
    bench.opens(Terms(is_watching=True, limit=2, every=10))
    assert real.session_names() == ["demo~1~afk-auto-1", "demo~2~afk-auto-2"]
    bench.until_said("delivered")
    bench.delivered()
    session = bench.until_over()
    assert (session.code, session.reason, session.completed) == (0, "limit reached", 2)
    row = Validation.objects.get()
    assert (row.state, row.count) == ("passed", 2)
    assert row.results[0]["tail"].split() == ["afk-1.txt", "afk-2.txt", "hello.txt"]
    assert sorted(Run.objects.values_list("issue_key", flat=True)) == ["1", "2"]
    assert real.session_names() == []


@pytest.mark.row("MALA-W-75", level="real")
def test_an_issue_that_bd_is_given_from_outside_is_started_within_a_minute(real: RealWorld) -> None:
    project = real.project(tracker="beads")
    watches.open(real.lab, project, Terms(is_watching=True), "anna")
    tick.tick(real.lab)
    assert WatchSession.objects.get().phase == "idle"
    real.beads().issue("bd-a1", "from outside", labels=[project.ready_label])
    began = real.offset
    while not Run.objects.exists():
        real.offset += timedelta(seconds=10)
        assert real.offset - began <= timedelta(seconds=70)
        tick.tick(real.lab)
        real.work()
    assert Run.objects.get().state == "working"
    assert real.session_names() == ["demo~1~afk-auto-bd-a1"]


@pytest.mark.row("MALA-W-35", "MALA-W-49", "MALA-W-68", level="real")
def test_what_does_not_hold_together_ends_it_with_one(real: RealWorld) -> None:
    bench = Bench(real, DELIVERS, "1", checks="test ! -e afk-1.txt")
    bench.opens(Terms(is_watching=True, every=1))
    bench.until_said("delivered")
    bench.delivered()
    watches.drain(bench.lab, bench.session, "anna")
    session = bench.until_over()
    assert (session.code, session.reason) == (1, "validation failed")
    assert Validation.objects.get().reason.endswith("failed with exit status 1")


@pytest.mark.row("MALA-W-50", level="real")
def test_abort_lets_agents_end_by_themselves(real: RealWorld) -> None:
    bench = Bench(real, GIVES_WAY, "1", "2")
    bench.opens(Terms(is_watching=True))
    bench.until_said("ready")
    run = Run.objects.latest("pk")
    (Path(run.worktree) / "unsaved.txt").write_text("what nobody committed\n")
    watches.abort(bench.lab, bench.session, "anna")
    # By its clock the ten seconds never pass after which it ends them itself.
    now, steady = bench.lab.now(), bench.lab.steady()
    bench.lab = replace(bench.lab, now=lambda: now, steady=lambda: steady)
    session = bench.until_over()
    assert (session.code, session.reason) == (130, "interrupted")
    assert set(Run.objects.values_list("outcome", flat=True)) == {"interrupted"}
    assert (Path(run.worktree) / "unsaved.txt").read_text() == "what nobody committed\n"
    assert git(bench.project.repo(real.paths), "rev-parse", run.branch)
    real.until(lambda: (bench.look(), real.session_names() == [])[1])


@pytest.mark.row("MALA-W-50", "MALA-W-51", level="real")
@pytest.mark.parametrize("way", ["kill", "ten seconds"])
def test_who_ignores_the_interrupt_is_ended_with_all_its_processes(
    real: RealWorld, way: str
) -> None:
    bench = Bench(real, STUBBORN, "1")
    bench.opens(Terms(is_watching=True))
    bench.until_said("ready")
    mark = Run.objects.get().marker(real.lab.paths)
    watches.abort(bench.lab, bench.session, "anna")
    bench.look()
    assert len(processes.marked(mark)) >= 2
    assert bench.session.is_open
    if way == "kill":
        assert watches.ask(bench.lab, bench.session, Request.KILL, "anna")
    else:
        real.offset += timedelta(seconds=10)
    bench.look()
    assert (bench.session.code, bench.session.reason) == (130, "interrupted")
    real.until(lambda: not processes.marked(mark))
    assert real.session_names() == []
    assert Run.objects.get().outcome == "interrupted"


@pytest.mark.row("MALA-W-13", "MALA-W-45", level="real")
def test_agents_that_die_while_a_session_drains_are_failures_and_it_ends(real: RealWorld) -> None:
    """Their tmux server lives on with a session of somebody else: so each died by itself."""
    bench = Bench(real, GIVES_WAY, "1", "2")
    bench.opens(Terms(is_watching=True))
    watches.drain(bench.lab, bench.session, "anna")
    bench.look()
    assert bench.session.phase == "draining"
    real.tmux("new-session", "-d", "-s", "other")
    for run in Run.objects.all():
        real.sessions.kill(run.session, run.marker(real.paths))
    session = bench.until_over()
    assert (session.code, session.completed, session.failed) == (130, 2, 2)
