"""What an admin may tune: settings, agent profiles, a project's own numbers. The timeline tells who did."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.core.exceptions import ValidationError
from django.core.validators import URLValidator
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from runs import wiring
from runs.accounts import holds
from runs.core.encrypted import HIDDEN, EncryptedJSONField, Secret, SecretField, SecretValues
from runs.core.states import NoticeKind, Trouble
from runs.forges import cadence
from runs.models import AgentProfile, Notice, Project, Settings
from runs.settings import edit_forms, edits
from runs.settings.acts import describe
from runs.specs.unfit import wrong_policy
from runs.timeline import announce


class TellingAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Writes only the fields that the form changed, since a worker writes the others meanwhile."""

    def save_model(self, request: HttpRequest, obj: models.Model, form: Any, change: bool) -> None:
        """Save and tell, in the transaction that admin opened for the request."""
        if not change:
            super().save_model(request, obj, form, change)
            self._tell(request, obj, f"{self.opts.verbose_name} {obj} was added")
            return
        before = self.model._default_manager.get(pk=obj.pk)
        changed = [n for n in form.changed_data if getattr(before, n) != getattr(obj, n)]
        if changed:
            obj.save(update_fields=changed)
            self._tell(request, obj, f"{self.subject(obj)}{describe(before, obj, changed)}")

    def delete_model(self, request: HttpRequest, obj: models.Model) -> None:
        self._tell(request, obj, f"{self.opts.verbose_name} {obj} was removed")
        super().delete_model(request, obj)

    def delete_queryset(
        self, request: HttpRequest, queryset: models.QuerySet[models.Model]
    ) -> None:
        for obj in queryset:
            self.delete_model(request, obj)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """A plain choice: what may be chosen is added and changed on its own page."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and isinstance(field.widget, RelatedFieldWidgetWrapper):
            field.widget = field.widget.widget
        return field

    def subject(self, obj: models.Model) -> str:
        """What the sentence on the timeline starts with."""
        return f"{self.opts.verbose_name} {obj}: "

    def project(self, obj: models.Model) -> Project | None:
        """The project on whose timeline it is told."""
        return obj if isinstance(obj, Project) else None

    def _tell(self, request: HttpRequest, obj: models.Model, text: str) -> None:
        announce.tell(
            wiring.lab(),
            NoticeKind.SETTING_CHANGED,
            text,
            project=self.project(obj),
            by=request.user.get_username(),
        )


_ANY_PROGRAM = (
    "Any program can work here that edits files, runs commands and can be started with a task. "
    "After saving, press <i>Try this agent</i> on the settings page: it says step by step what "
    "works. <code>docs/agents.md</code> shows how to set up programs."
)
_START = (
    "<b>The task</b> reaches the program as {prompt}, one argument, or as {prompt_file}, the path of "
    "a file. The program starts in the run's worktree, in a tmux session, with labctl on its PATH. "
    "It must not ask a person anything: trust, permissions and first steps have to be answered by "
    "its arguments, its environment or its own settings. "
    "<b>The environment</b> is stored encrypted; values whose name says KEY, TOKEN, SECRET, PASSWORD "
    "or AUTH, or that look like a key, are masked wherever output is kept or shown."
)
_END = (
    "<b>What ends it.</b> The pull request of the run's branch is the success, whatever the program "
    "says. An interactive program stays open and is ended by labsite then; a one-shot program ends "
    "by itself, and has failed when it ends without a pull request. "
    "<b>How waiting shows.</b> With JSON lines, and from the hooks of Claude Code, labsite knows "
    "errors, limits and the end of a turn. Of any other program it knows the screen alone: one that "
    "waits for an answer looks as if it works until the run budget ends."
)
_RESUME = (
    "What a person types to go on. After a hold labsite starts Claude Code and Codex again with "
    "their own session; any other program gets its task again, in the same worktree."
)
_LOGIN = (
    "The check is asked before each start: status 0 is logged in, any other is logged out and "
    "refuses the start, no answer refuses automatic work alone. When Codex says no, "
    "<code>codex doctor</code> is asked too, so an API key in CODEX_API_KEY or a provider of your own "
    "counts. Empty the check for a program that has no login."
)

FIELDSETS: Any = [
    (None, {"fields": ["name", "mode"], "description": _ANY_PROGRAM}),
    ("How it is started", {"fields": ["argv", "env", "trust"], "description": _START}),
    ("How it ends and what it tells", {"fields": ["output"], "description": _END}),
    ("Is it logged in?", {"fields": ["login_command", "login_argv"], "description": _LOGIN}),
    ("Going on with a session", {"fields": ["resume_argv"], "description": _RESUME}),
    ("What may be chosen", {"fields": ["model_names", "efforts"]}),
    (
        "Its own page of a session",
        {"fields": ["link_files", "link_field", "link_url", "link_generic"]},
    ),
]


class SecretEntry(forms.CharField):
    """Shows only that something is stored; what comes back hidden is kept."""

    def prepare_value(self, value: Any) -> Any:
        return HIDDEN if isinstance(value, Secret) and value else value

    def has_changed(self, initial: Any, data: Any) -> bool:
        return data != HIDDEN and super().has_changed(initial, data)


class EditedForm(forms.ModelForm):  # type: ignore[type-arg]
    """Says what somebody else changed while it was open; which value is kept, is chosen above it."""

    seen = edit_forms.seen_field()
    conflict: edit_forms.Conflict | None = None

    def __init__(self, data: Any = None, *args: Any, **kwargs: Any) -> None:
        row = kwargs.get("instance")
        if data is not None and row is not None and row.pk:
            data = edit_forms.chosen(data, type(self)(instance=row))
        super().__init__(data, *args, **kwargs)
        if self.instance.pk:
            self.initial["seen"] = edits.mark(self._values(self.instance))

    def clean(self) -> dict[str, Any]:
        given = super().clean() or self.cleaned_data
        if not self.instance.pk:
            return given
        # The row is held until the answer is stored, so that nobody comes in between.
        now = type(self.instance)._default_manager.select_for_update().get(pk=self.instance.pk)
        names = edits.changed(given.get("seen", ""), self._values(now))
        if names:
            told = Notice.objects.filter(kind=NoticeKind.SETTING_CHANGED)
            shown = type(self)(instance=now)
            self.conflict = edit_forms.conflict(self, shown, names, told)
            edit_forms.marked(self, shown.initial["seen"])
            self.add_error(None, edits.TEXT)
        return given

    def _values(self, row: models.Model) -> dict[str, Any]:
        return {name: getattr(row, name) for name in self.fields if hasattr(row, name)}


class SettingsForm(EditedForm):
    """Model and effort are closed lists of the chosen agent."""

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
                    "quiet_minutes",
                    "git_timeout_seconds",
                    "refresh_seconds",
                ]
            },
        ),
        (
            "Tokens and money",
            {
                "fields": [
                    "run_tokens_limit",
                    "run_cost_limit",
                    "day_tokens_limit",
                    "day_cost_limit",
                ]
            },
        ),
        ("Agents", {"fields": ["nudges", "committer"]}),
        ("Room", {"fields": ["session_cap", "nofile_limit"]}),
        (
            "Kept work",
            {
                "fields": [
                    "sweep_minutes",
                    "rescue_days",
                    "output_days",
                    "recording_mb",
                    "fold_days",
                    "delivery_days",
                    "disk_quota_mb",
                ]
            },
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


class AgentProfileForm(EditedForm):
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
    fieldsets = FIELDSETS


class _ProjectForm(EditedForm):
    """Says of the policy what the page *Checks* would say."""

    def clean_policy(self) -> str:
        policy: str = self.cleaned_data["policy"]
        if policy != self.instance.policy and (why := wrong_policy(self.instance.pk, policy)):
            raise ValidationError(why)
        return policy


@admin.register(Project)
class ProjectAdmin(TellingAdmin):
    """A project's own numbers. Projects are added and removed on their pages, where git follows."""

    form = _ProjectForm

    list_display = ["name", "state", "agent", "run_budget_minutes", "ready_label"]
    list_select_related = ["agent"]
    search_fields = ["name"]
    fields = [
        *("name", "state", "source", "agent", "run_budget_minutes", "waits_stop_budget"),
        *(
            "ready_label",
            "run_tokens_limit",
            "run_cost_limit",
            "day_tokens_limit",
            "day_cost_limit",
        ),
        *("policy", "parallel_runs", "trusted", "reads_outsiders", "disk_quota_mb"),
        *("checks", "check_minutes", "fix_attempts"),
        *("signals", "is_badge_public"),
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
