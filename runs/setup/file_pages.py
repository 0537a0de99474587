"""What the settings page *Set-up* shows of a project's files: their names and sizes, never a content."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from django import forms

from runs.core.ports import INCLUDE, Lab, SeamError
from runs.models import Project
from runs.setup import file_acts, file_rules
from runs.setup.file_rules import MOST_BYTES, MOST_CHARACTERS, MOST_FILES

logger = logging.getLogger(__name__)


class WriteOnlyText(forms.Textarea):
    """A box that never shows what was typed into it before, as one for passwords."""

    def format_value(self, value: Any) -> str:
        return ""


class FileForm(forms.Form):
    """A file to be brought along. Its fields begin with `file`, beside those of the settings."""

    path = forms.CharField(
        label="Path in the repository",
        max_length=MOST_CHARACTERS,
        help_text="For example .env or config/local.json. A file of the same path is replaced.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    content = forms.CharField(
        label="Content",
        strip=False,
        help_text=f"Stored encrypted and not shown again. Text of at most {MOST_BYTES // 1024} KB.",
        widget=WriteOnlyText(attrs={"rows": 6, "autocomplete": "off", "spellcheck": "false"}),
    )

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, prefix="file")


def _patterns(lab: Lab, project: Project) -> Sequence[str]:
    """Return what the repository's own `.worktreeinclude` names; empty where that cannot be told."""
    repo = project.repo(lab.paths)
    try:
        commit = lab.repos.upstream(repo, project.default_branch)
        texts = lab.repos.texts(repo, commit, [INCLUDE], MOST_BYTES)
    except SeamError as error:
        logger.info(
            "files to bring along were not read",
            extra={"project": project.slug, "error": str(error)},
        )
        return ()
    return file_rules.read_patterns(texts.get(INCLUDE, ""))


def facts(lab: Lab, project: Project, form: FileForm | None = None) -> Mapping[str, Any]:
    """Return what the page shows; one query."""
    checkout = file_acts.checkout_of(lab, project)
    return {
        "include": _patterns(lab, project),
        "checkout": str(checkout or ""),
        "files": file_acts.list_files(project),
        "file_form": form or FileForm(),
        "most_files": MOST_FILES,
    }
