"""Notices when the machine's clock was set, so that no run ends and none lives longer for it."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from runs.core import budgets, lease
from runs.core.budgets import ClockReading
from runs.core.ports import Lab
from runs.core.states import AgentState, NoticeKind
from runs.models import CheckRun, Fixer, Host, Job, Loop, Monitor, Rescue, Run, Validation
from runs.timeline import announce
from runs.transcript.claude_lines import USED_UP
from runs.workflows import stepper as workflow_stepper

DRIFT = 1.0
TRIES = 3


def heed(lab: Lab, host: Host) -> datetime:
    """The moment by which this tick, which has just taken its lease, judges ages; raises lease.Lost.

    When the clock was set since the last tick, what counts time of this host is set with it: a
    run that has worked for ten minutes has worked for ten minutes before and after.
    """
    now, after = _read(lab)
    _count(host, now, after)
    before = ClockReading(host.clock_boot, host.clock_apart)
    moved = budgets.jump(before, after)
    if _is_same(before, after):
        return now
    with transaction.atomic():
        lease.keep(lab, host.lease_number)
        Host.objects.filter(pk=host.pk).update(clock_boot=after.boot, clock_apart=after.apart)
        if moved:
            _set(lab, moved)
    return now


def was_set(lab: Lab, host: Host) -> bool:
    """Return whether the clock was set, or the machine started, since the last tick of the host."""
    return not _is_same(ClockReading(host.clock_boot, host.clock_apart), _read(lab)[1])


def _is_same(before: ClockReading, after: ClockReading) -> bool:
    return before.boot == after.boot and abs(after.apart - before.apart) < DRIFT


def _count(host: Host, now: datetime, after: ClockReading) -> None:
    at = now.timestamp() - after.apart
    before = ClockReading(host.clock_boot, host.clock_apart)
    more = budgets.lived(before, host.lived_at, after.boot, at)
    if more is not None:
        rows = Host.objects.filter(pk=host.pk, lived_at=host.lived_at)
        rows.update(lived=F("lived") + more, lived_at=at)


def _read(lab: Lab) -> tuple[datetime, ClockReading]:
    """Both clocks in one moment; asked again when this process was held up in between."""
    for _ in range(TRIES):
        begin, now, end = lab.steady(), lab.now(), lab.steady()
        if end.seconds - begin.seconds < DRIFT:
            break
    return now, ClockReading(end.boot, now.timestamp() - end.seconds)


def _set(lab: Lab, moved: timedelta) -> None:
    runs = Run.objects.filter(host=lab.host, settled_at=None)
    times = ("started_at", "held_at", "resumed_at", "began_at", "turn_ended_at")
    gates = ("checking_at", "gate_told_at")
    waits = (
        "asked_at",
        "screen_at",
        "last_output_at",
        "waits_at",
        "answered_at",
        "turn_interrupted_at",
        "budget_stopped_at",
    )
    runs.filter(outcome="").update(**{name: F(name) + moved for name in (*times, *gates, *waits)})
    # What a program counts down by itself goes on; a reset that its service named is a time of day.
    counts = runs.filter(
        outcome="",
        result_subtype="",
        agent_state__in=(AgentState.RETRYING, AgentState.RATE_LIMITED),
    )
    counts.exclude(agent_note=USED_UP).update(agent_until=F("agent_until") + moved)
    runs.update(launch_deadline=F("launch_deadline") + moved)
    told = Run.objects.filter(host=lab.host, tracker_retry_at__isnull=False)
    told.update(tracker_retry_at=F("tracker_retry_at") + moved)
    asked = CheckRun.objects.filter(host=lab.host, is_running=True)
    asked.update(asked_at=F("asked_at") + moved)
    jobs = Job.objects.unfinished().filter(host=lab.host)
    jobs.update(**{name: F(name) + moved for name in ("not_before", "beat_at", "deadline")})
    fixers = Fixer.objects.filter(host=lab.host, end="")
    fixers.update(asked_at=F("asked_at") + moved, started_at=F("started_at") + moved)
    checks = Validation.objects.running().filter(host=lab.host)
    checks.update(not_before=F("not_before") + moved, beat_at=F("beat_at") + moved)
    watched = Monitor.objects.running().filter(host=lab.host)
    looks = ("started_at", "look_at", "pass_at", "check_at")
    watched.update(**{name: F(name) + moved for name in looks}, version=F("version") + 1)
    loops = Loop.objects.filter(run__host=lab.host, end="")
    pauses = {name: F(name) + moved for name in ("not_before", "checked_in_at")}
    loops.update(**pauses, version=F("version") + 1)
    Rescue.objects.update(expires_at=F("expires_at") + moved)
    workflow_stepper.clock_set(lab.host, moved)
    way = "forward" if moved > budgets.ZERO else "back"
    text = (
        f"the clock of this machine was set {way} by {_words(abs(moved))}; the time that running "
        "agents have used is counted on as before"
    )
    announce.tell(lab, NoticeKind.CLOCK_SET, text)


def _words(length: timedelta) -> str:
    seconds = round(length.total_seconds())
    hours, minutes = divmod(seconds // 60, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min" if minutes else f"{seconds} s"
