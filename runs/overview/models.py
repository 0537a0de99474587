"""When each person was last here."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Visit(models.Model):
    """The last time that somebody was here, on whatever device, to within a few minutes.

    `away_since` and `away_until` say what they are still to be told of: the time before their
    present visit, until they put it away. It is kept here and not in a browser's session, which
    two requests at once write over each other.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="visit"
    )
    seen_at = models.DateTimeField()
    away_since = models.DateTimeField(null=True, blank=True)
    away_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(away_since=None, away_until=None)
                | models.Q(away_since__isnull=False, away_until__isnull=False),
                name="visit_away_whole",
            )
        ]

    def __str__(self) -> str:
        return f"{self.user_id} at {self.seen_at:%Y-%m-%d %H:%M}"
