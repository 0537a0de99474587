"""Plugs the real outside together, once a process. Everything else gets its `Lab` passed in."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from django.conf import settings
from django.utils.module_loading import import_string

from runs.agents.on_machine import AgentFiles, AgentLogin, AgentPrograms, AgentRegistry
from runs.agents.trial_server import TrialDesks
from runs.core.ports import Lab, Steady
from runs.forges.bd import BdCommand
from runs.forges.trackers import Trackers
from runs.groups.signal_files import SignalFolders
from runs.machine import processes
from runs.machine.agent_records import AgentRecords
from runs.machine.bell import DatagramBell
from runs.machine.git import Git
from runs.machine.tmux import TmuxSessions
from runs.machine.worktrees import GitWorktrees
from runs.models import Settings
from runs.notices.notifier import AppriseNotifier
from runs.secrets import masked
from runs.secrets.known import Known
from runs.validation.command_runner import LocalChecks
from trackers.registry import Tools

if TYPE_CHECKING:
    from runs.core.paths import Paths
    from trackers.http.client import Client


def lab() -> Lab:
    """The `Lab` of this process. Tests name another one in `settings.RUNS_LAB`."""
    chosen = getattr(settings, "RUNS_LAB", "runs.wiring.real_lab")
    make = import_string(chosen) if isinstance(chosen, str) else chosen
    return cast("Callable[[], Lab]", make)()


def made() -> Lab | None:
    """The same if it was made already: for what happens after every request."""
    chosen = getattr(settings, "RUNS_LAB", None)
    if callable(chosen):
        return cast("Lab", chosen())
    return real_lab() if real_lab.cache_info().currsize else None


@functools.cache
def real_lab() -> Lab:
    """tmux, git and trackers of this machine."""
    paths = settings.PATHS
    environ = dict(os.environ)
    git = Git(environ, paths.bin, _git_timeout)
    tools = Tools(now=_now, client=lambda: _client(paths), runner=BdCommand(environ))
    trackers = Trackers(tools, time.monotonic)
    plain = Lab(
        host=settings.SESSION_HOST,
        paths=paths,
        sessions=TmuxSessions(paths, environ),
        repos=GitWorktrees(git),
        checks=LocalChecks(environ),
        signals=SignalFolders(),
        queue=TaskQueue(DatagramBell(paths)),
        bell=DatagramBell(paths),
        trust=AgentFiles(environ),
        login=AgentLogin(environ),
        programs=AgentPrograms(environ, paths.bin),
        desks=TrialDesks(),
        notifier=AppriseNotifier(environ),
        registry=AgentRegistry(environ),
        records=AgentRecords(environ),
        now=_now,
        steady=_steady,
        pause=time.sleep,
        tracker_for=trackers.tracker_for,
        forges=trackers,
        process=processes.name_of(os.getpid()),
        is_process_alive=processes.is_alive,
    )
    return masked.lab(plain, Known(environ))


def _client(paths: Paths) -> Client:
    """Made when a forge is first asked: who has none pays nothing for the HTTP library."""
    from trackers.http.client import over_network

    return over_network(paths.answers, _now)


class TaskQueue:
    """`Queue` on Huey, by the names that `runs.tasks` gives to its verbs."""

    def __init__(self, bell: DatagramBell) -> None:
        self._bell = bell

    def launch(self, run_id: int) -> None:
        settings.HUEY.ask("launch", run_id, priority=5)
        self._bell.work()

    def clone(self, project_id: int) -> None:
        settings.HUEY.ask("clone", project_id)
        self._bell.work()

    def open(self, session_id: int) -> None:
        settings.HUEY.ask("open", session_id, priority=5)
        self._bell.work()

    def deliver(self, delivery_id: int) -> None:
        settings.HUEY.ask("deliver", delivery_id)
        self._bell.work()

    def ping(self, healthy: bool) -> None:
        settings.HUEY.ask("ping", int(healthy))

    def validate(self, validation_id: int) -> None:
        settings.HUEY.ask("validate", validation_id)
        self._bell.work()

    def fix(self, fixer_id: int) -> None:
        settings.HUEY.ask("fix", fixer_id, priority=5)
        self._bell.work()

    def sweep(self, project_id: int) -> None:
        settings.HUEY.ask("sweep", project_id)
        self._bell.work()

    def discard(self, discarding_id: int) -> None:
        settings.HUEY.ask("discard", discarding_id)
        self._bell.work()

    def refresh(self, project_id: int) -> None:
        settings.HUEY.ask("refresh", project_id)
        self._bell.work()

    def mirror(self, run_id: int) -> None:
        settings.HUEY.ask("mirror", run_id)
        self._bell.work()

    def check_agent(self, profile_id: int) -> None:
        settings.HUEY.ask("check_agent", profile_id)
        self._bell.work()

    def try_agent(self, trial_id: int) -> None:
        settings.HUEY.ask("try_agent", trial_id)
        self._bell.work()


def _now() -> datetime:
    return datetime.now(UTC)


def _steady() -> Steady:
    return Steady(processes.boot(), time.clock_gettime(time.CLOCK_BOOTTIME))


_timeout_of = threading.local()


def _git_timeout() -> float:
    """The admin's limit for one git command, read at most every few seconds per thread."""
    read_at = getattr(_timeout_of, "at", 0.0)
    if time.monotonic() - read_at > 5:
        _timeout_of.value = float(Settings.current().git_timeout_seconds)
        _timeout_of.at = time.monotonic()
    return cast("float", _timeout_of.value)
