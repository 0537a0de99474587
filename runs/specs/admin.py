"""Terms, commands and reviewers in the admin, with the limits of the page *Checks*. The timeline tells who did."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from runs.models import CheckCommand, CheckDefaults, CheckTerms, Project, Reviewer
from runs.settings.admin import TellingAdmin
from runs.specs import unfit
from runs.validation.specs import Switch

_LINES = forms.Textarea(attrs={"class": "vLargeTextField", "rows": 2})


class _CheckedForm(forms.ModelForm):  # type: ignore[type-arg]
    """Says at each field what the page *Checks* would say, and names terms as it does."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in unfit.TERMS:
            if name in self.fields:
                words = "turned off" if name == "disabled" else unfit.TERM_NAMES[name]
                self.fields[name].label = f"{words[:1].upper()}{words[1:]}"

    def clean(self) -> dict[str, Any]:
        given = super().clean() or self.cleaned_data
        if not self.errors:
            for name, value in given.items():
                setattr(self.instance, name, value)
            for name, text in unfit.wrong_row(self.instance).items():
                self.add_error(name if name in self.fields else None, text)
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


class _NamesSwitches(TellingAdmin):
    """Says which switches there are."""

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if db_field.name == "disabled" and field is not None:
            field.help_text = f"What is turned off, of: {', '.join(Switch)}."
        return field


@admin.register(CheckTerms)
class CheckTermsAdmin(_NamesSwitches, _OfProject):
    """The switches and limits of a project."""

    fields = ["project", *unfit.TERMS]
    list_display = ["project", "coverage_min_percent", "max_gate_attempts", "disabled"]


@admin.register(CheckDefaults)
class CheckDefaultsAdmin(_NamesSwitches):
    """What new projects begin with. Projects that are there keep what they have."""

    form = _CheckedForm
    formfield_overrides = {models.JSONField: {"widget": _LINES}}
    fields = ["policy", *unfit.TERMS]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """A list of one is no use: go to the row, made where there is none."""
        row, _ = CheckDefaults.objects.get_or_create(pk=1)
        return redirect("admin:runs_checkdefaults_change", row.pk)


@admin.register(CheckCommand)
class CheckCommandAdmin(_OfProject):
    """The commands of all projects."""

    fields = [
        *("project", "position", "name", "argv", "kind", "minutes", "use_test_mutex", "allow_fail"),
        *("coverage_args", "unit_args", "is_integration", "lock_files"),
    ]
    list_display = ["name", "project", "kind", "minutes", "allow_fail"]
    list_filter = ["kind"]


@admin.register(Reviewer)
class ReviewerAdmin(_OfProject):
    """The reviewers of all projects."""

    fields = [
        *("project", "position", "name", "is_on", "profile", "model", "effort", "command"),
        "instructions",
    ]
    list_display = ["name", "project", "is_on", "profile"]
    list_select_related = ["project", "profile"]
