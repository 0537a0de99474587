"""One execution of the one judge: look, decide, record, settle, launch. Safe to run twice."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import InterfaceError, OperationalError
from django.db.models import Exists, Q, QuerySet

from runs import clock, schedule, sweep
from runs.accounts import holds
from runs.core import database, lease
from runs.core.database import prepared
from runs.core.database_trouble import database_words
from runs.core.ports import Lab, SeamError, Sighting
from runs.core.states import RunState
from runs.core.tick_context import TickContext
from runs.dispatch import reserve, start_requests
from runs.followups import stepper as follow_up_requests
from runs.forges import quota, tracker_cache
from runs.gates import stepper as gates_stepper
from runs.groups import monitor_stepper
from runs.guard import acts as guard
from runs.hosts import vitals
from runs.lifecycle import adopt, judge, launch, progress, reaper, resuming
from runs.models import Host, Monitor, Run, Settings, TaskGroup, Tick, Workflow
from runs.notices import pings
from runs.projects import acts as projects
from runs.projects import fetch_ahead
from runs.schedule import FILL, HOLDS, LOOK, MONITORS
from runs.spending import gathering
from runs.spending import stepper as spending_stepper
from runs.telemetry import log_context
from runs.waits import closed_issues
from runs.waits import stepper as wait_stepper
from runs.watch import acts as watch_acts
from runs.watch import auto_dispatch
from runs.watch import stepper as watch_stepper
from runs.workflows import stepper as workflow_stepper

logger = logging.getLogger(__name__)

NO_DATABASE = (OperationalError, InterfaceError)
TICKS_KEPT, PRUNE_EVERY = 5000, 500
GIVE_WAY_SECONDS = 0.02  # to the thread that carries out a start, which somebody waits for


@dataclass
class Report:
    """What one tick did, for the tick row and for `./lab manage tick`."""

    did: bool = True
    was_skipped: bool = False
    was_blind: bool = False
    is_taken_out: bool = False
    runs: int = 0
    adopted: int = 0
    ended: int = 0
    settled: int = 0
    started: int = 0
    held: int = 0
    errors: list[str] = field(default_factory=list)

    @property
    def is_worth_storing(self) -> bool:
        """An idle look leaves a heartbeat and no row."""
        return bool(
            self.runs
            or self.adopted
            or self.ended
            or self.settled
            or self.started
            or self.held
            or self.errors
        )


def tick(lab: Lab, project: str = "", force: bool = False) -> Report:
    """Do what is due on this host; `project` (its slug) or `force` ask for a look now.

    Returns at once when nothing is due, and reports a skip when another tick holds the lease. Never raises for what the outside does; without its database it does nothing.
    """
    try:
        return _tick(lab, project, force)
    except NO_DATABASE as error:
        logger.warning("tick could not use the database", extra={"error": str(error)})
        return Report(did=False, was_blind=True, errors=[database_words(str(error))])


def _tick(lab: Lab, project: str, force: bool) -> Report:
    settings = Settings.current()
    wanted = {LOOK, FILL} if force else {LOOK} if project else set[str]()
    due = schedule.due(lab, settings, wanted)
    if not due:
        return Report(did=False)
    try:
        host = lease.take(lab)
    except (lease.Removed, lease.OtherMachine) as error:
        return _not_ours(error)
    if host is None:
        return _skipped(lab, is_periodic=not project)
    number = host.lease_number
    began = time.perf_counter()
    report = Report()
    try:
        now = clock.heed(lab, host)
        context = TickContext(lab, number, settings, now, project, force, errors=report.errors)
        _work(context, report, due)
    except lease.Lost:
        report.errors.append("the lease was lost; another tick goes on")
    except NO_DATABASE as error:
        report.errors.append(database_words(str(error)))
    except Exception as error:
        logger.exception("tick was cut short")
        report.errors.append(f"the tick was cut short by a mistake of labsite: {error!r}")
    finally:
        database.renew_connection()
        quota.settle(lab)
        try:
            _finish(lab, settings, host, due, project, report, began)
        except NO_DATABASE:
            lease.note_over(lab, number)
            raise
    return report


def _work(tick: TickContext, report: Report, due: set[str]) -> None:
    """Monitors first: they ask for nothing outside, and wait for nobody."""
    if tick.project:
        _begin_fetch(tick)
    if MONITORS in due or (tick.project and _has_groups(tick)):
        monitor_stepper.look(tick)
        workflow_stepper.look(tick)
    if HOLDS in due:
        holds.release_due(tick.lab)
    if due != {MONITORS}:
        _look_around(tick, report, due)


def _begin_fetch(tick: TickContext) -> None:
    """Fetch for a start beside this look; without that the start fetches by itself."""
    try:
        fetch_ahead.begin(tick.lab, tick.project, guard.check_shared)
    except Exception:
        logger.exception("nothing was fetched ahead", extra={"project": tick.project})
        database.renew_connection()


def _has_groups(tick: TickContext) -> bool:
    """Return whether a project has a monitor, a group with signals or a workflow to look at.

    One query in place of theirs: whoever pressed Start, or waits for the end of a run, waits for it.
    """
    try:
        row = _groups(tick.lab.host, tick.project).first()
    except NO_DATABASE:
        return True  # those who look at them tell of it
    return row is not None and any(row)


@prepared
def _groups(_now: datetime, host: str, project: str) -> QuerySet[Host, Any]:
    of_project = TaskGroup.objects.filter(project__slug=project, closed_at=None, signals=True)
    found = {
        "has_monitors": Exists(Monitor.objects.running().filter(host=host)),
        "has_signals": Exists(of_project),
        "has_workflows": Exists(Workflow.objects.running().filter(host=host)),
    }
    return Host.objects.filter(name=host).annotate(**found).values_list(*found)


def _look_around(tick: TickContext, report: Report, due: set[str]) -> None:
    """Reads runs before sessions, so that a run ending in between is not adopted as a new one."""
    lab, project = tick.lab, tick.project
    known = _runs(lab)
    making = (run for run in known if run.is_active and run.state == RunState.STARTING)
    tick.being_made = {run.session for run in making}
    tick.sightings = _look(tick)
    runs = [run for run in known if project in ("", run.project.slug)]
    if LOOK in due:
        if tick.sightings is not None and sweep.RECONCILE in due:
            sweep.reconcile(tick, tick.sightings)
        if tick.sightings is not None:
            found = adopt.adopt(lab, tick.sightings, known, project)
            report.adopted, runs = len(found), [*runs, *found]
        wait_stepper.hear(tick, runs, is_asked=False)
        _judge(tick, runs, report)
        _end_closed(tick, runs, report)
        wait_stepper.hear(tick, runs, is_asked=True)
    seen_first = tick.sightings
    if due & {LOOK, FILL}:
        report.started = _launch(tick, known, report)
    if LOOK in due and not project:
        projects.recover(lab)
    if sweep.SWEEP in due and not project:
        sweep.ask(lab)
        tracker_cache.ask(lab)
        quota.prune(lab)
    if not project:
        _glance(lab, runs, seen_first)
    wait_stepper.note(tick, runs)
    spending_stepper.look(tick, runs)


def _glance(lab: Lab, runs: Sequence[Run], sightings: Mapping[str, Sighting] | None) -> None:
    working = [run for run in runs if run.is_active and run.state == RunState.WORKING]
    if any(run.session in (sightings or {}) for run in working):
        progress.glance(lab, working)


def _judge(tick: TickContext, runs: Sequence[Run], report: Report) -> None:
    """Settle what had ended, end what has to end, bring interrupted starts to a close.

    A tmux that does not answer cannot end sessions either, so nothing waits for it once more.
    """
    active = [run for run in runs if run.is_active]
    sightings = tick.sightings
    report.runs = len(active)
    if sightings is not None:
        _each(tick, [run for run in runs if not run.is_active], report, _settle_ended)
    ended = judge.judge(tick, active)
    ended += gates_stepper.advance_runs(tick, active)
    report.ended = len(ended)
    _each(tick, ended, report, _settle)
    resting = [run for run in active if run.is_held and run.session in (sightings or {})]
    _each(tick, resting, report, _rest)
    starting = [run for run in active if run.is_active and run.state == RunState.STARTING]
    _each(tick, starting, report, lambda lab, run, _: launch.recover(lab, run, sightings))
    tick.keep_lease()


def _end_closed(tick: TickContext, runs: Sequence[Run], report: Report) -> None:
    """End working runs whose issues somebody closed, where their project wants that."""
    if tick.sightings is None:
        return
    ended = closed_issues.look(tick, runs)
    report.ended += len(ended)
    _each(tick, ended, report, _settle)


def _each(
    tick: TickContext,
    runs: Sequence[Run],
    report: Report,
    act: Callable[[Lab, Run, Report], None],
) -> None:
    """One run's trouble is told and never keeps the others waiting. Raises lease.Lost."""
    for run in runs:
        tick.keep_lease()
        with tick.going_on(f"run {run.pk} was left for the next tick", **log_context.of(run)):
            act(tick.lab, run, report)


