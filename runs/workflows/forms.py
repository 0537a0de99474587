"""The form of a composite workflow."""

from __future__ import annotations

import re
from collections.abc import Mapping

from django import forms

from runs.workflows import rules
from runs.workflows.acts import NewPhase
from runs.workflows.models import WORKFLOW_CHARACTERS
from runs.workflows.phase_lines import WrongLine, read_phases

MINUTES = round(rules.CEILING.total_seconds() / 60)
_OF_PHASE = re.compile(r"phases\.(\d+)\.\w+")


class WorkflowForm(forms.Form):
    """A name, its phases one a line, and the ceiling over all of them."""

    name = forms.CharField(
        label="Name",
        max_length=WORKFLOW_CHARACTERS,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        error_messages={"required": "Give it a name."},
    )
    phases = forms.CharField(
        label="Phases",
        max_length=5_000,
        help_text="One per line, in their order: a name, a colon, an open task group. Two numbers "
        "may follow, in minutes: the timeout of its monitor and the safety net around it.",
        widget=forms.Textarea(
            attrs={
                "rows": 5,
                "spellcheck": "false",
                "autocomplete": "off",
                "placeholder": "work: wave\nreview: findings 10 15",
            }
        ),
        error_messages={"required": "Write at least one phase."},
    )
    minutes = forms.IntegerField(
        label="Minutes for everything",
        initial=MINUTES,
        min_value=1,
        max_value=10_000,
        help_text="After this time everything stops and partial results are kept.",
        widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off"}),
        error_messages={"required": "Write a number of minutes.", "invalid": "Write a number."},
    )

    def clean_phases(self) -> str:
        text = str(self.cleaned_data["phases"])
        try:
            lines = read_phases(text)
        except WrongLine as error:
            raise forms.ValidationError(str(error)) from error
        self.lines = [
            NewPhase(one.name, one.group, one.timeout_seconds, one.net_seconds) for one in lines
        ]
        return text

    def refuse(self, fields: Mapping[str, str]) -> None:
        """Put what the verb refused at its field; of a phase with the number of that phase."""
        names = {"ceiling_seconds": "minutes"}
        for name, text in fields.items():
            of = _OF_PHASE.fullmatch(name)
            field, said = ("phases", f"Phase {of[1]}: {text}") if of else (name, text)
            self.add_error(names.get(field, field), said)
