"""tmux hangs, dies, or loses its socket: what cannot be asked ends nothing and starts nothing."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from runs import tick
from runs.core.states import Outcome
from runs.dispatch import start_requests
from runs.lifecycle import launch, observe, outcomes
from runs.lifecycle.stop import stop
from runs.machine import processes
from runs.machine.tmux import TmuxSessions
from runs.models import Host, Notice, Run, Settings, StartRequest
from tests.baddays.conftest import BadDay
from tests.patience import PATIENCE
from tests.world.stories import look, press_start, ready, start

pytestmark = pytest.mark.django_db(transaction=True)

IMPATIENT = 0.4


@contextlib.contextmanager
def hanging(day: BadDay) -> Iterator[None]:
    """The tmux server is stopped in its tracks: callers connect and wait for ever."""
    servers, patience = day.servers(), day.real.sessions.timeout
    assert servers
    for pid in servers:
        os.kill(pid, signal.SIGSTOP)
    day.real.sessions.timeout = IMPATIENT
    try:
        yield
    finally:
        day.real.sessions.timeout = patience
        for pid in servers:
            os.kill(pid, signal.SIGCONT)


def test_a_tmux_that_hangs_at_the_look_ends_nothing_and_a_start_waits_for_it(day):
    run = day.run()
    ready(day.real, "8")
    with hanging(day):
        day.real.offset += 2 * day.project.budget(Settings.current())
        report = look(day.real)
        asked = press_start(day.real, day.project)
        assert (report.ended, report.started) == (0, 0)
        assert day.again(run).is_active
        assert asked.answer == ""
        assert "tmux did not say" in asked.text
        assert "tried again" in asked.text
        told = Host.objects.get()
        assert "tmux did not answer" in told.last_error
        assert "gave no answer within" in told.last_error
        assert told.last_tick_at is not None
    look(day.real)
    day.real.work()
    assert day.again(run).outcome == "timed_out"
    asked.refresh_from_db()
    assert (asked.answer, asked.text) == ("started", "")
    assert asked.run.issue_key == "8"
    assert day.again(asked.run).state == "working"


def test_a_start_that_waited_too_long_for_tmux_is_refused_with_the_reason(day):
    day.run()
    ready(day.real, "8")
    with hanging(day):
        asked = press_start(day.real, day.project)
        assert asked.answer == ""
        day.real.offset += start_requests.PATIENCE
        look(day.real)
    asked.refresh_from_db()
    assert asked.answer == "seam_failed"
    assert asked.text == (
        "tmux did not say which sessions are alive. So nothing was started. Nothing was claimed. "
        "Press Start again."
    )
    assert Notice.objects.filter(kind="start.refused", text=asked.text).count() == 1
    look(day.real)
    assert Run.objects.count() == 1


def test_a_hanging_tmux_keeps_no_tick_busy_with_sessions_that_it_cannot_end(day):
    """Each would cost the whole patience again: with ten of them the tick would lose its lease."""
    for run in [start(day.real, day.project, key) for key in ("1", "2", "3", "4")]:
        assert outcomes.record(day.real.lab, run, Outcome.STOPPED, "stopped by anna")
    with hanging_program(day) as calls:
        look(day.real)
        assert calls() == ["list-panes"]
        assert Run.objects.unsettled().count() == 4
    look(day.real)
    assert Run.objects.unsettled().count() == 0


@contextlib.contextmanager
def hanging_program(day: BadDay) -> Iterator[Callable[[], list[str]]]:
    """A tmux that hangs itself; the answer tells which commands were started."""
    log, stub = day.real.folder / "calls", day.real.folder / "hanging-tmux"
    stub.write_text(f'#!/bin/sh\nshift 5\necho "$1" >> {log}\nexec sleep 600\n')
    stub.chmod(0o755)
    log.touch()
    sessions = TmuxSessions(day.real.paths, day.real.environ, str(stub), 15 * IMPATIENT)
    before = day.real.lab
    day.real.lab = replace(before, sessions=sessions)
    yield lambda: log.read_text().split()
    day.real.lab = before


def test_a_tmux_that_hangs_at_the_start_gives_the_issue_back_when_it_goes_on(day):
    """The server reads the order when it wakes up, long after the start was given up."""
    day.run("7")
    ready(day.real, "8")
    start_requests.request(day.real.lab, day.project, "anna")
    tick.tick(day.real.lab, project="demo")
    with hanging(day):
        day.real.work()
        run = Run.objects.get(issue_key="8")
        asked = StartRequest.objects.get(run=run)
        assert run.outcome == "failed"
        assert asked.answer == "start_failed"
        assert "gave no answer" in asked.text
    look(day.real)
    look(day.real)
    assert day.real.session_names() == ["demo~1~afk-7"]
    assert day.real.repos.claims(day.project.repo(day.real.paths)) == {"7"}
    assert press_start(day.real, day.project).answer == "started"


def test_a_tmux_that_hangs_at_the_second_look_leaves_the_start_to_the_next_tick(day):
    ready(day.real)
    start_requests.request(day.real.lab, day.project, "anna")
    tick.tick(day.real.lab, project="demo")
    with contextlib.ExitStack() as stack:
        lab = replace(day.real.lab, pause=lambda _: stack.enter_context(hanging(day)))
        launch.carry_out(lab, Run.objects.get().pk)
        assert Run.objects.get().state == "starting"
        look(day.real)
        assert Run.objects.get().state == "starting"
    look(day.real)
    assert Run.objects.get().state == "working"
    assert day.real.session_names() == ["demo~1~afk-7"]


def test_a_tmux_that_hangs_at_the_kill_is_asked_again_and_the_outcome_stands(day):
    run = day.run()
    with hanging(day):
        assert stop(day.real.lab, run, "anna")
        run = day.again(run)
        assert (run.outcome, run.settled_at) == ("stopped", None)
        assert "tried again at every tick" in run.warning
        # A hanging tmux keeps its session, and no process of the run.
        assert processes.marked(run.marker(day.real.lab.paths)) == []
    look(day.real)
    run = day.again(run)
    assert run.settled_at is not None
    assert processes.marked(run.marker(day.real.lab.paths)) == []
    assert Notice.objects.filter(run=run, kind="run.warned").count() == 1


def test_a_tmux_that_hangs_at_the_capture_is_an_error_on_the_page_and_no_end(day):
    run = day.run()
    with hanging(day):
        screen = observe.terminal(day.real.lab, run)
        assert "gave no answer" in screen.error
        assert not screen.live
    assert observe.terminal(day.real.lab, run).error == ""


def test_a_tmux_server_killed_with_all_sessions_is_told_as_it_is(day):
    first, second = day.run("7"), day.run("8")
    day.real.memory.add_pull("demo", "afk/8")
    for pid in day.servers():
        os.kill(pid, signal.SIGKILL)
    day.real.until(lambda: not day.servers())
    look(day.real)
    first, second = day.again(first), day.again(second)
    assert (first.outcome, second.outcome) == ("died", "succeeded")
    assert "and there is no pull request" in first.reason
    assert (first.worktree_fate, second.worktree_fate) == ("kept", "kept")
    assert processes.marked(first.marker(day.real.lab.paths)) == []
    ready(day.real, "9")
    assert press_start(day.real, day.project).answer == "started"


@pytest.mark.row("LAB-16", level="real")
def test_a_server_whose_socket_was_deleted_is_found_again_and_no_run_dies(day):
    """Without its socket tmux says "no server", while the agents go on."""
    run = day.run()
    before = day.servers()
    day.real.paths.tmux_socket.unlink()
    report = look(day.real)
    assert report.errors == []
    assert day.again(run).is_active
    assert day.servers() == before
    assert day.real.session_names() == [run.session]


def test_a_start_never_makes_a_second_server_beside_one_that_lost_its_socket(day):
    run = day.run()
    before = day.servers()
    ready(day.real, "8")
    start_requests.request(day.real.lab, day.project, "anna")
    tick.tick(day.real.lab, project="demo")
    day.real.paths.tmux_socket.unlink()
    day.real.work()
    assert day.servers() == before
    assert day.real.session_names() == [run.session, "demo~2~afk-8"]


def test_a_server_that_cannot_be_reached_at_all_is_could_not_tell(day):
    """It hangs and its socket is gone: nobody answers, and nobody may be called dead."""
    run = day.run()
    socket = day.real.paths.tmux_socket
    with hanging(day):
        socket.unlink()
        day.real.sessions.timeout = PATIENCE  # nothing hangs any more where there is no socket
        report = look(day.real)
        assert "the tmux server still runs, but its socket" in report.errors[0]
        assert day.again(run).is_active
    look(day.real)
    assert day.again(run).is_active
    assert day.real.session_names() == [run.session]
