"""Plain forms: they shape and bound what was typed; the verbs decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.urls import reverse_lazy

from runs.accounts import choice
from runs.core.states import NoticeKind
from runs.models import AgentProfile, Settings
from runs.settings import edits
from runs.settings.edit_forms import EditForm
from runs.timeline.audit import Wanted

Grouped = list[tuple[str, str | list[tuple[str, str]]]]


class ProjectForm(forms.Form):
    """A new project."""

    source = forms.CharField(
        label="Repository",
        max_length=500,
        help_text="A folder on this machine, or a clone URL: https, ssh or file.",
        widget=forms.TextInput(
            attrs={
                "autocomplete": "off",
                "spellcheck": "false",
                "hx-post": reverse_lazy("runs:project-trackers"),
                "hx-trigger": "change",
                "hx-target": "#project-trackers",
                "hx-swap": "outerHTML",
            }
        ),
        error_messages={"required": "Write a path or a clone URL."},
    )
    name = forms.CharField(
        label="Name",
        max_length=60,
        required=False,
        help_text="Part of session and folder names. Empty: the name of the repository.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    token = forms.CharField(
        label="Access token",
        max_length=500,
        required=False,
        strip=True,
        help_text="Only for HTTPS that asks for one. Stored encrypted, never shown again.",
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )


class ChoiceForm(EditForm):
    """Agent, model and effort for new sessions, from closed lists."""

    agent = forms.ChoiceField(
        label="Agent", help_text="A project may choose another one under its Settings, Agents."
    )
    model = forms.ChoiceField(label="Model", required=False)
    effort = forms.ChoiceField(label="Effort", required=False)

    def __init__(
        self, profiles: Iterable[AgentProfile], data: Mapping[str, object] | None, **kwargs: object
    ) -> None:
        super().__init__(data, **kwargs)  # type: ignore[arg-type]
        known = list(profiles)
        self._choices("agent", [(str(profile.pk), profile.name) for profile in known])
        self._choices("model", grouped((p.name, p.model_names) for p in known))
        self._choices("effort", grouped((p.name, p.efforts) for p in known))

    def _choices(self, name: str, choices: Grouped | list[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101  (tells mypy)
        field.choices = choices
        field.error_messages["invalid_choice"] = f"That {name} is not on the list."

    @classmethod
    def stored(cls, profiles: Iterable[AgentProfile], settings: Settings) -> ChoiceForm:
        """The form with the choice in force."""
        initial = {
            "agent": str(settings.agent_id or ""),
            "model": settings.model,
            "effort": settings.effort,
        }
        seen = edits.mark(choice.said(settings))
        return cls(profiles, None, initial={**initial, "seen": seen})


class EntriesPlace(forms.Form):
    """Which piece of a timeline; nonsense is as if it were not there."""

    before = forms.IntegerField(required=False, min_value=1, max_value=2**62)


class ReplayPlace(forms.Form):
    """Which moment of a recording, in seconds; nonsense is its beginning."""

    at = forms.FloatField(required=False, min_value=0, max_value=1e9)


class AnswerForm(forms.Form):
    """An answer to an agent that waits since `since`: a text, or a choice of the dialog `mark`."""

    since = forms.DateTimeField()
    mark = forms.CharField(required=False, max_length=16)
    choice = forms.IntegerField(required=False, min_value=1, max_value=9)
    text = forms.CharField(required=False, strip=False)

    def clean(self) -> dict[str, Any]:
        """Refuse a text beside a choice: one of them would be lost."""
        given = self.cleaned_data
        if given.get("choice") is not None and given.get("text"):
            raise forms.ValidationError("A text or a choice, not both.")
        return given


def grouped(lists: Iterable[tuple[str, list[str]]]) -> Grouped:
    """The agent's own default first, then each agent's names under its name."""
    groups: Grouped = [("", "the agent's own default")]
    return [*groups, *((name, [(one, one) for one in names]) for name, names in lists if names)]


class AuditFilter(forms.Form):
    """Which acts the audit shows; a field that makes no sense narrows nothing and says so."""

    by = forms.CharField(required=False, max_length=150)
    kind = forms.ChoiceField(required=False, choices=[(kind.value, "") for kind in NoticeKind])
    project = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1)
    since = forms.DateField(required=False)
    until = forms.DateField(required=False)
    text = forms.CharField(required=False, max_length=200)
    before = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1)

    def wanted(self) -> Wanted:
        """The filter as it can be asked for."""
        self.is_valid()
        return Wanted(**{name: value for name, value in self.cleaned_data.items() if value})
