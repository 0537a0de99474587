"""What an admin may tune: the settings, agent profiles, and a project's own numbers (X-08)."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.core.validators import URLValidator
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from runs import wiring
from runs.accounts import holds
from runs.core.encrypted import HIDDEN, EncryptedJSONField, Secret, SecretField, SecretValues
from runs.core.states import Trouble
from runs.forges import cadence
from runs.models import AgentProfile, Project, Settings
from runs.settings import profile_form
from runs.settings.admin_timeline import TellingAdmin


class SecretEntry(forms.CharField):
    """Shows only that something is stored; what comes back hidden is kept."""

    def prepare_value(self, value: Any) -> Any:
        return HIDDEN if isinstance(value, Secret) and value else value

    def has_changed(self, initial: Any, data: Any) -> bool:
        return data != HIDDEN and super().has_changed(initial, data)


class SettingsForm(forms.ModelForm):  # type: ignore[type-arg]
    """Model and effort are closed lists of the chosen agent (LAB-128)."""

    def clean_ping_url(self) -> str:
        given: str = self.cleaned_data["ping_url"]
        if given == HIDDEN:
            return str(self.instance.ping_url)
        if given:
            URLValidator(schemes=["http", "https"])(given)
        return given

    def clean(self) -> dict[str, Any]:
        given = super().clean() or self.cleaned_data
        agent = given.get("agent")
        for field in ("model", "effort"):
            wanted = given.get(field, "")
            offered = getattr(agent, {"model": "model_names", "effort": "efforts"}[field], [])
            if wanted and wanted not in offered:
                names = ", ".join(offered) or "none"
                self.add_error(field, f"The chosen agent does not offer this. It offers: {names}.")
        return given


@admin.register(Settings)
class SettingsAdmin(TellingAdmin):
    """The one row. It can be changed, and neither added nor removed."""

    form = SettingsForm
    fieldsets = [
        (
            "Time",
            {
                "fields": [
                    "tick_seconds",
                    "launch_seconds",
                    "watch_seconds",
                    "run_budget_minutes",
                    "git_timeout_seconds",
                    "refresh_seconds",
                ]
            },
        ),
        ("Room", {"fields": ["session_cap", "nofile_limit"]}),
        (
            "Kept work",
            {"fields": ["sweep_minutes", "rescue_days", "output_days", "disk_quota_mb"]},
        ),
        ("Forges", {"fields": ["people_percent"]}),
        ("New sessions", {"fields": ["agent", "model", "effort"]}),
        ("The outside", {"fields": ["public_address", "ping_url", "ping_failures"]}),
    ]
    formfield_overrides = {
        SecretField: {
            "form_class": SecretEntry,
            "widget": forms.TextInput(attrs={"class": "vTextField", "autocomplete": "off"}),
        },
        models.URLField: {"assume_scheme": "https"},
    }

    def save_model(self, request: HttpRequest, obj: models.Model, form: Any, change: bool) -> None:
        """Another model may be what an agent waits for."""
        super().save_model(request, obj, form, change)
        agent = obj.agent if isinstance(obj, Settings) and "model" in form.changed_data else None
        if agent is not None and agent.hold == Trouble.MODEL:
            by = request.user.get_username()
            holds.release(wiring.lab(), agent, "a model was chosen", by=by, anew=True)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """A list of one is no use: go to the row."""
        return redirect("admin:runs_settings_change", Settings.current().pk)

    def subject(self, obj: models.Model) -> str:
        return ""


_SOME_LINES = forms.Textarea(attrs={"class": "vLargeTextField", "rows": 3})


class EnvironmentField(forms.JSONField):
    """Shows the names of what is stored and never a value; a value sent back hidden is kept."""

    def prepare_value(self, value: Any) -> Any:
        # What was just typed and refused is no `SecretValues` and is shown again as typed.
        hidden = dict.fromkeys(value, HIDDEN) if isinstance(value, SecretValues) else value
        return super().prepare_value(hidden)

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            given = self.to_python(data)
        except forms.ValidationError:
            return True
        return bool(with_kept(initial, given) != initial)


def with_kept(stored: Any, given: Any) -> Any:
    """What was given, with the stored value wherever the hidden one came back."""
    if not isinstance(given, dict):
        return given or {}
    return {
        name: stored[name] if value == HIDDEN and name in stored else value
        for name, value in given.items()
    }


class AgentProfileForm(forms.ModelForm):  # type: ignore[type-arg]
    """A profile, whose environment can be written and not read."""

    def clean_env(self) -> Any:
        env = with_kept(self.initial.get("env", {}), self.cleaned_data["env"])
        if isinstance(env, dict):
            unknown = [name for name, value in env.items() if value == HIDDEN]
            if unknown:
                raise forms.ValidationError(f"Write the value of {', '.join(unknown)}.")
        return env


@admin.register(AgentProfile)
class AgentProfileAdmin(TellingAdmin):
    """How each coding program is started. A change may put right what it is held for."""

    def save_model(self, request: HttpRequest, obj: models.Model, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if change and form.changed_data and isinstance(obj, AgentProfile):
            why, by = "its profile was changed", request.user.get_username()
            holds.release(wiring.lab(), obj, why, by=by, anew=True)

    form = AgentProfileForm
    formfield_overrides = {
        models.JSONField: {"widget": _SOME_LINES},
        models.URLField: {"assume_scheme": "https"},
        EncryptedJSONField: {
            "widget": _SOME_LINES,
            "form_class": EnvironmentField,
            # What is compared with is stored here; nothing of it goes through the page.
            "show_hidden_initial": False,
        },
    }
    list_display = ["name", "mode", "output", "trust"]
    fieldsets = profile_form.FIELDSETS


@admin.register(Project)
class ProjectAdmin(TellingAdmin):
    """A project's own numbers. Projects are added and removed on their pages, where git follows."""

    list_display = ["name", "state", "agent", "run_budget_minutes", "ready_label"]
    list_select_related = ["agent"]
    search_fields = ["name"]
    fields = [
        *("name", "state", "source", "agent", "run_budget_minutes", "ready_label"),
        *("parallel_runs", "trusted", "disk_quota_mb"),
        *("checks", "check_minutes", "fix_attempts"),
        "signals",
    ]
    readonly_fields = ["name", "state", "source"]

    def save_model(self, request: HttpRequest, obj: models.Model, form: Any, change: bool) -> None:
        """What may start may have changed, however seldom its tracker is asked."""
        super().save_model(request, obj, form, change)
        cadence.wake(wiring.lab(), obj.pk)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
