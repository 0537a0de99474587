"""Forms on watch sessions. What is wrong is said in the words of `./lab watch`."""

from __future__ import annotations

from typing import Any

from django import forms

from runs.models import Project
from runs.watch.session import LIMIT, VALIDATE_EVERY, Terms, WrongTerms, read_terms

NUMBER = {"inputmode": "numeric", "autocomplete": "off", "maxlength": "20"}


class WatchForm(forms.Form):
    """A new session. The interval of its polls is a constant, and no field."""

    is_watching = forms.BooleanField(
        label="Wait for new issues when nothing is ready",
        required=False,
        initial=True,
    )
    limit = forms.CharField(
        label="Maximum issues",
        required=False,
        help_text="Stop after this many issues. Leave empty for no limit.",
        widget=forms.TextInput(attrs=NUMBER),
    )
    every = forms.CharField(
        label="Validate after every",
        required=False,
        initial=str(VALIDATE_EVERY),
        help_text="Validate after this many issues (default 10; at the end if not waiting).",
        widget=forms.TextInput(attrs=NUMBER),
    )

    def clean(self) -> dict[str, Any]:
        found = super().clean() or self.cleaned_data
        wrong = False
        for name, texts in (
            ("limit", (found.get("limit"), None)),
            ("every", (None, found.get("every"))),
        ):
            try:
                read_terms(True, *texts)
            except WrongTerms as error:
                wrong = True
                self.add_error("limit" if error.field == LIMIT else name, error.text)
        if not wrong:
            self.terms: Terms = read_terms(found["is_watching"], found["limit"], found["every"])
        return found


class ChecksForm(forms.Form):
    """What a project's validations run. The verb says what does not fit."""

    checks = forms.CharField(
        label="Commands",
        required=False,
        max_length=20_000,
        strip=False,
        help_text="One per line, run in this order in a clean worktree, each without a shell. The first that "
        "fails ends the validation. Empty: nothing is checked.",
        widget=forms.Textarea(attrs={"autocomplete": "off", "spellcheck": "false", "rows": 8}),
    )
    check_minutes = forms.IntegerField(
        label="Minutes a command may take",
        help_text="Commands that run longer are killed and count as failed. From 1 to 1440.",
        widget=forms.TextInput(attrs=NUMBER),
        error_messages={"required": "Write a number of minutes.", "invalid": "Write a number."},
    )
    fix_attempts = forms.IntegerField(
        label="Maximum fix attempts",
        help_text="How often an agent may try to mend a failed validation. From 0 to 10.",
        widget=forms.TextInput(attrs=NUMBER),
        error_messages={"required": "Write a number; 0 for none.", "invalid": "Write a number."},
    )

    @classmethod
    def stored(cls, project: Project) -> ChecksForm:
        """The form with what is set."""
        names = ("checks", "check_minutes", "fix_attempts")
        return cls(initial={name: getattr(project, name) for name in names})
