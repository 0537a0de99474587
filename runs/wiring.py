"""Plugs the real outside together, once a process. Everything else gets its `Lab` passed in."""

from __future__ import annotations

import functools
import os
import threading
import time
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.utils.module_loading import import_string

from runs import migrations
from runs.agents.on_machine import AgentFiles, AgentLogin, AgentPrograms, AgentRegistry
from runs.agents.trial_server import TrialDesks
from runs.core import database
from runs.core.effects import Effects
from runs.core.ports import Lab, Steady
from runs.followups import red_checks
from runs.forges.bd import BdCommand
from runs.forges.trackers import Trackers
from runs.gates import closing as gates_closing
from runs.gates import runner as gates_runner
from runs.groups import issue_tasks
from runs.groups.signal_files import SignalFolders
from runs.hosts.this_machine import ThisMachine
from runs.loops import beginning as loop_beginning
from runs.loops import issue_of_loop
from runs.machine import processes
from runs.machine.agent_records import AgentRecords
from runs.machine.bell import DatagramBell
from runs.machine.git import Git
from runs.machine.tmux import TmuxSessions
from runs.machine.worktrees import GitWorktrees
from runs.models import Host, Run, Settings
from runs.notices.notifier import AppriseNotifier
from runs.on_request import checks
from runs.phone import acts as phone_acts
from runs.secrets import masked
from runs.secrets.known import Known
from runs.setup import after_run
from runs.validation.command_runner import LocalChecks
from runs.watch import acts as watch_acts
from trackers.registry import Tools

if TYPE_CHECKING:
    from runs.core.paths import Paths
    from trackers.http.client import Client

EFFECTS = Effects(
    run_started=(issue_tasks.started, loop_beginning.started),
    run_ended=(
        issue_tasks.ended,
        watch_acts.run_ended,
        gates_closing.request_follow_up_mark,
        loop_beginning.ended,
        red_checks.watch_delivery,
    ),
    validation_ended=(watch_acts.validation_ended, gates_closing.request_proven_closings),
    project_changed=(watch_acts.project_changed,),
    issue_taken=(issue_of_loop.taken,),
    push_offers=phone_acts.offers,
)

# Who knows what to do with each kind of job that is found again.
JOB_HANDLERS = (gates_runner.HANDLER, checks.HANDLER, after_run.HANDLER)


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
    bell = _bell(paths)
    plain = Lab(
        host=settings.SESSION_HOST,
        paths=paths,
        sessions=TmuxSessions(paths, environ),
        repos=GitWorktrees(git),
        checks=LocalChecks(environ),
        signals=SignalFolders(),
        queue=TaskQueue(bell, settings.SESSION_HOST),
        bell=bell,
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
        effects=EFFECTS,
        others=_others(paths),
        machine=ThisMachine(
            paths.state, paths.repos, version(), is_shared=connection.vendor == "postgresql"
        ),
    )
    return masked.lab(plain, Known(environ))


def _bell(paths: Paths) -> DatagramBell:
    if settings.REDIS is None:
        return DatagramBell(paths)
    from runs.remote.bell import RedisBell

    return RedisBell(paths, settings.REDIS)


def _others(paths: Paths) -> Callable[[Lab, str], Lab] | None:
    if settings.REDIS is None:
        return None
    from runs.remote.asking import Others

    return Others(settings.REDIS, paths.state, database_time, version_of=_version_of).at


def database_time() -> datetime:
    """Now, by the clock of the server that all machines share."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        moment: datetime = cursor.fetchone()[0]
    return moment


def _version_of(host: str) -> str:
    """Which labsite a host runs, as it told with its last tick."""
    return Host.objects.filter(name=host).values_list("version", flat=True).first() or ""


def rung_elsewhere(ring: Callable[[], object]) -> None:
    """Ring this process whenever another machine tells that the timeline has grown."""
    if settings.REDIS is None:
        return
    from runs.remote.bell import FEED

    settings.REDIS.in_background([FEED], lambda _text: ring())


def rung_by_screens(ring: Callable[[str], object]) -> None:
    """Hear from other machines which run's screen has changed, of those that `watch_screen` named."""
    if settings.REDIS is not None:
        from runs.remote.screens import CHANGED

        settings.REDIS.in_background([CHANGED], ring)


