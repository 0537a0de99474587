"""The heartbeat of a host that has nothing to look at, in place of a whole look at its runs.

A look that finds no run, no session, no request and no automatic work stores that it was there and
nothing else. This asks in one statement whether it would be one of those.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Exists, Q, QuerySet

from runs import clock, schedule, sweep
from runs.accounts import holds
from runs.core.database import prepared
from runs.core.ports import Lab, SeamError
from runs.hosts import vitals
from runs.models import (
    Due,
    Host,
    Monitor,
    Run,
    Settings,
    WatchSession,
    Workflow,
)
from runs.projects import acts as projects
from runs.watch import auto_dispatch


def beat(lab: Lab) -> bool:
    """Store the heartbeat of a look that would find nothing; False, and nothing stored, for any other.

    It holds no lease: whoever takes it meanwhile looks, and this stores nothing. Raises DatabaseError.
    """
    now, settings = lab.now(), Settings.current()
    if settings.ping_url:  # a watcher outside is told by each look
        return False
    for host in _quiet(lab.host, settings.launch_interval).rows(now):
        if lab.machine.is_other(host.machine) or clock.was_set(lab, host):
            return False
        ours = Host.objects.filter(pk=host.pk, lease_owner="", lease_number=host.lease_number)
        if not _has_no_session(lab):
            return False
        if not ours.update(last_tick_at=now, **vitals.to_store(lab, host, 0)):
            return False
        schedule.store(host.pk, {schedule.LOOK}, settings, now)
        return True
    return False


def _has_no_session(lab: Lab) -> bool:
    try:
        return not lab.sessions.look()
    except SeamError:
        return False


@prepared
def _quiet(now: datetime, host: str, interval: timedelta) -> QuerySet[Host]:
    """The host, if a look would find nothing: what each part of one reads."""
    stored = Due.objects.filter(host__name=host)
    runs = Run.objects.filter(host=host)
    found = (
        # Each has an index of its own, which holds no other run.
        runs.filter(outcome=""),
        runs.filter(~Q(outcome=""), settled_at=None),
        WatchSession.objects.open(),
        auto_dispatch.asking(now, interval),
        projects.lost(now, host),
        Monitor.objects.due(host, now),
        Workflow.objects.due(host, now),
        holds.due(now),
        stored.filter(activity=sweep.SWEEP, next_at__lte=now),
    )
    rows = Host.objects.filter(name=host, removed_at=None, lease_owner="", last_error="")
    for one in found:
        rows = rows.filter(~Exists(one))
    for name in (sweep.SWEEP, sweep.RECONCILE):  # before the first of them
        rows = rows.filter(Exists(stored.filter(activity=name)))
    return rows
