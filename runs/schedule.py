"""When each activity of a host is due: stored times, so that a restart forgets none."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import BooleanField, Exists, ExpressionWrapper, QuerySet

from runs import sweep
from runs.accounts import holds
from runs.core import budgets
from runs.core.database import prepared
from runs.core.ports import Lab
from runs.models import Due, Monitor, Run, Settings, Workflow
from runs.watch import auto_dispatch

LOOK, GLANCE, FILL, MONITORS, HOLDS = "look", "glance", "fill", "monitors", "holds"
GLANCE_EVERY = timedelta(seconds=5)
_NAMES = {LOOK: "Runs are looked at", FILL: "Automatic work is started", sweep.SWEEP: "Tidying up"}


def intervals(settings: Settings) -> Mapping[str, timedelta]:
    """How often each activity is due, each by its own clock."""
    every = {LOOK: settings.tick_interval, FILL: settings.launch_interval}
    return {**every, GLANCE: GLANCE_EVERY, sweep.SWEEP: timedelta(minutes=settings.sweep_minutes)}


def due(lab: Lab, settings: Settings, wanted: Collection[str] = ()) -> set[str]:
    """What is due now or wanted anyway; nothing that would find nothing to do.

    A watch session knows by itself when its poll or its grace is due, or that it was woken, and a
    monitor when its next pass or check is. Workflows are stepped with the monitors.
    """
    now = lab.now()
    stored, has_monitors, is_over = _stored(lab, now)
    found = {*wanted} | {
        name
        for name, every in intervals(settings).items()
        if budgets.is_due(now, stored.get(name), every)
    }
    if LOOK not in found:
        is_wishing = auto_dispatch.is_wishing(now, looks_anew=FILL in found)
        found = found | {FILL} if is_wishing else found - {FILL}
    if found == {GLANCE} and not Run.objects.working().filter(host=lab.host).exists():
        found = set()
    if has_monitors:
        found = found | {MONITORS}
    if is_over:
        found = found | {HOLDS, LOOK, FILL}
    if sweep.RECONCILE not in stored:
        found |= {LOOK, sweep.RECONCILE}
    return found


def _stored(lab: Lab, now: datetime) -> tuple[Mapping[str, datetime], bool, bool]:
    """Next times, whether a monitor or a workflow is due, and whether an agent's hold is over.

    One query, asked every few seconds.
    """
    found = _times(lab.host).rows(now)
    if not found:
        return {}, True, False
    return {name: at for name, at, *_ in found}, found[0][2], found[0][3]


@prepared
def _times(now: datetime, host: str) -> QuerySet[Due, Any]:
    either = Exists(Monitor.objects.due(host, now)) | Exists(Workflow.objects.due(host, now))
    has_monitors = ExpressionWrapper(either, output_field=BooleanField())
    is_over = ExpressionWrapper(Exists(holds.due(now)), output_field=BooleanField())
    rows = Due.objects.filter(host__name=host)
    return rows.values_list("activity", "next_at", has_monitors, is_over)


def next_times(lab: Lab) -> Mapping[str, datetime]:
    """When each activity of this host is due next."""
    rows = Due.objects.filter(host__name=lab.host)
    return dict(rows.values_list("activity", "next_at"))


@dataclass(frozen=True, slots=True)
class Turn:
    """One activity's own clock. Both times are None before its first turn."""

    name: str
    every: timedelta
    last_at: datetime | None
    next_at: datetime | None


def turns(lab: Lab, settings: Settings) -> list[Turn]:
    """When each activity had its last turn on this host and has its next."""
    stored = next_times(lab)
    return [
        Turn(_NAMES[name], every, at - every if (at := stored.get(name)) else None, at)
        for name, every in intervals(settings).items()
        if name in _NAMES
    ]


def store(host_id: int, done: set[str], settings: Settings, now: datetime) -> None:
    """Keep when what was done now is due again."""
    every = intervals(settings)
    Due.objects.bulk_create(
        [
            Due(host_id=host_id, activity=name, next_at=now + every[name])
            for name in sorted(done & every.keys())
        ],
        update_conflicts=True,
        unique_fields=["host", "activity"],
        update_fields=["next_at"],
    )
