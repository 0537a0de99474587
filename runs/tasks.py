"""What the worker does: its periodic work, wake-ups, launches and clones. No rule lives here."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import connection
from huey.contrib.djhuey import periodic_task

from labsite.queue import OFFER_SECONDS
from runs import offers, sweep, tick
from runs.accounts import logins
from runs.agents import checks, trial
from runs.conversation import keeping
from runs.core import lease, naming
from runs.core.database import keep_connection, pool
from runs.core.ports import Lab
from runs.followups import red_checks
from runs.forges import mirror, quota, tracker_cache
from runs.gates import closing as gates_closing
from runs.gates import runner as gates_runner
from runs.groups.signal_watch import SignalPoll
from runs.hosts import silence
from runs.jobs import recovery
from runs.kept import discard as discard_progress
from runs.kept import removal
from runs.lifecycle import launch as run_launch
from runs.loops import issue_of_loop
from runs.manual import acts as manual
from runs.notices import deliveries, pings, pruning
from runs.offers import Offers
from runs.on_request import check_runner
from runs.overview import morning
from runs.setup import after_run
from runs.timeline.folding import Folding
from runs.validation import acts as validation_acts
from runs.validation import fixers, runner
from runs.wiring import JOB_HANDLERS, database_time, lab

logger = logging.getLogger(__name__)

LEASE_WAIT_SECONDS = 5.0
LEASE_STEP_SECONDS = 0.02
_SHARED = {
    "open": "launch",
    "fix": "launch",
    "ping": "deliver",
    "refresh": "deliver",
    "discard": "sweep",
    "mirror": "deliver",
    "check_agent": "agent",
    "try_agent": "agent",
}


_offers = Offers()
_folding = Folding()
_due: set[str] = set()


def note_due() -> None:
    """Find out what is due, before the scheduler offers it."""
    _due.clear()
    _due.update(_offers.due(lab()))


def own_lab() -> Lab:
    """The `Lab` of this process, for work of its host. Raises OtherMachine.

    A machine that was cut off may come back when another one has its name: then the work of that
    name is asked of the other one too, and what is not here says nothing about it.
    """
    world = lab()
    lease.check_name(world)
    return world


def _is_ours() -> bool:
    try:
        own_lab()
    except lease.OtherMachine as error:
        logger.warning("work of another machine was left to it", extra={"error": str(error)})
        return False
    return True


def _if_ours(work: Callable[[int], None]) -> Callable[[int], None]:
    """A verb that is left to the other machine where one has our name; its rows are found there."""

    @keep_connection
    def carry_out(number: int) -> None:
        if _is_ours():
            work(number)

    return carry_out


def _is_due(name: str) -> Callable[[datetime], bool]:
    return lambda _now: name in _due


@periodic_task(_is_due(offers.TICK), expires=OFFER_SECONDS, priority=10)
@keep_connection
def offer_tick() -> None:
    """Looks at what is due; does only that.

    The worker of a host that was taken out, or whose name another machine has now, ends itself.
    """
    world = lab()
    report = tick.tick(world)
    if report.is_taken_out and not world.paths.removed.exists():
        logger.error(report.errors[0])
        world.paths.removed.write_text(report.errors[0])
        os.kill(os.getpid(), signal.SIGTERM)


@periodic_task(_is_due(offers.POST), expires=OFFER_SECONDS)
@keep_connection
def post() -> None:
    """Notices for the outside: written down, and their sending asked for as work of its own."""
    morning.send_due(lab())
    deliveries.post(lab())


@periodic_task(_is_due(offers.TEND), expires=OFFER_SECONDS)
@keep_connection
def tend() -> None:
    """Beside the runs: hosts that fell silent, sessions that people drive, validations, log-ins."""
    if not _is_ours():
        return
    if connection.vendor == "postgresql":  # with a database in a file there is no other host
        silence.tell(lab())
    manual.watch(lab())
    validation_acts.tend(lab())
    gates_closing.update_trackers(lab())
    gates_runner.request_missing_jobs(lab())
    recovery.recover_jobs(lab(), JOB_HANDLERS)
    logins.sweep(lab())
    checks.sweep(lab())
    trial.sweep(lab())
    discard_progress.tend(lab())
    red_checks.request_looks(lab())


@periodic_task(_is_due(offers.KEEP), expires=OFFER_SECONDS)
@keep_connection
def keep_records() -> None:
    """What agents wrote of settled runs, copied where it stays; what is old enough folded or removed.

    Seconds where there is much.
    """
    if not _is_ours():
        return
    keeping.tend(lab())
    _folding.tend(lab())
    pruning.tend(lab())


@keep_connection
def look(project: str) -> None:
    """A wake-up: look at one project now, waiting a little for a tick that is in progress."""
    world = lab()
    waited = 0.0
    while tick.tick(world, project=project).was_skipped and waited < LEASE_WAIT_SECONDS:
        world.pause(LEASE_STEP_SECONDS)
        waited += LEASE_STEP_SECONDS


def launch(run_id: int) -> None:
    """Carry out a run in *starting*."""
    _long("launch", run_id, run_launch.carry_out)


def clone(project_id: int) -> None:
    """Carry out the clone of a new project, or the removal of one."""
    _long("clone", project_id, removal.clone_or_remove)


def open_session(session_id: int) -> None:
    """Carry out the start of a session that a person drives. Shares the room of launches."""
    _long("open", session_id, manual.carry_out)


def deliver(delivery_id: int) -> None:
    """Send notices to the outside. Busy already: nothing is lost, `post` asks again in seconds."""
    room = settings.HUEY.rooms["deliver"]
    if not room.acquire(blocking=False):
        return
    try:
        deliveries.drain(lab(), delivery_id)
    finally:
        room.release()


def ping(healthy: int) -> None:
    """Tell a watcher outside how the last tick went. Shares the room of the notices."""
    _long("ping", healthy, lambda world, value: pings.carry_out(world, bool(value)))


def validate(validation_id: int) -> None:
    """Carry out a validation. All rooms taken: nothing is lost, `tend` asks again in seconds.

    A worker that is told to end lets go of it, and the next one begins it anew.
    """
    _if_free("validate", validation_id, runner.carry_out)


def check_run(check_id: int) -> None:
    """Run commands for an agent that waits for them. All rooms taken: `tend` asks again in seconds."""
    _if_free("check_run", check_id, check_runner.carry_out)


def carry_out_after_run(run_id: int) -> None:
    """Run a project's commands after a run. All rooms taken: `tend` asks again in seconds."""
    _if_free("after_run", run_id, after_run.carry_out)


