"""A setting that says who commits what agents write."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import models

from runs.core import naming

UNFIT = "Write a name and an address, such as: Anna Berg <anna@example.org>"


def committer_field(help_text: str) -> models.CharField[str, str]:
    """Return a column for “Name <address>”; empty: nobody was chosen."""
    return models.CharField(
        "who commits",
        max_length=205,
        blank=True,
        default="",
        db_default="",
        validators=[check_committer],
        help_text=help_text,
    )


def check_committer(text: str) -> None:
    """Raise ValidationError for what git could not take for a person."""
    try:
        naming.parse_committer(text)
    except ValueError as error:
        raise ValidationError(UNFIT) from error
