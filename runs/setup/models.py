"""What a run keeps of its project's commands around it."""

from __future__ import annotations

from django.db import models


class CommandResults(models.Model):
    """Columns of a run, one for each list of commands (`runs/setup/commands.py:Stage`)."""

    setup = models.JSONField(
        null=True,
        blank=True,
        editable=False,
        help_text="What the set-up commands gave in its new worktree; empty: none was run.",
    )
    setup_again = models.JSONField(
        null=True,
        blank=True,
        editable=False,
        help_text="What the commands before its last start in a worktree that was there gave.",
    )
    setup_after = models.JSONField(
        null=True,
        blank=True,
        editable=False,
        help_text="What the commands after it gave; empty: none was asked for.",
    )
    setup_removal = models.JSONField(
        null=True,
        blank=True,
        editable=False,
        help_text="What the commands before the removal of its worktree gave; empty as above.",
    )

    class Meta:
        abstract = True
