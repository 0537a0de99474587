"""Task groups in the admin: presets of monitors are tuned, what was watched is only read."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db import models
from django.http import HttpRequest

from runs import wiring
from runs.groups import monitors
from runs.models import Checkpoint, Monitor, MonitorPreset, TaskGroup
from runs.settings.admin import TellingAdmin
from runs.timeline.admin import ReadOnlyAdmin


@admin.register(MonitorPreset)
class MonitorPresetAdmin(TellingAdmin):
    """What each kind of work is watched with. One that is removed comes back as it was shipped."""

    list_display = ["name", *monitors.OPTIONS, "is_unique"]
    fieldsets = [
        (None, {"fields": ["name", "label", "is_unique"]}),
        (
            "Time",
            {"fields": ["poll_seconds", "stale_seconds", "timeout_seconds", "release_seconds"]},
        ),
        ("What it tells", {"fields": ["has_checkpoints"]}),
    ]

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        MonitorPreset.objects.complete()
        return super().get_queryset(request)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """Findings that are a worker's own are never given back, whoever would like it."""
        if obj is None:
            return []
        return ["name", "is_unique", *(["release_seconds"] if obj.is_unique else [])]

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Running monitors follow, from their next look on."""
        before = MonitorPreset.objects.get(pk=obj.pk) if change else None
        super().save_model(request, obj, form, change)
        if before is not None:
            monitors.retune(wiring.lab(), before, obj)


@admin.register(TaskGroup)
class TaskGroupAdmin(ReadOnlyAdmin):
    list_display = ["name", "project", "preset", "signals", "made_at", "made_by", "closed_at"]
    list_filter = ["project"]
    list_select_related = ["project"]
    search_fields = ["name"]


@admin.register(Monitor)
class MonitorAdmin(ReadOnlyAdmin):
    list_display = [
        "id",
        "group",
        "label",
        "state",
        "is_fast",
        "expected",
        "started_at",
        "ended_at",
    ]
    list_filter = ["state", "preset"]
    list_select_related = ["group__project"]


@admin.register(Checkpoint)
class CheckpointAdmin(ReadOnlyAdmin):
    list_display = ["at", "monitor", "n", "label", "completed", "total", "percentage", "decision"]
    list_filter = ["decision"]
    list_select_related = ["monitor"]
