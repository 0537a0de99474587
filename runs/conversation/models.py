"""Which runs' records are still to be kept."""

from __future__ import annotations

from django.db import models

from runs.lifecycle.models import Run


class RecordToKeep(models.Model):
    """A settled run whose agent's records were not copied yet; gone once that is done."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="+")
    asked_at = models.DateTimeField()
    begun_at = models.DateTimeField(
        null=True, blank=True, help_text="When somebody took it up last; it may have died since."
    )

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"records of run {self.run_id}"
