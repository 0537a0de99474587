"""What labsite knows of the checks that a forge ran on a delivered pull request."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from runs.followups.red_check_rules import WatchState
from runs.lifecycle.models import Run

_LOOKED_AT = (WatchState.WATCHED, WatchState.RED)


class PullChecksQuerySet(models.QuerySet["PullChecks"]):
    def due(self, host: str, now: object) -> PullChecksQuerySet:
        """Those that are to be looked at now; a follow-up starts where the run's work is.

        Not before the run is cleaned up: until then nobody can go on with it.
        """
        return self.filter(next_at__lte=now, run__host=host, run__settled_at__isnull=False)

    def looked_at(self) -> PullChecksQuerySet:
        """Those that a look may change."""
        return self.filter(state__in=_LOOKED_AT)


class PullChecks(models.Model):
    """The checks of the pull request of one run that delivered, while labsite looks at them."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="pull_checks")
    state = models.CharField(
        max_length=10,
        choices=[(one.value, one.value) for one in WatchState],
        default=WatchState.WATCHED,
    )
    head = models.CharField(max_length=64, blank=True, default="")
    head_at = models.DateTimeField(help_text="Since when its head has been this commit.")
    next_at = models.DateTimeField(
        null=True, blank=True, help_text="When to look next; empty when nobody looks any more."
    )
    failed = models.JSONField(default=list, blank=True, help_text="Names of the failed checks.")
    reason = models.CharField(max_length=500, blank=True, default="")

    objects = PullChecksQuerySet.as_manager()

    class Meta:
        verbose_name = "checks of a pull request"
        verbose_name_plural = "checks of pull requests"
        constraints = [
            models.CheckConstraint(
                name="pull_checks_watched_have_a_time",
                condition=Q(state=WatchState.WATCHED, next_at__isnull=False)
                | Q(state=WatchState.RED)
                | ~Q(state__in=_LOOKED_AT) & Q(next_at__isnull=True),
            )
        ]
        indexes = [
            models.Index(
                name="pull_checks_due", fields=["next_at"], condition=Q(next_at__isnull=False)
            ),
            models.Index(name="pull_checks_red", fields=["run"], condition=Q(state=WatchState.RED)),
        ]

    def __str__(self) -> str:
        return f"checks of the pull request of run {self.run_id}"