def _settle(lab: Lab, run: Run, report: Report) -> None:
    report.settled += reaper.settle(lab, run)


def _settle_ended(lab: Lab, run: Run, report: Report) -> None:
    """Finish what a killed tick or a failed kill left behind."""
    if not launch.is_being_launched(lab, run):
        _settle(lab, run, report)


def _rest(lab: Lab, run: Run, report: Report) -> None:
    report.held += reaper.rest(lab, run)


def _look(tick: TickContext) -> Mapping[str, Sighting] | None:
    """Every session, or None: then nothing is ended and nothing started."""
    try:
        return tick.lab.sessions.look()
    except SeamError as error:
        tick.errors.append(f"tmux did not answer: {error}")
        return None


def _runs(lab: Lab) -> list[Run]:
    """Active and unsettled runs of this host in one query."""
    return _of_host(lab.host).rows()


@prepared
def _of_host(_now: datetime, host: str) -> QuerySet[Run]:
    rows = Run.objects.select_related("project__agent", "profile")
    # Each half has an index of its own, which holds no other run.
    active, unsettled = Q(outcome=""), ~Q(outcome="") & Q(settled_at=None)
    return rows.filter(Q(active, host=host) | Q(unsettled, host=host))


def _launch(tick: TickContext, known: Sequence[Run], report: Report) -> int:
    """Drain before fill: what ended has freed its slot; then what was held goes on, then people's
    requests, then sessions."""
    lab, settings = tick.lab, tick.settings
    if report.settled or report.held:
        tick.sightings = _look(tick)
    holds.reread(settings, known)
    resumed = _resume(tick, known)
    wishes = auto_dispatch.waiting(lab.now(), settings)
    if wishes.to_resume:
        watch_acts.resume_by_itself(lab, wishes.to_resume)
    for project in wishes.lacking:
        watch_acts.store(lab, project, watch_acts.SWITCH)
    sessions = watch_stepper.look(tick)
    started = 0
    if wishes.is_asked:
        started = start_requests.launch_pass(tick) + follow_up_requests.launch_pass(tick)
    if started:
        lab.pause(GIVE_WAY_SECONDS)
    filled = auto_dispatch.fill(tick, sessions)
    # What a session has asked for now is not asked for twice.
    woken = set(wishes.woken) - {one.project_id for one in sessions}
    for project_id in sorted(woken | set(wishes.stale)):
        lab.queue.refresh(project_id)
    return resumed + started + filled


