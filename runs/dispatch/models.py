"""Start requests: a click that waits for the launch pass. A row, since a message can be lost."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from runs.core.states import AnswerCode
from runs.lifecycle.models import Run
from runs.projects.models import Project


class StartRequest(models.Model):
    """One press of "Start AFK run", or of what goes on with a run, and the answer that it got."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    wanted_key = models.CharField(
        max_length=60, blank=True, help_text="Empty: the lowest claimable issue."
    )
    continues = models.ForeignKey(
        Run,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="The ended run to go on with; empty: a run from scratch.",
    )
    takes_for = models.ForeignKey(
        Run,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="The loop that takes a further issue; empty: a run of its own.",
    )
    without = models.JSONField(
        default=list, blank=True, help_text="The issues that this loop has had before."
    )
    follow_up = models.TextField(blank=True, default="")
    wants_changes = models.BooleanField(
        default=False, help_text="Whether the text asks for changes of its open pull request."
    )
    by = models.CharField(max_length=150)
    at = models.DateTimeField()
    answer = models.CharField(
        max_length=20,
        blank=True,
        default="",
        choices=[(c.value, c.value or "pending") for c in AnswerCode],
    )
    text = models.TextField(blank=True)
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.SET_NULL)
    loop_options = models.JSONField(
        default=dict, blank=True, help_text="What the loop of this run alone does otherwise."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="start_one_pending_a_run",
                fields=["continues"],
                condition=Q(answer="", continues__isnull=False),
            ),
            models.UniqueConstraint(
                name="start_one_pending_a_loop",
                fields=["takes_for"],
                condition=Q(answer="", takes_for__isnull=False),
            ),
        ]
        indexes = [models.Index(name="start_pending", fields=["at"], condition=Q(answer=""))]

    def __str__(self) -> str:
        return f"start of {self.project_id} by {self.by}: {self.answer or 'pending'}"


class StartWait(models.Model):
    """Why an issue is not started by itself for now: its starts failed, or a person stopped one.

    A person may start it all the same. It goes when a start of the issue works, and with Reset.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="start_waits")
    issue_key = models.CharField(max_length=60)
    failed = models.PositiveIntegerField(default=0, help_text="Starts in a row that failed.")
    failed_at = models.DateTimeField(null=True, blank=True)
    retry_at = models.DateTimeField(null=True, blank=True, help_text="No automatic start before.")
    stopped_by = models.CharField(
        max_length=150, blank=True, help_text="Who stopped it before its agent began."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(name="start_wait_one_an_issue", fields=["project", "issue_key"])
        ]

    def __str__(self) -> str:
        return f"wait of {self.project_id} #{self.issue_key}"
