"""Stop, Abort and Kill while a command of the clean room runs: real git, tmux and processes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connections

from runs import tick
from runs.core.states import AttemptState, CompletionPolicy, Gate, Outcome, RunState
from runs.gates import clean_room, runner
from runs.gates.hold import Hold
from runs.gates.rules import Decision, Resolution
from runs.lifecycle import stop
from runs.machine import processes
from runs.models import Attempt, CheckCommand, CheckTerms, Job, Run
from runs.validation.specs import Kind, Switch
from runs.watch import acts as watches
from runs.watch.session import Terms
from tests.house.product import is_gone
from tests.patience import PATIENCE
from tests.real import RealWorld, git
from tests.world import stories

pytestmark = pytest.mark.django_db(transaction=True)

OFF = (Switch.COVERAGE, Switch.E2E, Switch.REVIEW, Switch.RUN_LEVEL)


class Checking:
    """A run of a watch session whose clean room runs a command that has a child and a daemon."""

    def __init__(self, real: RealWorld, folder: Path, **terms: object) -> None:
        self.real, self.pids = real, folder / "pids"
        project = real.project()
        project.policy = CompletionPolicy.GATES
        project.save()
        CheckTerms.objects.create(project=project, disabled=[one.value for one in OFF], **terms)
        wrote = f"echo $$ $! > {self.pids}.new; mv {self.pids}.new {self.pids}"
        line = f"setsid sleep 673 & {wrote}; sleep 674"
        CheckCommand.objects.create(
            project=project, position=1, name="tests", argv=["sh", "-c", line], kind=Kind.TEST
        )
        real.memory.add_issue("demo", "Seven", "7", labels=["ready-for-agent"])
        watches.open(real.lab, project, Terms(is_watching=True, limit=1), "anna")
        self.look()
        self.tip = stories.commit(self.run, "seven")
        Run.objects.update(look_asked_at=real.lab.now())
        self.look()
        assert self.run.state == RunState.CHECKING, self.run.reason
        self.mark = self.attempt.mark
        self.worker = threading.Thread(target=self._work, daemon=True)
        self.worker.start()
        real.until(self.pids.exists)
        self.room = clean_room.build_path(real.paths.clean_rooms, self.run.pk, "7", 1)
        assert self.room.is_dir()

    @property
    def run(self) -> Run:
        return Run.objects.get()

    @property
    def attempt(self) -> Attempt:
        return Attempt.objects.get()

    def look(self) -> None:
        tick.tick(self.real.lab, project="demo")
        self.real.work()

    def _work(self) -> None:
        judges = {**runner.JUDGES, Gate.EVIDENCE: self._proves}
        try:
            runner.carry_out(self.real.lab, self.real.queue.attempts.pop(), judges=judges)
        finally:
            connections.close_all()

    def _proves(self, lab: object, hold: Hold) -> Decision:
        hold.store(commit=self.tip, base=hold.run.fork_point, resolution=Resolution.SUCCESS)
        return Decision(Gate.EVIDENCE, True)


def _stop(checking: Checking) -> None:
    assert stop.stop(checking.real.lab, checking.run, "anna")


def _abort(checking: Checking) -> None:
    session = checking.run.watch
    assert session is not None
    assert watches.abort(checking.real.lab, session, "anna")
    checking.look()


def _kill(checking: Checking) -> None:
    session = checking.run.watch
    assert session is not None
    assert watches.kill(checking.real.lab, session, "anna")
    checking.look()


@pytest.mark.row("C-08", "C-38", level="real")
@pytest.mark.parametrize(
    ("act", "outcome", "keep"),
    [
        (_stop, Outcome.STOPPED, True),
        (_abort, Outcome.INTERRUPTED, False),
        (_kill, Outcome.INTERRUPTED, True),
    ],
)
def test_a_run_that_is_ended_while_its_clean_room_works_ends_at_once_and_leaves_nothing(
    real: RealWorld,
    tmp_path: Path,
    act: Callable[[Checking], None],
    outcome: Outcome,
    keep: bool,
) -> None:
    """What was cut short has not failed, so that its clean worktree is of no use to anybody."""
    checking = Checking(real, tmp_path, keep_worktrees=keep)
    act(checking)
    run = checking.run
    assert run.outcome == outcome
    assert "by anna" in run.reason
    checking.worker.join(PATIENCE)
    assert not checking.worker.is_alive()
    assert all(is_gone(int(pid)) for pid in checking.pids.read_text().split())
    assert processes.marked(checking.mark) == []
    assert not checking.room.exists()
    repo = run.project.repo(real.paths)
    assert "clean-rooms" not in git(repo, "worktree", "list")
    attempt = checking.attempt
    job = Job.objects.get()
    assert (attempt.state, job.owner) == (AttemptState.CANCELLED, "")
    assert attempt.settled_at is not None and job.finished_at is not None
    checking.look()
    assert real.session_names() == []
    # The work is kept where it was.
    assert git(Path(run.worktree), "rev-parse", "HEAD") == checking.tip
    assert git(repo, "rev-parse", run.branch) == checking.tip
