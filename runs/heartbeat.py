"""The heartbeat of a host that has nothing to look at, in place of a whole look at its runs.

A look that finds no run, no session, no request and no automatic work stores that it was there and
nothing else. This asks in one statement whether it would be one of those.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, Q, QuerySet

from runs import schedule, sweep
from runs.accounts import holds
from runs.core.database import kept
from runs.core.ports import Lab, SeamError
from runs.hosts import vitals
from runs.models import (
    Due,
    Host,
    Monitor,
    Run,
    Settings,
    StartRequest,
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
    row = _quiet(lab.host, settings.launch_interval).first(now)
    if row is None or settings.ping_url:  # a watcher outside is told by each look
        return False
    host_id, number, machine = row
    if lab.machine.is_other(machine) or not _has_no_session(lab):
        return False
    ours = Host.objects.filter(pk=host_id, lease_owner="", lease_number=number)
    if not ours.update(last_tick_at=now, **vitals.measured(lab)):
        return False
    schedule.store(host_id, {schedule.LOOK}, settings, now)
    return True


def _has_no_session(lab: Lab) -> bool:
    try:
        return not lab.sessions.look()
    except SeamError:
        return False


@kept
def _quiet(now: datetime, host: str, interval: timedelta) -> QuerySet[Host, Any]:
    """The host, if a look would find nothing: what each part of one reads."""
    stored = Due.objects.filter(host__name=host)
    runs = Run.objects.filter(host=host)
    found = (
        # Each has an index of its own, which holds no other run.
        runs.filter(outcome=""),
        runs.filter(~Q(outcome=""), settled_at=None),
        StartRequest.objects.filter(answer=""),
        WatchSession.objects.open(),
        auto_dispatch.wishing(now),
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
    return rows.values_list("pk", "lease_number", "machine")
