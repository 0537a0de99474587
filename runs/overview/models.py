"""When each person was last here."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Visit(models.Model):
    """The last time that somebody was here, on whatever device, to within a few minutes."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="visit"
    )
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.user_id} at {self.seen_at:%Y-%m-%d %H:%M}"