def _resume(tick: TickContext, known: Sequence[Run]) -> int:
    """Held runs that may go on, oldest first; asks nothing while there is none."""
    runs = resuming.waiting(tick.lab, known, tick.sightings)
    spending = gathering.spending(tick.settings, [run.project for run in runs], tick.lab.now())
    runs = [run for run in runs if not spending.hold(run.project)]
    if not runs:
        return 0
    room = reserve.room(tick.lab, tick.settings, tick.sightings, tick.being_made)
    return resuming.resume(tick, runs, room)


def _not_ours(error: lease.Removed | lease.OtherMachine) -> Report:
    """What the tick of a host reports that people took out, or whose name another machine has."""
    return Report(did=False, is_taken_out=True, errors=[str(error)])


def _skipped(lab: Lab, is_periodic: bool) -> Report:
    if is_periodic:
        host = Host.objects.get(name=lab.host)
        Tick.objects.create(host=host, at=lab.now(), was_skipped=True)
    return Report(was_skipped=True)


def _finish(
    lab: Lab,
    settings: Settings,
    host: Host,
    due: set[str],
    project: str,
    report: Report,
    began: float,
) -> None:
    """Next due times, the tick row, the heartbeat, and the lease back; only while it is still ours."""
    now = lab.now()
    done: dict[str, object] = {"lease_owner": "", "lease_expires_at": None}
    if LOOK in due:
        done |= {"last_tick_at": now, "last_error": "; ".join(report.errors)}
        done |= vitals.to_store(lab, host, report.runs)
    ours = Host.objects.filter(name=lab.host, lease_number=host.lease_number)
    host_id = ours.values_list("pk", flat=True).first()
    if host_id is None:
        return
    if not project:
        schedule.store(host_id, due, settings, now)
    if due & {LOOK, FILL} and report.is_worth_storing:
        stored = Tick.objects.create(
            host_id=host_id,
            at=now,
            milliseconds=int((time.perf_counter() - began) * 1000),
            runs=report.runs,
            ended=report.ended,
            started=report.started,
            error="; ".join(report.errors),
        )
        if stored.pk % PRUNE_EVERY == 0:
            Tick.objects.filter(host_id=host_id, pk__lt=stored.pk - TICKS_KEPT).delete()
    if ours.update(**done) and LOOK in due:
        pings.after_tick(lab, settings, is_healthy=not report.errors)
