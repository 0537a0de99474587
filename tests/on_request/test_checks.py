"""Commands that run for an agent: killed workers, ended runs, presses in the same moment."""

from __future__ import annotations

import dataclasses
import fcntl
import os
import subprocess
import threading
import time
from pathlib import Path

import pytest
from django.db import connection

from runs.core.ports import Lab, SeamError
from runs.core.states import RunState
from runs.jobs.recovery import recover_jobs
from runs.lifecycle import stop as run_stop
from runs.machine import processes
from runs.models import CheckRun, Job, Run
from runs.on_request import check_runner, checks
from runs.on_request.checks import BEGUN_AGAIN, CheckRefused
from tests.house.product import is_gone
from tests.on_request.check_desk import CheckDesk
from tests.patience import PATIENCE
from tests.real import RealWorld

pytestmark = pytest.mark.django_db(transaction=True)

# In place of its shell, which would turn the signal into an exit status when it dies a moment later.
SLEEPS = "echo $$ >> pids; exec sleep 600"
GONE = f"{processes.boot()}:1:0"  # the name of a process that is no more


@pytest.fixture
def desk(real: RealWorld) -> CheckDesk:
    return CheckDesk(real, tests=SLEEPS)


def begun(desk: CheckDesk) -> CheckRun:
    return checks.begin(desk.real.lab, desk.run, [], "anna")


def pids(desk: CheckDesk) -> list[int]:
    file = desk.tree / "pids"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def left_by_a_killed_worker(desk: CheckDesk, row: CheckRun) -> None:
    """What stands when a worker was killed while a command ran: its row, and its process."""
    desk.real.queue.check_runs.clear()
    Job.objects.filter(subject=row.pk).update(owner=GONE, beat_at=desk.real.lab.now())


def owner(row: CheckRun) -> str:
    return Job.objects.get(subject=row.pk).owner


def recover(lab: Lab) -> None:
    recover_jobs(lab, [checks.HANDLER])


@pytest.mark.row("X-16", level="real")
def test_a_worker_that_ends_lets_go_and_the_next_one_begins_anew(desk: CheckDesk) -> None:
    row = begun(desk)
    found = desk.work(is_stopping=lambda: bool(pids(desk)))
    assert (found.is_running, owner(row), found.trouble) == (True, "", "")
    assert is_gone(pids(desk)[0])
    recover(desk.real.lab)
    assert desk.real.queue.check_runs == [row.pk]
    desk.project.check_commands.update(argv=["false"])  # what was asked for stays what is run
    assert found.commands[0]["argv"] == ["sh", "-c", SLEEPS]


@pytest.mark.row("X-16", level="real")
def test_a_killed_worker_costs_one_run_of_the_commands_and_the_second_ends_it(
    desk: CheckDesk,
) -> None:
    row = begun(desk)
    thread = desk.worker()
    desk.real.until(lambda: bool(pids(desk)))
    left_by_a_killed_worker(desk, row)
    thread.join(PATIENCE)
    lab = desk.real.lab
    recover(lab)
    row.refresh_from_db()
    assert (row.is_running, owner(row), row.trouble) == (True, "", BEGUN_AGAIN)
    assert desk.real.queue.check_runs == [row.pk]
    left_by_a_killed_worker(desk, row)
    recover(lab)
    row.refresh_from_db()
    assert (row.is_running, row.trouble) == (
        False,
        "labsite was ended twice while the commands ran; run it again",
    )
    assert desk.real.queue.check_runs == []


@pytest.mark.row("X-16", level="real")
def test_what_a_killed_worker_left_running_is_ended_before_it_is_begun_again(
    desk: CheckDesk,
) -> None:
    desk.project.check_commands.update(argv=["true"])
    row = begun(desk)
    left_by_a_killed_worker(desk, row)
    left = subprocess.Popen(["sleep", "600"], env={**os.environ, processes.MARKER: row.mark})
    recover(desk.real.lab)
    found = desk.work()
    assert left.wait(PATIENCE) < 0
    assert (found.is_running, found.trouble, found.results[0]["status"]) == (False, "", 0)


def test_one_that_a_living_process_lost_sight_of_is_only_begun_again(desk: CheckDesk) -> None:
    row = begun(desk)
    for _ in range(3):
        desk.real.queue.check_runs.clear()
        Job.objects.update(owner=desk.real.lab.process, beat_at=desk.real.lab.now())
        recover(desk.real.lab)
        assert desk.real.queue.check_runs == [row.pk]
    row.refresh_from_db()
    assert row.is_running