def watch_screen(run: Run) -> None:
    """Have the host of a run tell of changes of its screen for a while; no need at home."""
    if settings.REDIS is not None and run.host != settings.SESSION_HOST:
        from runs.remote.screens import WATCH

        settings.REDIS.tell(WATCH, str(run.pk))


@functools.cache
def version() -> str:
    """The version of the product, and of what it expects of the database."""
    with (Path(settings.ROOT) / "pyproject.toml").open("rb") as file:
        number = tomllib.load(file)["project"]["version"]
    steps = (path.name[:4] for path in Path(migrations.__file__).parent.glob("[0-9]*.py"))
    return f"{number}+{max(steps)}"


def _client(paths: Paths) -> Client:
    """Made when a forge is first asked: who has none pays nothing for the HTTP library."""
    from trackers.http.client import over_network

    return over_network(paths.answers, _now)


class Workers(Protocol):
    """What the queue needs of a bell."""

    def work(self, host: str = "") -> None:
        """Wake the workers of a host, here if none is named: there is something on its queue."""


class TaskQueue:
    """`Queue` on Huey, by the names that `runs.tasks` gives to its verbs."""

    def __init__(self, bell: Workers, own: str, host: str = "") -> None:
        self._bell, self._own, self._host = bell, own, host

    def on(self, host: str) -> TaskQueue:
        return TaskQueue(self._bell, self._own, "" if host == self._own else host)

    def _ask(self, verb: str, number: int, priority: int = 0) -> None:
        if self._host:
            settings.HUEY.ask_of(self._host, verb, number, priority)
        else:
            settings.HUEY.ask(verb, number, priority)
        self._bell.work(self._host)

    def ping(self, healthy: bool) -> None:
        settings.HUEY.ask("ping", int(healthy))

    def launch(self, run_id: int) -> None:
        self._ask("launch", run_id, priority=5)

    def clone(self, project_id: int) -> None:
        self._ask("clone", project_id)

    def open(self, session_id: int) -> None:
        self._ask("open", session_id, priority=5)

    def deliver(self, delivery_id: int) -> None:
        self._ask("deliver", delivery_id)

    def validate(self, validation_id: int) -> None:
        self._ask("validate", validation_id)

    def check(self, attempt_id: int) -> None:
        self._ask("check", attempt_id)

    def check_run(self, check_id: int) -> None:
        self._ask("check_run", check_id)

    def after_run(self, run_id: int) -> None:
        self._ask("after_run", run_id)

    def fix(self, fixer_id: int) -> None:
        self._ask("fix", fixer_id, priority=5)

    def sweep(self, project_id: int) -> None:
        self._ask("sweep", project_id)

    def discard(self, discarding_id: int) -> None:
        self._ask("discard", discarding_id)

    def refresh(self, project_id: int) -> None:
        self._ask("refresh", project_id)

    def mirror(self, run_id: int) -> None:
        self._ask("mirror", run_id)

    def check_agent(self, profile_id: int) -> None:
        self._ask("check_agent", profile_id)

    def try_agent(self, trial_id: int) -> None:
        self._ask("try_agent", trial_id)


def _now() -> datetime:
    return datetime.now(UTC)


def _steady() -> Steady:
    return Steady(processes.boot(), time.clock_gettime(time.CLOCK_BOOTTIME))


_timeout_of = threading.local()


def _git_timeout() -> float:
    """The admin's limit for one git command, read at most every few seconds per thread.

    A database that does not answer changes nothing: git needs none, and what it does may be the end
    of hours of work.
    """
    read_at = getattr(_timeout_of, "at", 0.0)
    if time.monotonic() - read_at > 5:
        try:
            _timeout_of.value = float(Settings.current().git_timeout_seconds)
        except (OperationalError, InterfaceError):
            if connection.in_atomic_block or not hasattr(_timeout_of, "value"):
                raise
            database.renew_connection()
        _timeout_of.at = time.monotonic()
    return cast("float", _timeout_of.value)
