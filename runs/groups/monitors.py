"""What people and programs ask of monitors: start one over a group, stop it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import DateTimeField, F, Value
from django.db.models.functions import Least

from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind
from runs.groups import fast_path, signal_folders
from runs.groups.models import MonitorOptions
from runs.groups.terms import MonitorState
from runs.hosts import facts
from runs.models import Monitor, MonitorPreset, TaskGroup
from runs.timeline import announce

OPTIONS = tuple(field.name for field in MonitorOptions._meta.get_fields())
LABEL_CHARACTERS = 80
NEVER_BACK = "The findings of these tasks are their worker's own, so none is ever given back."


class MonitorRefused(ActRefused):
    """A group cannot be watched so; `fields` says for each wrong option why."""


class AlreadyWatched(MonitorRefused):
    """The group has a running monitor, which is `monitor`."""

    code = "already_watched"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__("This group has a running monitor. No other was started.")
        self.monitor = monitor


def presets() -> list[MonitorPreset]:
    """Every preset as it is in force."""
    return list(MonitorPreset.objects.complete())


def running_of(group: TaskGroup) -> Monitor | None:
    """The monitor that watches a group now."""
    return Monitor.objects.running().filter(group=group).first()


def start(
    lab: Lab,
    group: TaskGroup,
    *,
    by: str,
    preset: str | None = None,
    given: Mapping[str, object] | None = None,
    expected: int | None = None,
    phase: str = "",
) -> Monitor:
    """Watch an open group; the worker makes the first pass at once.

    `given` are options by the names of `OPTIONS`. What is not given comes from the preset, by
    default the group's own, and without one ("") from the defaults of `OPTIONS`.
    `expected` is by default how many tasks the group has now; `phase` is for the label of `arc`.
    Raises AlreadyWatched and MonitorRefused; then nothing is stored.
    """
    with transaction.atomic():
        # No harder than notes about the group need: the end of its last monitor is told meanwhile.
        rows = TaskGroup.objects.select_for_update(of=("self",), no_key=True)
        rows = rows.select_related("project")
        held = rows.filter(pk=group.pk, closed_at=None).first()
        if held is None:
            raise MonitorRefused("This group is closed or gone. Nothing was started.")
        monitor = _checked(held, held.preset if preset is None else preset, given or {}, phase)
        monitor.expected = held.tasks.count() if expected is None else expected
        _clean(monitor)
        try:
            return _store(lab, monitor, by)
        except IntegrityError as error:
            running = running_of(held)
            if running is None:
                raise
            raise AlreadyWatched(running) from error


def stop(lab: Lab, monitor: Monitor, by: str) -> bool:
    """End a monitor, which touches no task and no session; False when it has ended already."""
    with transaction.atomic():
        now = lab.now()
        won = (
            Monitor.objects.running()
            .filter(pk=monitor.pk)
            .update(
                **ended(MonitorState.STOPPED), ended_at=now, ended_by=by, version=F("version") + 1
            )
        )
        if won:
            text = f"{monitor.label}: monitor stopped; tasks and workers go on"
            announce.tell(lab, NoticeKind.MONITOR_ENDED, text, group=monitor.group, by=by)
            monitor.refresh_from_db()
    return bool(won)


def retune(lab: Lab, before: MonitorPreset, after: MonitorPreset) -> None:
    """Let running monitors of a preset follow it where they have its value.

    What was given to one of them alone stays, and so do tasks that are never given back.
    """
    running = Monitor.objects.running().filter(preset=before.name)
    unique = MonitorPreset.objects.filter(is_unique=True).values("name")
    soon = lab.now() + timedelta(seconds=after.poll_seconds)
    with transaction.atomic():
        for name in OPTIONS:
            was, now = getattr(before, name), getattr(after, name)
            if was == now:
                continue
            rows = running.filter(**({f"{name}__isnull": True} if was is None else {name: was}))
            if name == "release_seconds":
                rows = rows.exclude(group__preset__in=unique)
            times = {
                at: Least(F(at), Value(soon, DateTimeField())) for at in ("look_at", "pass_at")
            }
            rows.update(**{name: now}, **times, version=F("version") + 1)


def ended(state: MonitorState) -> dict[str, Any]:
    """The columns that every end has in common."""
    return {
        "state": state,
        "look_at": None,
        "pass_at": None,
        "check_at": None,
    }


def _checked(group: TaskGroup, name: str, given: Mapping[str, object], phase: str) -> Monitor:
    """A monitor with its options, of which one that is wrong is refused by its name."""
    chosen = MonitorPreset.objects.complete().filter(name=name).first() if name else None
    if name and chosen is None:
        said = f"There is no preset {name}."
        raise MonitorRefused(said, fields={"preset": said})
    unknown = {name: "There is no such option." for name in given if name not in OPTIONS}
    if unknown:
        raise MonitorRefused(" ".join(unknown.values()), fields=unknown)
    basis = {name: getattr(chosen, name) for name in OPTIONS} if chosen else {}
    monitor = Monitor(group=group, preset=name, **basis)
    for option, value in given.items():
        setattr(monitor, option, None if value == "" else value)
    monitor.label = " ".join(str(monitor.label or "").split())
    if "label" not in given:
        monitor.label = monitor.label.replace("{phase}", phase or group.name)[:LABEL_CHARACTERS]
    if monitor.release_seconds is not None and _is_unique(group, chosen):
        raise MonitorRefused(NEVER_BACK, fields={"release_seconds": NEVER_BACK})
    return monitor


def _is_unique(group: TaskGroup, chosen: MonitorPreset | None) -> bool:
    """Whether tasks may never go back, by the preset or by what the group is."""
    if chosen is not None and chosen.is_unique:
        return True
    return MonitorPreset.objects.filter(name=group.preset, is_unique=True).exists()


def _clean(monitor: Monitor) -> None:
    kept = {*OPTIONS, "expected"}
    others = [field.name for field in Monitor._meta.fields if field.name not in kept]
    try:
        monitor.clean_fields(exclude=others)
        monitor.clean()
    except ValidationError as error:
        fields = {name: " ".join(said) for name, said in error.message_dict.items()}
        words = [f"{name}: {said}" for name, said in fields.items()]
        raise MonitorRefused(" ".join(words), fields=fields) from error


def _store(lab: Lab, monitor: Monitor, by: str) -> Monitor:
    """Store a monitor whose first look is due now, with the first line that it tells."""
    now, group = lab.now(), monitor.group
    monitor.host = facts.carrier(lab, group.project)
    monitor.started_at, monitor.started_by = now, by
    monitor.look_at = monitor.pass_at = now
    if monitor.host == lab.host and lab.signals.is_ready(signal_folders.folder(lab, group)):
        # Its folder is looked at first; the listing follows one interval later.
        monitor.is_fast, monitor.check_at = True, now
        monitor.pass_at = now + monitor.options.poll
    with transaction.atomic():
        monitor.save(force_insert=True)
        text = fast_path.entering(monitor.options, is_fast=monitor.is_fast)
        announce.tell(lab, NoticeKind.MONITOR_STARTED, text, group=group, by=by)
    signal_folders.expect(lab, group)
    transaction.on_commit(lambda: lab.bell.look(group.project.slug), robust=True)
    return monitor
