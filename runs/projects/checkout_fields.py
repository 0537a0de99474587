"""What of a project's repository its worktrees hold: columns of a project, and what reads them."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import models

from runs.setup import folder_rules


def fit_folders(text: str) -> None:
    """Refuse a list of folders that git could not check out alone."""
    try:
        folder_rules.read_folders(text)
    except ValueError as error:
        raise ValidationError(str(error)) from error


SUBMODULES = ("git", "submodule", "update", "--init", "--recursive")


class CheckoutFields(models.Model):
    """Columns of a project."""

    sparse_folders = models.TextField(
        "only these folders",
        blank=True,
        default="",
        db_default="",
        max_length=20_000,
        validators=[fit_folders],
        help_text="One a line, such as services/shop. New worktrees hold them and the files above "
        "them; the rest of the repository is left out, for agents and for checks. Empty: everything.",
    )

    has_submodules = models.BooleanField(
        "submodules are checked out",
        default=False,
        db_default=False,
        help_text="In every new worktree, before the set-up commands, with their own submodules. Off: "
        "their folders are empty. The token of the project is sent to its own server alone.",
    )

    class Meta:
        abstract = True

    @property
    def checked_out_folders(self) -> tuple[str, ...]:
        """What new worktrees hold beside the files at the top; none: everything."""
        return folder_rules.read_folders(self.sparse_folders)
