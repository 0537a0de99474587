"""Forms of the page *Checks*: they shape what was typed; the acts say what does not fit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms

from runs.core.states import CompletionPolicy
from runs.models import AgentProfile, CheckCommand, CheckTerms, Project, Reviewer
from runs.settings.edit_forms import EditForm
from runs.specs import acts, unfit
from runs.validation.command_rules import LINE_CHARACTERS, UnfitCommands, read_commands, shown
from runs.validation.specs import Command, Kind, Switch
from runs.web.forms import grouped

_PLAIN = {"autocomplete": "off", "spellcheck": "false"}
_NUMBER = {"inputmode": "numeric", "autocomplete": "off", "maxlength": "20"}
_NO_NUMBER = {"required": "Write a number.", "invalid": "Write a number."}
_WITHOUT_SHELL = "Run without a shell; write sh -c '…' for one."

SWITCHES = (
    (Switch.POST_VALIDATE, "Tests after each commit", "Test commands are run."),
    (Switch.INTEGRATION_TESTS, "Integration tests", "Off: only unit tests are run."),
    (Switch.COVERAGE, "Coverage", "Tests have to reach the percentage below."),
    (Switch.REVIEW, "Review", "Reviewers read the change before it is accepted."),
    (Switch.RUN_LEVEL, "Run level", "Everything together, before issues are closed."),
    (Switch.E2E, "End to end", "A real run on a small repository, at the run level."),
    (Switch.FOLLOW_UP, "Follow-up issue", "Opened when the run level fails."),
)
POLICIES = (
    (
        CompletionPolicy.PULL_REQUEST.value,
        "Pull request",
        "A run is done when the pull request of its branch is there.",
    ),
    (
        CompletionPolicy.GATES.value,
        "Gates",
        "A run is done when evidence, clean room and review have passed.",
    ),
)


def argument_line(text: str) -> list[str]:
    """A command as somebody typed it on one line; empty for nothing. Raises ValidationError."""
    try:
        found = read_commands(text)
    except UnfitCommands as error:
        raise forms.ValidationError(str(error).removeprefix("Line 1: ").capitalize()) from error
    if len(found) > 1:
        raise forms.ValidationError("Write one command on one line.")
    return found[0] if found else []


def arguments(text: str) -> list[str]:
    """Arguments alone, as somebody typed them on one line."""
    return argument_line(f"x {text}")[1:] if text.strip() else []


class LineField(forms.CharField):
    """One line that becomes a list of arguments."""

    def __init__(self, *, is_command: bool = False, **kwargs: Any) -> None:
        widget = forms.TextInput(attrs={**_PLAIN, "class": "mono"})
        super().__init__(max_length=LINE_CHARACTERS, widget=widget, **kwargs)
        self._read = argument_line if is_command else arguments

    def clean(self, value: Any) -> Any:
        return self._read(super().clean(value))


class PolicyForm(EditForm):
    """What proves that a run is done."""

    policy = forms.ChoiceField(
        label="Completion policy",
        choices=[(value, name) for value, name, _ in POLICIES],
        error_messages={"required": "Choose one.", "invalid_choice": "That is no choice."},
    )

    @classmethod
    def stored(cls, project: Project) -> PolicyForm:
        return cls(initial={"policy": project.policy, "seen": acts.mark(project)})


class TermsForm(EditForm):
    """Switches and numbers for both scopes. A switch with its box ticked is on."""

    by_column = {"disabled": "on"}

    on = forms.MultipleChoiceField(
        label="What is on",
        required=False,
        choices=[(one.value, name) for one, name, _ in SWITCHES],
        widget=forms.CheckboxSelectMultiple,
    )
    require_clean_git = forms.BooleanField(label="Require a clean worktree", required=False)
    require_pytest_for_code_changes = forms.BooleanField(
        label="Code changes need a test command", required=False
    )
    coverage_min_percent = forms.FloatField(
        label="Minimum coverage (%)",
        help_text="Equal passes. Put {threshold} into a test command's arguments for coverage.",
        widget=forms.TextInput(attrs={**_NUMBER, "inputmode": "decimal"}),
        error_messages=_NO_NUMBER,
    )
    coverage_branch = forms.BooleanField(label="Count branches in coverage", required=False)
    coverage_report_path = forms.CharField(
        label="Coverage report",
        required=False,
        max_length=300,
        help_text="Below the worktree: coverage.py or Cobertura XML, or lcov. "
        "Empty: coverage.xml, else the usual places.",
        widget=forms.TextInput(attrs=_PLAIN),
    )
    max_gate_attempts = forms.IntegerField(
        label="Attempts for evidence and clean room",
        help_text="In total, the first one included. From 1 to 20.",
        widget=forms.TextInput(attrs=_NUMBER),
        error_messages=_NO_NUMBER,
    )
    max_review_attempts = forms.IntegerField(
        label="Attempts for reviews",
        help_text="In total. From 1 to 20.",
        widget=forms.TextInput(attrs=_NUMBER),
        error_messages=_NO_NUMBER,
    )
    review_minutes = forms.IntegerField(
        label="Time limit of a review (minutes)",
        help_text="From 1 to 240.",
        widget=forms.TextInput(attrs=_NUMBER),
        error_messages=_NO_NUMBER,
    )
    review_total_minutes = forms.IntegerField(
        label="Time limit of all reviews of a run (minutes)",
        help_text="Over all its attempts. From 1 to 1440.",
        widget=forms.TextInput(attrs=_NUMBER),
        error_messages=_NO_NUMBER,
    )
    skip_without_reviewers = forms.BooleanField(
        label="If no reviewer is available, skip the review with a warning", required=False
    )
    track_low_findings = forms.BooleanField(
        label="Open one issue for findings of P2 and P3", required=False
    )
    person_for_check_changes = forms.BooleanField(
        label="A person must look when a change touches the checks themselves", required=False
    )
    keep_worktrees = forms.BooleanField(
        label="Keep the clean worktree after a failure", required=False
    )
    e2e_command = LineField(
        label="End-to-end command",
        is_command=True,
        required=False,
        help_text=f"{_WITHOUT_SHELL} Empty: labsite's own ./lab watch.",
    )
    e2e_required_env = forms.CharField(
        label="Required environment variables",
        required=False,
        max_length=2000,
        help_text="Names, separated by spaces. If one is not set, the check fails.",
        widget=forms.TextInput(attrs=_PLAIN),
    )
    e2e_minutes = forms.IntegerField(
        label="Time limit of the check (minutes)",
        help_text="From 1 to 120.",
        widget=forms.TextInput(attrs=_NUMBER),
        error_messages=_NO_NUMBER,
    )
    keep_e2e_fixture = forms.BooleanField(label="Keep the test repository", required=False)

    @classmethod
    def stored(cls, row: CheckTerms) -> TermsForm:
        initial = {name: getattr(row, name) for name in unfit.TERMS}
        initial["on"] = [one.value for one in Switch if one.value not in row.disabled]
        initial["coverage_min_percent"] = f"{row.coverage_min_percent:g}"
        initial["e2e_command"] = shown(row.e2e_command)
        initial["e2e_required_env"] = " ".join(row.e2e_required_env)
        return cls(initial={**initial, "seen": acts.mark(row)})

    @property
    def switches(self) -> list[tuple[str, str, str, bool]]:
        """Each switch with its name, what it does, and whether its box is ticked."""
        on = self["on"].value() or []
        return [(one.value, name, text, one.value in on) for one, name, text in SWITCHES]

    def values(self) -> dict[str, Any]:
        """The terms by the names of their columns."""
        given = {name: self.cleaned_data[name] for name in unfit.TERMS if name != "disabled"}
        given["e2e_required_env"] = given["e2e_required_env"].replace(",", " ").split()
        off = [one.value for one in Switch if one.value not in self.cleaned_data["on"]]
        return {**given, "disabled": off}


class CommandForm(EditForm):
    """One command of the spec."""

    name = forms.CharField(
        label="Name",
        max_length=60,
        widget=forms.TextInput(attrs=_PLAIN),
        error_messages={"required": "Write a name."},
    )
    argv = LineField(
        label="Command",
        is_command=True,
        help_text=_WITHOUT_SHELL,
        error_messages={"required": "Write the program and its arguments."},
    )
    kind = forms.ChoiceField(
        label="Kind",
        choices=[(one.value, one.words) for one in Kind],
        help_text="Commands run in this order. End to end runs at the run level alone, and only while "
        "that switch is on.",
        error_messages={"invalid_choice": "There is no such kind."},
    )
    minutes = forms.IntegerField(
        label="Time limit (minutes)",
        initial=30,
        help_text="Killed after this time, which counts as failed. From 1 to 1440.",
        widget=forms.TextInput(attrs=_NUMBER),
        error_messages=_NO_NUMBER,
    )
    use_test_mutex = forms.BooleanField(
        label="One at a time: never beside another such command of this project", required=False
    )
    allow_fail = forms.BooleanField(
        label="May fail: a failure is shown and fails no check", required=False
    )
    coverage_args = LineField(
        label="Arguments for coverage",
        required=False,
        help_text="Tests only. Added while coverage is on; {threshold} becomes the percentage.",
    )
    unit_args = LineField(
        label="Arguments for unit tests alone",
        required=False,
        help_text="Tests only. Added while integration tests are off.",
    )
    is_integration = forms.BooleanField(
        label="Integration tests: left out while those are off", required=False
    )
    lock_files = forms.CharField(
        label="Only when one of these files has changed",
        required=False,
        max_length=2000,
        help_text="Paths, separated by spaces. Empty: always. For what every worktree shares, such as "
        "the cache of uv.",
        widget=forms.TextInput(attrs=_PLAIN),
    )

    @classmethod
    def stored(cls, row: CheckCommand) -> CommandForm:
        names = ("name", "kind", "minutes", "use_test_mutex", "allow_fail", "is_integration")
        initial = {name: getattr(row, name) for name in names}
        for name in ("argv", "coverage_args", "unit_args"):
            initial[name] = shown(getattr(row, name))
        initial["lock_files"] = " ".join(row.lock_files)
        return cls(initial={**initial, "seen": acts.mark(row)})

    def command(self) -> Command:
        """The command as it was written."""
        given = self.cleaned_data
        return Command(
            given["name"],
            tuple(given["argv"]),
            Kind(given["kind"]),
            given["use_test_mutex"],
            given["allow_fail"],
            tuple(given["coverage_args"]),
            tuple(given["unit_args"]),
            given["is_integration"],
            tuple(given["lock_files"].replace(",", " ").split()),
            given["minutes"],
        )


class ReviewerForm(EditForm):
    """An agent in one-shot mode, or a command that answers findings."""

    name = forms.CharField(
        label="Name",
        max_length=60,
        widget=forms.TextInput(attrs=_PLAIN),
        error_messages={"required": "Write a name."},
    )
    is_on = forms.BooleanField(label="Takes part in reviews", required=False, initial=True)
    profile_id = forms.TypedChoiceField(
        label="Agent", required=False, coerce=int, empty_value=None, help_text="Started one-shot."
    )
    model = forms.ChoiceField(label="Model", required=False)
    effort = forms.ChoiceField(label="Effort", required=False)
    command = LineField(
        label="Or a command",
        is_command=True,
        required=False,
        help_text=f"{_WITHOUT_SHELL} It gets the change and prints findings as JSON.",
    )
    instructions = forms.CharField(
        label="Instructions",
        required=False,
        max_length=unfit.MOST_INSTRUCTIONS,
        help_text="Added to what every reviewer is told. Optional.",
        widget=forms.Textarea(attrs={"rows": 5, **_PLAIN}),
    )

    def __init__(self, profiles: Iterable[AgentProfile], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = list(profiles)
        agents = [("", "none"), *((str(one.pk), one.name) for one in known)]
        self._choices("profile_id", agents, "There is no such agent.")
        for name, lists in (
            ("model", [(one.name, one.model_names) for one in known]),
            ("effort", [(one.name, one.efforts) for one in known]),
        ):
            self._choices(name, grouped(lists), f"That {name} is not on the list.")

    def _choices(self, name: str, choices: Any, unknown: str) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101  (tells mypy)
        field.choices = choices
        field.error_messages["invalid_choice"] = unknown

    @classmethod
    def stored(cls, profiles: Iterable[AgentProfile], row: Reviewer) -> ReviewerForm:
        initial = {name: getattr(row, name) for name in unfit.REVIEWER}
        initial["command"] = shown(row.command)
        return cls(profiles, initial={**initial, "seen": acts.mark(row)})

    def values(self) -> dict[str, Any]:
        """The reviewer by the names of its columns."""
        return {name: self.cleaned_data[name] for name in unfit.REVIEWER}


class ImportForm(forms.Form):
    """A file that labsite exported, or a mala.yaml."""

    text = forms.CharField(
        label="The file",
        max_length=unfit.MOST_FILE_BYTES,
        strip=False,
        help_text="One that labsite exported (JSON), or the mala.yaml of the program mala.",
        widget=forms.Textarea(attrs={"rows": 14, **_PLAIN}),
        error_messages={"required": "Paste the file."},
    )
