"""Start requests: a click that waits for the launch pass. A row, since a message can be lost."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from runs.domain.states import AnswerCode
from runs.models.project import Project
from runs.models.run import Run


class StartRequest(models.Model):
    """One press of "Start AFK run" and the answer that it got."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    wanted_key = models.CharField(
        max_length=60, blank=True, help_text="Empty: the lowest claimable issue."
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

    class Meta:
        indexes = [models.Index(name="start_pending", fields=["at"], condition=Q(answer=""))]

    def __str__(self) -> str:
        return f"start of {self.project_id} by {self.by}: {self.answer or 'pending'}"