def check(attempt_id: int) -> None:
    """Take an attempt through the gates, in the room of validations; asked again as those are."""
    _if_free("validate", attempt_id, gates_runner.carry_out)


def check_agent(profile_id: int) -> None:
    """Ask an agent's program for its version and login. Shares the room of trials."""
    _long("check_agent", profile_id, checks.carry_out)


def try_agent(trial_id: int) -> None:
    """Try an agent, which may take three minutes; no launch waits for it."""
    _long("try_agent", trial_id, trial.carry_out)


def fix(fixer_id: int) -> None:
    """Carry out the start of a fixer. Shares the room of launches."""
    _long("fix", fixer_id, fixers.carry_out)


def sweep_project(project_id: int) -> None:
    """Fetch a project and collect what was merged."""
    _long("sweep", project_id, sweep.carry_out)


def discard(discarding_id: int) -> None:
    """Carry out a discard of large files. Shares the room of clones and sweeps."""
    _long("discard", discarding_id, discard_progress.carry_out)


def refresh(project_id: int) -> None:
    """Ask a tracker again for what pages show of it. Shares the room of the notices."""
    _long("refresh", project_id, tracker_cache.refresh)


def mirror_run(run_id: int) -> None:
    """Write on the tracker how a run stands, and read its checks there. Shares the room of the notices."""
    _long("mirror", run_id, _mirror)


def _mirror(lab: Lab, run_id: int) -> None:
    mirror.carry_out(lab, run_id)
    issue_of_loop.write_ends(lab, run_id)
    red_checks.look(lab, run_id)


def _long(verb: str, number: int, carry_out: Callable[[Lab, int], None]) -> None:
    """Carry out long work unless too much of its kind runs already; then ask again in a second.

    Some workers always stay free, so that hanging fetches can never keep a tick waiting.
    """
    huey = settings.HUEY
    room = huey.rooms[_SHARED.get(verb, verb)]
    if not room.acquire(blocking=False):
        huey.ask(verb, number, delay=1)
        return
    try:
        outside = lab()
        try:
            carry_out(outside, number)
        finally:
            quota.settle(outside)  # pages tell soon what was asked of a forge
    finally:
        room.release()


def _if_free(
    verb: str, number: int, carry_out: Callable[[Lab, int, Callable[[], bool]], None]
) -> None:
    """Carry out what may take hours, unless its room is taken; it is let go when the worker ends."""
    room = settings.HUEY.rooms[verb]
    if not room.acquire(blocking=False):
        return
    try:
        carry_out(lab(), number, lambda: settings.HUEY.is_stopping)
    finally:
        room.release()


def on_wake(text: str) -> None:
    """One datagram: a project's slug, or the name of a session of that project; empty: just work."""
    project = naming.woken_project(text)
    if not project:
        settings.HUEY.ring(everyone=True)
    else:
        settings.HUEY.looks.ask(project)


def watch_signals() -> None:
    """Look at a project as soon as there is a new signal file of it; by time where nobody tells."""
    root = settings.PATHS.signals()
    try:
        from runs.groups.signal_watch import SignalWatch

        SignalWatch(root, on_wake).run()
    except (ImportError, OSError) as error:
        logger.warning("signal files are looked at by time only", extra={"error": str(error)})
    SignalPoll(root, on_wake).run()


def answer_others(is_over: Callable[[], bool]) -> None:
    """Answer what web processes of other machines ask of this host."""
    if settings.REDIS is not None:
        from runs.on_behalf import OnBehalf
        from runs.remote.answering import Answers
        from runs.remote.screens import ScreenWatch

        watch = ScreenWatch(settings.REDIS, settings.PATHS.run_folder)
        threading.Thread(target=watch.run, args=(is_over,), name="Screens", daemon=True).start()
        Answers(settings.REDIS, own_lab, OnBehalf, database_time).run(is_over)


def _connect(huey: Any) -> None:
    """Tell the queue where to listen and whom to ask."""
    huey.wake_path = settings.PATHS.worker_socket
    huey.more_wake_path = lambda: settings.PATHS.more_worker_socket(os.getpid())
    huey.on_wake = on_wake
    huey.on_look = look
    huey.watch = watch_signals
    huey.before_offer = note_due
    huey.before_tidying = pool.close_idle
    huey.answer_others = answer_others
    verbs = {
        "launch": launch,
        "clone": clone,
        "open": open_session,
        "deliver": deliver,
        "ping": ping,
    }
    verbs |= {
        "sweep": sweep_project,
        "discard": discard,
        "refresh": refresh,
        "mirror": mirror_run,
    }
    verbs |= {"validate": validate, "fix": fix, "check": check, "check_agent": check_agent}
    verbs |= {"try_agent": try_agent, "check_run": check_run, "after_run": carry_out_after_run}
    huey.verbs |= {name: _if_ours(work) for name, work in verbs.items()}


_connect(settings.HUEY)
