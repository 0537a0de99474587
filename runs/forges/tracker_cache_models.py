"""What was last heard from a project's tracker, so that pages show it without asking anybody."""

from __future__ import annotations

from django.db import models


class Seen(models.Model):
    """Columns of a project. Hints for pages; nothing is started or ended by them.

    `queue_seen` holds `[key, title]` of at most thirty ready issues in the tracker's order,
    `held_seen` why some of them could not start when automatic work counted them last, by key,
    `pulls_seen` holds `[number, head, title, url]` of open pull requests of managed branches,
    `pulls_closed` those of ended runs that somebody closed without merging.
    """

    queue_seen = models.JSONField(default=list, blank=True, editable=False)
    queue_count = models.PositiveIntegerField(
        null=True, blank=True, editable=False, help_text="Ready issues at the last look."
    )
    held_seen = models.JSONField(default=dict, blank=True, editable=False)
    queue_seen_at = models.DateTimeField(null=True, blank=True, editable=False)
    queue_asked_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="When the ready queue was last asked for."
    )
    asked_every = models.PositiveIntegerField(
        null=True, blank=True, editable=False, help_text="Seconds between two such questions."
    )
    asked_why = models.CharField(
        max_length=200, blank=True, default="", editable=False, help_text="Why so seldom."
    )
    pulls_seen = models.JSONField(default=list, blank=True, editable=False)
    pulls_seen_at = models.DateTimeField(null=True, blank=True, editable=False)
    pulls_closed = models.JSONField(default=list, blank=True, editable=False)
    pulls_asked_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="When pull requests were last asked for."
    )
    changed_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="When asking last found a change."
    )
    hook_since = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="When its webhook got its secret."
    )
    hooked_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="The last webhook that was accepted."
    )
    issues_hooked_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="The last webhook that told of issues."
    )
    pulls_hooked_at = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="The last webhook that told of pull requests.",
    )
    watched_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="When a page of it was last open."
    )

    class Meta:
        abstract = True