@pytest.mark.row("X-12", level="real")
def test_stop_ends_what_runs_for_the_agent_and_its_worker_notes_it(desk: CheckDesk) -> None:
    begun(desk)
    thread = desk.worker()
    desk.real.until(lambda: bool(pids(desk)))
    run = Run.objects.select_related("project").get(pk=desk.run.pk)
    assert run_stop.stop(desk.real.lab, run, "anna")
    assert is_gone(pids(desk)[0]), "when Stop returns, not a second later"
    thread.join(PATIENCE)
    recover(desk.real.lab)
    row = CheckRun.objects.get()
    assert not row.is_running
    assert row.trouble == "its run has ended" or row.results[0]["signal"]


def test_a_run_that_was_ended_elsewhere_ends_its_commands_within_a_second(desk: CheckDesk) -> None:
    begun(desk)
    thread = desk.worker()
    desk.real.until(lambda: bool(pids(desk)))
    now = desk.real.lab.now()
    Run.objects.filter(pk=desk.run.pk).update(state=RunState.HELD, held_at=now)
    thread.join(PATIENCE)
    assert is_gone(pids(desk)[0])
    recover(desk.real.lab)
    row = CheckRun.objects.get()
    assert (row.is_running, row.trouble) == (False, "its run has ended")


def test_what_runs_when_the_gates_begin_is_ended_and_says_why(desk: CheckDesk) -> None:
    begun(desk)
    thread = desk.worker()
    desk.real.until(lambda: bool(pids(desk)))
    now = desk.real.lab.now()
    Run.objects.filter(pk=desk.run.pk).update(state=RunState.CHECKING, checking_at=now)
    thread.join(PATIENCE)
    assert is_gone(pids(desk)[0])
    recover(desk.real.lab)
    row = CheckRun.objects.get()
    assert (row.is_running, row.trouble) == (False, checks.GATES_AT_WORK)
    desk.run.refresh_from_db()
    with pytest.raises(CheckRefused, match="labsite checks your work"):
        begun(desk)


def test_five_that_ask_at_the_same_moment_have_one_check(desk: CheckDesk) -> None:
    found: list[int] = []
    barrier = threading.Barrier(5)

    def ask() -> None:
        try:
            run = Run.objects.select_related("project").get(pk=desk.run.pk)
            barrier.wait(PATIENCE)
            found.append(checks.begin(desk.real.lab, run, [], "anna").pk)
        finally:
            connection.close()

    threads = [threading.Thread(target=ask) for _ in range(5)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(PATIENCE)
    assert len(found) == 5
    assert len(set(found)) == CheckRun.objects.count() == 1
    assert desk.real.queue.check_runs == [found[0]]


def test_other_commands_are_refused_while_some_run(desk: CheckDesk) -> None:
    begun(desk)
    desk.command("lint", "true")
    with pytest.raises(CheckRefused, match="labctl check --stop"):
        begun(desk)


def test_a_worktree_that_is_gone_is_told(desk: CheckDesk) -> None:
    Run.objects.filter(pk=desk.run.pk).update(worktree=str(desk.tree / "gone"))
    desk.run.refresh_from_db()
    begun(desk)
    row = desk.work()
    assert not row.is_running
    assert row.trouble.startswith("the worktree of the run is not there any more")
    assert row.results == []


def test_git_that_is_broken_makes_no_proof_and_keeps_no_command_from_running(
    desk: CheckDesk,
) -> None:
    desk.project.check_commands.update(argv=["true"])

    class Broken:
        def __getattr__(self, name: str) -> object:
            return getattr(desk.real.lab.repos, name)

        def worktree_tree(self, path: Path) -> str:
            raise SeamError("git did not answer")

    begun(desk)
    lab = dataclasses.replace(desk.real.lab, repos=Broken())  # type: ignore[arg-type]
    check_runner.carry_out(lab, desk.real.queue.check_runs.pop())
    row = CheckRun.objects.get()
    assert (row.is_running, row.tree, row.results[0]["status"]) == (False, "", 0)


@pytest.mark.row("MALA-V-04", level="real")
def test_commands_with_the_mutex_wait_for_those_of_clean_rooms(desk: CheckDesk) -> None:
    desk.project.check_commands.update(argv=["true"], use_test_mutex=True)
    lock = desk.real.paths.test_mutex(desk.project.pk)
    lock.parent.mkdir(parents=True, exist_ok=True)
    row = begun(desk)
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        thread = desk.worker()
        desk.real.until(lambda: bool(CheckRun.objects.get(pk=row.pk).results))
        time.sleep(0.3)
        row.refresh_from_db()
        assert row.results[0]["is_running"], "somebody else's runs"
    thread.join(PATIENCE)
    row.refresh_from_db()
    assert (row.is_running, row.results[0]["status"]) == (False, 0)
