"""When each person was last here, and what they do not want to see of what needs them."""

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


class HiddenNeed(models.Model):
    """Something that needs a person and that they have dismissed or snoozed, for themselves alone.

    It is back on their list at `until` (never, where it was dismissed), or as soon as `facts` are
    others than they saw.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="hidden_needs"
    )
    need = models.CharField(max_length=80)
    facts = models.CharField(max_length=12)
    until = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "need"], name="hidden_need_once_a_person"),
            models.CheckConstraint(
                condition=~models.Q(need="") & ~models.Q(facts=""), name="hidden_need_named"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.need} of {self.user_id}"
