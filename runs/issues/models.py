"""What is being written on trackers elsewhere just now, so that the same words go there once."""

from __future__ import annotations

from django.db import models

from runs.projects.models import Project


class Sent(models.Model):
    """One writing that is under way; gone when it is over. Its maker may have died."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64)
    begun_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "digest"], name="sent_one_at_a_time")
        ]

    def __str__(self) -> str:
        return f"{self.project_id}: {self.digest[:8]}"
