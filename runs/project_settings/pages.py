"""The settings of a project, on pages as a person thinks of them, with help and default beside each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.db import models
from django.forms.models import modelform_factory

from runs.models import Project, Settings
from runs.project_settings.acts import GROUPS
from runs.settings import edit_forms, edits
from runs.setup import proposal_rules
from runs.setup.proposal_rules import SetUpProposal
from runs.web import addresses


@dataclass(frozen=True, slots=True)
class Link:
    """A page on which more of the group is decided."""

    label: str
    why: str
    url: str


@dataclass(frozen=True, slots=True)
class Group:
    """One page of settings: its fields, and the pages where more of it stands.

    `elsewhere` names the fields of a project that those pages change.
    """

    key: str
    label: str
    why: str
    links: tuple[tuple[str, str, str], ...] = ()
    elsewhere: frozenset[str] = frozenset()

    @property
    def fields(self) -> tuple[str, ...]:
        return GROUPS.get(self.key, ())

    def pages(self, project: Project) -> Sequence[Link]:
        return [
            Link(label, why, addresses.of(f"runs:{url}", project.pk))
            for label, why, url in self.links
        ]


ALL = (
    Group(
        "repository",
        "Repository",
        "Where the code is, and where its issues are.",
        (
            (
                "Tracker and labels",
                "Where the issues are, which label makes one ready, what labsite writes there.",
                "tracker",
            ),
        ),
        frozenset({"tracker", "tracker_root", "forge", "ready_label", "working_label", "mirror"}),
    ),
    Group(
        "starting",
        "Starting work",
        "What starts without a click, and how much of it at a time.",
        (
            ("Automatic work", "On or off, and the sessions of it.", "watches"),
            ("Loops", "Whether a run is one long session or many short ones.", "loop-settings"),
        ),
        frozenset({"is_auto"}),
    ),
    Group("setup", "Set-up", "What a new worktree needs before an agent can work in it."),
    Group("agents", "Agents", "Which coding program works on this project."),
    Group("limits", "Limits and budget", "How long a run may take, and what it may use."),
    Group(
        "pulls",
        "Pull requests",
        "What counts as the end of a run.",
        (
            (
                "Completion policy",
                "A pull request alone, or gates that prove what it delivers.",
                "spec",
            ),
            ("Open pull requests", "Read, reviewed and merged here.", "pulls"),
        ),
        frozenset({"policy"}),
    ),
    Group(
        "checks",
        "Checks",
        "What proves that a change works.",
        (
            ("Checks", "Commands, coverage, reviewers and switches of the gates.", "spec"),
            ("Validation commands", "What watch sessions run on merged work.", "checks"),
        ),
        frozenset({"checks", "check_minutes", "fix_attempts"}),
    ),
    Group(
        "notices",
        "Notices",
        "Who sees how this project is. Which notices you get, you choose under Account.",
        (("Badge", "The image for a README, and its address.", "badge"),),
    ),
    Group(
        "upkeep",
        "Upkeep",
        "Disk space, and how ends are noticed.",
        (("Parked work", "What ended runs left, what was rescued, and disk use.", "parked"),),
    ),
    Group(
        "danger",
        "Danger",
        "What cannot be taken back.",
        (("Remove project…", "Says first what would be kept and what not.", "project-remove"),),
    ),
)
BY_KEY = {one.key: one for one in ALL}
HELP = {"agent": "The coding program that new runs of this project start with."}
# Where the value comes from while a field is empty.
GENERAL = {
    "run_budget_minutes": "run_budget_minutes",
    "disk_quota_mb": "disk_quota_mb",
    "run_tokens_limit": "run_tokens_limit",
    "run_cost_limit": "run_cost_limit",
    "agent": "agent",
    "poll_seconds": "launch_seconds",
    "committer": "committer",
}
# What holds when the general settings are empty too.
NOWHERE = {"committer": "whoever git names for the user that runs labsite, else labsite itself"}


class SettingsForm(forms.ModelForm):  # type: ignore[type-arg]
    """The settings of one page. What is wrong stands at its field."""

    seen = edit_forms.seen_field()

    def values(self) -> dict[str, Any]:
        """The settings by the names of their columns."""
        return {name: self.cleaned_data[name] for name in self.fields if name != "seen"}

    def said(self, settings: Settings) -> list[tuple[forms.BoundField, str]]:
        """Each field with the sentence on its default."""
        return [(self[name], default(name, settings)) for name in self.fields if name != "seen"]


def form(
    group: Group, project: Project, data: Any = None, *, is_locked: bool = False
) -> SettingsForm:
    """The form of a page with what is stored, or with what was sent."""
    made: Any = modelform_factory(Project, form=SettingsForm, fields=group.fields)
    shown: SettingsForm = made(data, instance=project)
    shown.initial["seen"] = edits.mark({name: getattr(project, name) for name in group.fields})
    for name, field in shown.fields.items():
        field.disabled = is_locked and name != "seen"
        field.help_text = HELP.get(name, field.help_text)
        if isinstance(field, forms.ModelChoiceField):
            field.empty_label = "as the general settings say"
        if isinstance(field.widget, forms.Textarea):
            field.widget.attrs["rows"] = 3
    return shown


@dataclass(frozen=True, slots=True)
class ShownProposal:
    """What the repository's files suggest, in sentences, or why they could not be read."""

    sentences: Sequence[str] = ()
    trouble: str = ""


def fill_in(form: SettingsForm, proposal: SetUpProposal) -> None:
    """Show a proposal in the form of Set-up beside what is stored; it counts once somebody saves it."""
    stored = form.instance
    form.initial["has_submodules"] = stored.has_submodules or proposal.has_submodules
    form.initial["setup"] = proposal_rules.add_commands(stored.setup, proposal.commands)


def default(name: str, settings: Settings) -> str:
    """What holds while nobody chose otherwise, and where that comes from."""
    field = Project._meta.get_field(name)
    if name in GENERAL:
        general = getattr(settings, GENERAL[name])
        if not general and name in NOWHERE:
            return f"Now empty means: {NOWHERE[name]}, since the general settings say nothing."
        return f"Now empty means: {_said(general)}, from the general settings, which an admin sets."
    if not isinstance(field, models.Field):
        return f"Default: {_said(None)}."
    value = field.get_default()
    return f"Default: {_said(dict(field.flatchoices).get(value, value))}."


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None or value == "" or value == 0:
        return "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def facts(group: Group, project: Project, shown: SettingsForm, **more: Any) -> Mapping[str, Any]:
    """What the page shows."""
    return {
        "project": project,
        "group": group,
        "groups": ALL,
        "links": group.pages(project),
        "form": shown,
        "rows": shown.said(Settings.current()),
        **more,
    }
