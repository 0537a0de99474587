"""Forms of a project's page *Loops*: they shape what was typed; the acts say what does not fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms

from runs.core.states import AgentMode
from runs.loop_settings import settings_acts
from runs.loop_settings.unfit import ROLE, TERMS
from runs.loops.roles import Role
from runs.models import AgentProfile, LoopRole, LoopTerms
from runs.settings.edit_forms import EditForm
from runs.web.forms import grouped

_PLAIN = {"autocomplete": "off", "spellcheck": "false"}
_NUMBER = {"inputmode": "numeric", "autocomplete": "off", "maxlength": "20"}
_NO_NUMBER = {"required": "Write a number.", "invalid": "Write a number."}
_NO_LIMIT = "Leave empty for no limit."
LISTS = ("required", "subscriptions", "publishes")

PRESETS = (
    (settings_acts.PER_ISSUE, "One loop per issue", "50 turns and 4 hours for each issue."),
    (
        settings_acts.PERSISTENT,
        "One loop stays",
        "10,000 turns, 24 hours, $50, memories and tasks, a check-in every 5 minutes.",
    ),
)
MODES = (
    ("no", "One loop per issue (recommended)", "Each issue gets a new loop, branch and limits."),
    ("yes", "One loop stays", "One loop takes issue after issue and idles without work."),
)


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _number(label: str, help_text: str = "", *, required: bool = True) -> forms.IntegerField:
    return forms.IntegerField(
        label=label,
        help_text=help_text,
        required=required,
        widget=forms.TextInput(attrs=_NUMBER),
        error_messages=_NO_NUMBER,
    )


def _box(label: str) -> forms.BooleanField:
    return forms.BooleanField(label=label, required=False)


class _Form(EditForm):
    """A form with closed lists."""

    def choices(self, name: str, choices: Any, unknown: str) -> None:
        """The closed list of a field."""
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101  (tells mypy)
        field.choices = choices
        field.error_messages["invalid_choice"] = unknown


class TermsForm(_Form):
    """Whether runs are loops, their limits, and what takes them from issue to issue."""

    is_on = _box("Work in loops")
    is_persistent = forms.ChoiceField(
        label="Issue after issue",
        choices=[(value, name) for value, name, _ in MODES],
        error_messages={"required": "Choose one.", "invalid_choice": "That is no choice."},
    )
    resume_name = forms.CharField(
        label="Role that takes task.resume",
        required=False,
        max_length=60,
        help_text="Made with the loop that stays; it looks for the next issue. "
        "Without any role the coordinator does.",
        widget=forms.TextInput(attrs=_PLAIN),
    )
    resume_instructions = forms.CharField(
        label="Its prompt",
        required=False,
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 3, "class": "short", **_PLAIN}),
    )
    profile_id = forms.TypedChoiceField(
        label="Agent of each turn",
        required=False,
        coerce=int,
        empty_value=None,
        help_text="Only agents that end by themselves (one-shot).",
    )
    completion = forms.CharField(
        label="Completion word",
        max_length=100,
        help_text="The event that ends a loop well.",
        widget=forms.TextInput(attrs=_PLAIN),
        error_messages={"required": "Write a word."},
    )
    cancellation = forms.CharField(
        label="Cancellation word",
        max_length=100,
        required=False,
        help_text="An event that ends a loop at once. Optional.",
        widget=forms.TextInput(attrs=_PLAIN),
    )
    required = forms.CharField(
        label="Events required before completion",
        max_length=2000,
        required=False,
        help_text="Topics, separated by spaces. Optional.",
        widget=forms.TextInput(attrs=_PLAIN),
    )
    max_turns = _number("Maximum turns", _NO_LIMIT, required=False)
    max_seconds = _number(
        "Maximum time (seconds)", f"14400 is 4 hours. {_NO_LIMIT}", required=False
    )
    max_cost = forms.DecimalField(
        label="Maximum cost ($)",
        help_text=f"Only for agents that tell what a turn costs. {_NO_LIMIT}",
        required=False,
        widget=forms.TextInput(attrs={**_NUMBER, "inputmode": "decimal"}),
        error_messages={"invalid": "Write an amount such as 5 or 2.50."},
    )
    max_turn_seconds = _number("Maximum time of one turn (seconds)", _NO_LIMIT, required=False)
    cooldown_seconds = _number("Cooldown (seconds)", "Pause before each next turn.")
    idle_seconds = _number("Look for work every (seconds)", "Where nothing is ready to be done.")
    pause_seconds = _number("Pause between issues (seconds)", "For one loop per issue.")
    check_in_seconds = _number(
        "Check-in every (seconds)", "A notice while it works. Empty: none.", required=False
    )
    answer_seconds = _number(
        "Wait for an answer (seconds)", "When an agent asks a person; then it goes on without."
    )
    failures = _number("Failed turns in a row")
    recoveries = _number("Turns without an event in a row")
    same_event = _number("Same event in a row")
    malformed = _number("Unreadable events in a row")
    blocks = _number("Times a task may be blocked")
    redispatches = _number("Times tasks that were given up may be begun again")
    is_strict = _box("No completion while tasks are open")
    may_idle = _box("Idle without work (off: each look for work costs a turn)")
    has_tasks = _box("Tasks")
    has_memories = _box("Memories")
    cleans_up = _box("Clean up between issues")
    resets_notes = _box("Reset notes between issues")

    def __init__(self, profiles: Iterable[AgentProfile], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        agents = [("", "the project's agent"), *((str(one.pk), one.name) for one in profiles)]
        self.choices("profile_id", agents, "There is no such agent that ends by itself.")

    @classmethod
    def stored(
        cls, profiles: Iterable[AgentProfile], row: LoopTerms, preset: Mapping[str, Any]
    ) -> TermsForm:
        """The stored terms; a preset fills in its values, which are not stored yet."""
        initial = {name: getattr(row, name) for name in TERMS} | dict(preset)
        initial["is_persistent"] = "yes" if initial["is_persistent"] else "no"
        initial["required"] = " ".join(row.required)
        return cls(profiles, initial={**initial, "seen": settings_acts.mark(row)})

    @property
    def modes(self) -> list[tuple[str, str, str, bool]]:
        """The two modes, and which is chosen."""
        chosen = self["is_persistent"].value()
        return [(value, name, text, value == chosen) for value, name, text in MODES]

    def values(self) -> dict[str, Any]:
        """The terms by the names of their columns."""
        given = {name: self.cleaned_data[name] for name in TERMS}
        given["is_persistent"] = given["is_persistent"] == "yes"
        return {**given, "required": _words(given["required"])}

    def resume(self) -> dict[str, str] | None:
        """The role that is made for a loop that stays, where somebody wrote one."""
        given = self.cleaned_data
        found = {"name": given["resume_name"], "instructions": given["resume_instructions"]}
        is_wanted = given["is_persistent"] == "yes" and any(found.values())
        return found if is_wanted else None


class RoleForm(_Form):
    """One role of a project's loops."""

    name = forms.CharField(
        label="Name",
        max_length=60,
        widget=forms.TextInput(attrs=_PLAIN),
        error_messages={"required": "Write a name."},
    )
    instructions = forms.CharField(
        label="Instructions",
        max_length=20_000,
        help_text="Take the place of the general workflow in its turns.",
        widget=forms.Textarea(attrs={"rows": 8, **_PLAIN}),
        error_messages={"required": "Write what it does."},
    )
    subscriptions = forms.CharField(
        label="Subscriptions",
        max_length=5000,
        help_text="Topics it takes, separated by spaces, such as build.done or build.*",
        widget=forms.TextInput(attrs=_PLAIN),
        error_messages={"required": "Write at least one topic, or it never has a turn."},
    )
    publishes = forms.CharField(
        label="Publishes",
        max_length=5000,
        required=False,
        help_text="Topics it ends its turns with. Optional.",
        widget=forms.TextInput(attrs=_PLAIN),
    )
    profile_id = forms.TypedChoiceField(
        label="Agent", required=False, coerce=int, empty_value=None, help_text="One-shot agents."
    )
    model = forms.ChoiceField(label="Model", required=False)
    effort = forms.ChoiceField(label="Effort", required=False)

    def __init__(self, profiles: Iterable[AgentProfile], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = list(profiles)
        agents = [("", "the loop's agent"), *((str(one.pk), one.name) for one in known)]
        self.choices("profile_id", agents, "There is no such agent that ends by itself.")
        models = grouped([(one.name, one.model_names) for one in known])
        self.choices("model", models, "That model is not on the list.")
        efforts = grouped([(one.name, one.efforts) for one in known])
        self.choices("effort", efforts, "That effort is not on the list.")

    @classmethod
    def template(cls, profiles: Iterable[AgentProfile], role: Role) -> RoleForm:
        """A role that is not stored yet, for somebody to change and save."""
        initial: dict[str, Any] = {"name": role.name, "instructions": role.instructions}
        initial["subscriptions"] = " ".join(role.subscriptions)
        return cls(profiles, initial={**initial, "publishes": " ".join(role.publishes)})

    @classmethod
    def stored(cls, profiles: Iterable[AgentProfile], row: LoopRole) -> RoleForm:
        initial = {name: getattr(row, name) for name in ROLE}
        for name in ("subscriptions", "publishes"):
            initial[name] = " ".join(initial[name])
        return cls(profiles, initial={**initial, "seen": settings_acts.mark(row)})

    def values(self) -> dict[str, Any]:
        """The role by the names of its columns."""
        given = {name: self.cleaned_data[name] for name in ROLE}
        for name in ("subscriptions", "publishes"):
            given[name] = _words(given[name])
        return given


def one_shot_agents() -> list[AgentProfile]:
    """The agents that a turn can be given to."""
    return list(AgentProfile.objects.filter(mode=AgentMode.ONE_SHOT).order_by("name"))
