"""Which limits of a day were told to be reached, so that each is told once."""

from __future__ import annotations

from django.db import models


class ReachedLimit(models.Model):
    """A limit of a day that was reached: of one project, named by its id, or of all (0)."""

    day = models.DateField()
    scope = models.BigIntegerField(default=0)
    limit = models.CharField(max_length=20)
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="limit_told_once", fields=["day", "scope", "limit"])
        ]

    def __str__(self) -> str:
        return f"{self.limit} of {self.scope or 'all'} on {self.day}"
