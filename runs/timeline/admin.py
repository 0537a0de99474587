"""What happened, to be read. An edit here would walk around the one door for outcomes."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from runs.models import (
    Fixer,
    Host,
    Notice,
    Run,
    StartRequest,
    Tick,
    Validation,
    WatchSession,
    Workflow,
)


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Shows rows and changes none, whatever permissions the user has."""

    # Counting a long history would take longer than reading one page of it.
    show_full_result_count = False
    list_per_page = 50
    actions = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    list_display = [
        "id",
        "project",
        "issue_key",
        "short_title",
        "kind",
        "state",
        "outcome",
        "started_at",
        "ended_at",
    ]
    list_filter = ["outcome", "state", "kind", "project"]
    list_select_related = ["project"]
    search_fields = ["issue_key", "issue_title", "session", "branch"]


@admin.register(Notice)
class NoticeAdmin(ReadOnlyAdmin):
    list_display = ["at", "kind", "project", "run", "watch", "text", "by"]
    list_filter = ["kind", "project"]
    list_select_related = ["project", "run", "watch"]
    search_fields = ["text", "by"]


@admin.register(Tick)
class TickAdmin(ReadOnlyAdmin):
    list_display = [
        "at",
        "host",
        "milliseconds",
        "was_skipped",
        "runs",
        "ended",
        "started",
        "error",
    ]
    list_filter = ["was_skipped", "host"]
    list_select_related = ["host"]


@admin.register(Host)
class HostAdmin(ReadOnlyAdmin):
    list_display = ["name", "last_tick_at", "last_error", "lease_owner", "lease_expires_at"]


@admin.register(StartRequest)
class StartRequestAdmin(ReadOnlyAdmin):
    list_display = ["at", "project", "by", "wanted_key", "answer", "text", "run"]
    list_filter = ["answer", "project"]
    list_select_related = ["project", "run"]


@admin.register(WatchSession)
class WatchSessionAdmin(ReadOnlyAdmin):
    list_display = [
        *("id", "project", "is_auto", "phase", "completed", "failed", "code", "reason"),
        *("opened_by", "opened_at", "ended_at"),
    ]
    list_filter = ["phase", "code", "is_auto", "project"]
    list_select_related = ["project"]
    search_fields = ["opened_by", "asked_by"]


@admin.register(Validation)
class ValidationAdmin(ReadOnlyAdmin):
    list_display = [
        *("id", "project", "session", "number", "count", "state", "reason", "began_at", "ended_at"),
    ]
    list_filter = ["state", "project"]
    list_select_related = ["project", "session"]
    search_fields = ["reason", "commit"]
    # Its mark makes a process count as one of its commands.
    exclude = ["mark"]


@admin.register(Fixer)
class FixerAdmin(ReadOnlyAdmin):
    list_display = [
        "id",
        "project",
        "validation",
        "number",
        "branch",
        "end",
        "asked_at",
        "ended_at",
    ]
    list_filter = ["end", "project"]
    list_select_related = ["project", "validation"]
    search_fields = ["branch"]
    exclude = ["mark"]


@admin.register(Workflow)
class WorkflowAdmin(ReadOnlyAdmin):
    list_display = [
        *("id", "project", "name", "state", "note", "ceiling_seconds"),
        *("started_by", "started_at", "ended_at"),
    ]
    list_filter = ["state", "project"]
    list_select_related = ["project"]
    search_fields = ["name", "started_by"]
