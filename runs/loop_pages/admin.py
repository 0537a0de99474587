"""Loop settings, roles and memories in the admin, with the limits of the page *Loops*."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db import models
from django.http import HttpRequest

from runs.loop_settings import settings_acts, unfit
from runs.models import LoopMemory, LoopRole, LoopTerms, Project
from runs.settings.admin import TellingAdmin

_LINES = forms.Textarea(attrs={"class": "vLargeTextField", "rows": 2})


def wrong(row: Any) -> dict[str, str]:
    """For each field of a filled-in row that cannot be stored, why."""
    if row.project_id is None:
        return {}
    roles = LoopRole.objects.filter(project_id=row.project_id)
    if isinstance(row, LoopTerms):
        return unfit.wrong_terms(row, list(roles))
    terms = settings_acts.terms_row(row.project)
    return unfit.wrong_role(row, list(roles.exclude(pk=row.pk)), terms)


class _CheckedForm(forms.ModelForm):  # type: ignore[type-arg]
    """Says at each field what the page *Loops* would say."""

    def clean(self) -> dict[str, Any]:
        given = super().clean() or self.cleaned_data
        if not self.errors:
            for name, value in given.items():
                setattr(self.instance, name, value)
            for name, text in wrong(self.instance).items():
                field = name.removesuffix("_id")
                self.add_error(field if field in self.fields else None, text)
        return given


class _OfProject(TellingAdmin):
    """Rows of a project, which stays the one that they were made for."""

    form = _CheckedForm
    formfield_overrides = {models.JSONField: {"widget": _LINES}}
    list_select_related = ["project"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["project"] if obj is not None else []

    def project(self, obj: Any) -> Project | None:
        found: Project = obj.project
        return found

    def subject(self, obj: models.Model) -> str:
        return f"{obj}: "


@admin.register(LoopTerms)
class LoopTermsAdmin(_OfProject):
    """How the runs of a project are loops."""

    fields = ["project", *(name.removesuffix("_id") for name in unfit.TERMS)]
    list_display = ["project", "is_on", "is_persistent", "max_turns", "max_seconds", "max_cost"]


@admin.register(LoopRole)
class LoopRoleAdmin(_OfProject):
    """The roles of all projects."""

    fields = ["project", "position", *(name.removesuffix("_id") for name in unfit.ROLE)]
    list_display = ["name", "project", "profile", "model"]
    list_select_related = ["project", "profile"]

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """On the page *Loops*, which knows whether the others can stand without it."""
        return False


@admin.register(LoopMemory)
class LoopMemoryAdmin(TellingAdmin):
    """What is kept for later loops: read and removed here."""

    list_display = ["text", "project", "by", "at"]
    list_select_related = ["project"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def project(self, obj: Any) -> Project | None:
        found: Project = obj.project
        return found
