"""When each activity of a host is due: stored times, so that a restart forgets none (C-06, C-41)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from runs.domain import budgets
from runs.domain.ports import Lab
from runs.models import Due, Run, Settings
from runs.work import filling, sweep

LOOK, GLANCE, FILL = "look", "glance", "fill"
GLANCE_EVERY = timedelta(seconds=5)
_NAMES = {LOOK: "Runs are looked at", FILL: "Automatic work is started", sweep.SWEEP: "Tidying up"}


def intervals(settings: Settings) -> Mapping[str, timedelta]:
    """How often each activity is due, each by its own clock (LAB-81)."""
    every = {LOOK: settings.tick_interval, FILL: settings.launch_interval}
    return {**every, GLANCE: GLANCE_EVERY, sweep.SWEEP: timedelta(minutes=settings.sweep_minutes)}


def due(lab: Lab, settings: Settings) -> set[str]:
    """What is due now, from one indexed query; nothing that would find nothing to do (LAB-86)."""
    now, stored = lab.now(), next_times(lab)
    found = {
        name
        for name, every in intervals(settings).items()
        if budgets.is_due(now, stored.get(name), every)
    }
    if FILL in found and LOOK not in found and not filling.is_wishing():
        found.discard(FILL)
    if found == {GLANCE} and not Run.objects.working().filter(host=lab.host).exists():
        return set()
    if sweep.RECONCILE not in stored:
        found |= {LOOK, sweep.RECONCILE}
    return found


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
    """When each activity had its last turn on this host and has its next (LAB-81)."""
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
