"""What the worker does: the one periodic task, wake-ups, launches and clones. No rule lives here."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.conf import settings
from huey.contrib.djhuey import close_db, db_periodic_task

from labsite.queue import OFFER_SECONDS
from runs import tick
from runs.accounts import logins
from runs.agents import checks, trial
from runs.conversation import keeping
from runs.core import naming
from runs.core.ports import Lab
from runs.forges import mirror, quota, tracker_cache
from runs.groups.signal_watch import SignalPoll
from runs.kept import discard as discard_progress
from runs.kept import sweep
from runs.lifecycle import launch as run_launch
from runs.manual import acts as manual
from runs.notices import deliveries, pings
from runs.projects import acts as projects
from runs.validation import acts as validation_acts
from runs.validation import fixers, runner
from runs.wiring import lab

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


def _always(_now: datetime) -> bool:
    return True


@db_periodic_task(_always, expires=OFFER_SECONDS, priority=10)
def offer_tick() -> None:
    """Offered every few seconds; does only what is due."""
    tick.tick(lab())


@db_periodic_task(_always, expires=OFFER_SECONDS)
def post() -> None:
    """Notices for the outside: written down, and their sending asked for as work of its own."""
    deliveries.post(lab())


@db_periodic_task(_always, expires=OFFER_SECONDS)
def tend() -> None:
    """Beside the runs: sessions that people drive, validations, log-ins that nobody finished."""
    manual.watch(lab())
    validation_acts.tend(lab())
    logins.sweep(lab())
    checks.sweep(lab())
    trial.sweep(lab())
    discard_progress.tend(lab())


@db_periodic_task(_always, expires=OFFER_SECONDS)
def keep_records() -> None:
    """What agents wrote of settled runs, copied where it stays; seconds where there is much."""
    keeping.tend(lab())


@close_db
def look(project: str) -> None:
    """A wake-up: look at one project now, waiting a little for a tick that is in progress."""
    world = lab()
    waited = 0.0
    while tick.tick(world, project=project).was_skipped and waited < LEASE_WAIT_SECONDS:
        world.pause(LEASE_STEP_SECONDS)
        waited += LEASE_STEP_SECONDS


@close_db
def launch(run_id: int) -> None:
    """Carry out a run in *starting*."""
    _long("launch", run_id, run_launch.carry_out)


@close_db
def clone(project_id: int) -> None:
    """Carry out the clone of a new project, or the removal of one."""
    _long("clone", project_id, projects.carry_out)


@close_db
def open_session(session_id: int) -> None:
    """Carry out the start of a session that a person drives. Shares the room of launches."""
    _long("open", session_id, manual.carry_out)


@close_db
def deliver(delivery_id: int) -> None:
    """Send notices to the outside. Busy already: nothing is lost, `post` asks again in seconds."""
    room = settings.HUEY.rooms["deliver"]
    if not room.acquire(blocking=False):
        return
    try:
        deliveries.drain(lab(), delivery_id)
    finally:
        room.release()


@close_db
def ping(healthy: int) -> None:
    """Tell a watcher outside how the last tick went. Shares the room of the notices."""
    _long("ping", healthy, lambda world, value: pings.carry_out(world, bool(value)))


@close_db
def validate(validation_id: int) -> None:
    """Carry out a validation. All rooms taken: nothing is lost, `tend` asks again in seconds.

    A worker that is told to end lets go of it, and the next one begins it anew.
    """
    room = settings.HUEY.rooms["validate"]
    if not room.acquire(blocking=False):
        return
    try:
        runner.carry_out(lab(), validation_id, lambda: settings.HUEY.is_stopping)
    finally:
        room.release()


@close_db
def check_agent(profile_id: int) -> None:
    """Ask an agent's program for its version and login. Shares the room of trials."""
    _long("check_agent", profile_id, checks.carry_out)


@close_db
def try_agent(trial_id: int) -> None:
    """Try an agent, which may take three minutes; no launch waits for it."""
    _long("try_agent", trial_id, trial.carry_out)


@close_db
def fix(fixer_id: int) -> None:
    """Carry out the start of a fixer. Shares the room of launches."""
    _long("fix", fixer_id, fixers.carry_out)


@close_db
def sweep_project(project_id: int) -> None:
    """Fetch a project and collect what was merged."""
    _long("sweep", project_id, sweep.carry_out)


@close_db
def discard(discarding_id: int) -> None:
    """Carry out a discard of large files. Shares the room of clones and sweeps."""
    _long("discard", discarding_id, discard_progress.carry_out)


@close_db
def refresh(project_id: int) -> None:
    """Ask a tracker again for what pages show of it. Shares the room of the notices."""
    _long("refresh", project_id, tracker_cache.refresh)


@close_db
def mirror_run(run_id: int) -> None:
    """Write on the tracker how a run stands. Shares the room of the notices."""
    _long("mirror", run_id, mirror.carry_out)


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


def _connect(huey: Any) -> None:
    """Tell the queue where to listen and whom to ask."""
    huey.wake_path = settings.PATHS.worker_socket
    huey.more_wake_path = settings.PATHS.more_worker_socket(os.getpid())
    huey.on_wake = on_wake
    huey.on_look = look
    huey.watch = watch_signals
    huey.verbs |= {
        "launch": launch,
        "clone": clone,
        "open": open_session,
        "deliver": deliver,
        "ping": ping,
    }
    huey.verbs |= {
        "sweep": sweep_project,
        "discard": discard,
        "refresh": refresh,
        "mirror": mirror_run,
    }
    huey.verbs |= {"validate": validate, "fix": fix, "check_agent": check_agent}
    huey.verbs |= {"try_agent": try_agent}


_connect(settings.HUEY)
