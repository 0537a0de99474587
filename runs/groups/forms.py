"""Forms on task groups and monitors. The verbs say what does not fit, each at its field."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from django import forms

from runs.groups.acts import Chosen
from runs.groups.tasks import NewTask
from runs.groups.terms import NAME_CHARACTERS
from runs.models import MonitorPreset, TaskGroup
from runs.web import words

NUMBER = {"inputmode": "decimal", "autocomplete": "off"}
PLAIN = {"autocomplete": "off", "spellcheck": "false"}
LONGEST = 525_600  # minutes in a year
_SEPARATORS = re.compile(r"[\s,;]+")
_MINUTES = ("stale", "timeout", "release")
# What the verb calls an option, and which field of the form shows it.
FIELDS: Mapping[str, str] = {
    "poll_seconds": "poll",
    "stale_seconds": "stale",
    "timeout_seconds": "timeout",
    "release_seconds": "release",
}


def lines_as_tasks(text: str) -> Sequence[NewTask]:
    """A task for each line that says something."""
    return [NewTask(line.strip()) for line in text.splitlines() if line.strip()]


def _choices(presets: Sequence[MonitorPreset]) -> list[tuple[str, str]]:
    return [(one.name, f"{one.name}: {told(one)}") for one in presets]


def told(preset: MonitorPreset) -> str:
    """What a preset does, in a few words."""
    options = preset.options
    back = "gives back after {}" if options.release else "only warns"
    parts = [
        "no timeout"
        if options.timeout is None
        else f"times out after {words.threshold(options.timeout)}",
        back.format(words.threshold(options.release)) if options.release else back,
    ]
    if preset.has_checkpoints:
        parts.append("checkpoints")
    return ", ".join(parts)


class _New(forms.Form):
    """What every new group has."""

    name = forms.CharField(
        label="Name",
        max_length=NAME_CHARACTERS,
        help_text="Letters, digits, _ and - only: agents and files call it so.",
        widget=forms.TextInput(attrs=PLAIN),
        error_messages={"required": "Write a name."},
    )
    preset = forms.ChoiceField(
        label="Kind of work",
        initial="work",
        help_text="How a monitor watches it; that can still be changed when one is started.",
    )

    def __init__(self, presets: Sequence[MonitorPreset], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["preset"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101  (tells mypy)
        field.choices = _choices(presets)


class TasksForm(_New):
    """A group of tasks that somebody wrote."""

    tasks = forms.CharField(
        label="Tasks",
        required=False,
        max_length=200_000,
        help_text="One per line. More can be added at any time.",
        widget=forms.Textarea(attrs={"autocomplete": "off", "rows": 8}),
    )

    @property
    def new(self) -> Sequence[NewTask]:
        return lines_as_tasks(self.cleaned_data["tasks"])


class IssuesForm(_New):
    """A group with a task for each of some issues; a task follows the runs of its issue."""

    label = forms.CharField(
        label="All open issues with the label",
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs=PLAIN),
    )
    milestone = forms.CharField(
        label="or of the milestone",
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs=PLAIN),
    )
    issues = forms.CharField(
        label="or these",
        required=False,
        max_length=5_000,
        help_text="Their numbers, such as: 3, 5, 8.",
        widget=forms.TextInput(attrs=PLAIN),
    )

    @property
    def chosen(self) -> Chosen:
        given = self.cleaned_data
        keys = [key for key in _SEPARATORS.split(given["issues"]) if key]
        return Chosen(keys, given["label"].strip(), given["milestone"].strip())


class MoreTasksForm(forms.Form):
    """Tasks for a group that is there."""

    tasks = forms.CharField(
        label="New tasks",
        max_length=200_000,
        help_text="One per line.",
        widget=forms.Textarea(attrs={"autocomplete": "off", "rows": 3}),
        error_messages={"required": "Write a task."},
    )

    @classmethod
    def of(cls, group: TaskGroup, sent: Any = None) -> MoreTasksForm:
        """The form of a group; its ids count the tasks, so that after some more it is empty."""
        return cls(sent, auto_id=f"id_%s_{group.tasks.count()}")

    @property
    def new(self) -> Sequence[NewTask]:
        return lines_as_tasks(self.cleaned_data["tasks"])


def _length(label: str, help_text: str, **more: Any) -> forms.FloatField:
    return forms.FloatField(
        label=label,
        help_text=help_text,
        min_value=0.02,
        max_value=LONGEST,
        widget=forms.TextInput(attrs=NUMBER),
        error_messages={
            "required": "Write a number of minutes.",
            "invalid": "Write a number of minutes.",
            "min_value": "It has to be more than a second.",
            "max_value": "A year at most.",
        },
        **more,
    )


class MonitorForm(forms.Form):
    """A monitor with every option. `locked`: nothing is ever given back."""

    preset = forms.CharField(widget=forms.HiddenInput)
    label = forms.CharField(
        label="Label",
        max_length=80,
        help_text="Before every message.",
        widget=forms.TextInput(attrs=PLAIN),
        error_messages={"required": "Write a label."},
    )
    expected = forms.IntegerField(
        label="Expected tasks",
        required=False,
        min_value=0,
        max_value=100_000,
        help_text="Number of tasks expected. Leave empty for as many as the group has now.",
        widget=forms.TextInput(attrs=NUMBER),
        error_messages={"invalid": "Write a number.", "min_value": "It cannot be less than 0."},
    )
    poll = forms.IntegerField(
        label="Seconds between looks",
        min_value=1,
        max_value=86_400,
        widget=forms.TextInput(attrs=NUMBER),
        error_messages={
            "required": "Write a number of seconds.",
            "invalid": "Write a number of seconds.",
            "min_value": "It has to be at least 1.",
        },
    )
    stale = _length("Minutes until a task counts as stalled", "Since it was seen in progress.")
    timeout = _length(
        "Minutes until it times out", "It then tells partial results. Empty: never.", required=False
    )
    release = _length(
        "Minutes until it is given back",
        "Another worker can take it then. Empty: it is only warned of.",
        required=False,
    )
    has_checkpoints = forms.BooleanField(
        label="Report at 25, 50, 75 and 100 percent, and when a task stalls", required=False
    )

    def __init__(self, *args: Any, locked: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.locked = locked
        if locked:
            field = self.fields["release"]
            field.disabled = True
            field.help_text = (
                "Never here: what a worker finds is its own, so nobody else could go on with it."
            )

    @classmethod
    def of(cls, preset: MonitorPreset, group: TaskGroup, *, locked: bool) -> MonitorForm:
        """The form with what the preset has."""
        given: dict[str, Any] = {
            "preset": preset.name,
            "label": preset.label.replace("{phase}", group.name)[:80],
            "poll": preset.poll_seconds,
            "has_checkpoints": preset.has_checkpoints,
        }
        for name in _MINUTES:
            seconds = getattr(preset, f"{name}_seconds")
            given[name] = "" if seconds is None else f"{seconds / 60:.4g}"
        return cls(initial=given, locked=locked)

    @property
    def given(self) -> Mapping[str, object]:
        """The options as the verb takes them."""
        sent = self.cleaned_data
        found: dict[str, object] = {
            "label": sent["label"],
            "poll_seconds": sent["poll"],
            "has_checkpoints": sent["has_checkpoints"],
        }
        for name in _MINUTES:
            value = sent[name]
            found[f"{name}_seconds"] = None if value is None else max(1, round(value * 60))
        if self.locked:
            found["release_seconds"] = None
        return found
