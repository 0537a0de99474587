"""Hosts that run sessions, the lease of the one judge on each, and what each tick did."""

from __future__ import annotations

from django.db import models


class Host(models.Model):
    """A machine whose tmux runs sessions. Its lease keeps ticks from overlapping.

    `lease_number` grows with each lease; every compare-and-set of a tick checks it, so that a
    tick which lost its lease can no longer write.
    """

    name = models.CharField(max_length=100, unique=True)
    lease_owner = models.CharField(max_length=200, blank=True)
    lease_number = models.PositiveBigIntegerField(default=0)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    session_cap = models.PositiveIntegerField(
        null=True, blank=True, help_text="Most live sessions on this host; empty: the general cap."
    )
    last_tick_at = models.DateTimeField(null=True, blank=True)
    last_error = models.TextField(blank=True)
    clock_boot = models.CharField(
        max_length=60, blank=True, help_text="The boot in which the clocks were compared last."
    )
    clock_apart = models.FloatField(
        default=0, help_text="Seconds between the clock and one that nobody can set."
    )
    lived = models.FloatField(
        default=0, help_text="Seconds that labsite has worked here, by the clock nobody can set."
    )
    lived_at = models.FloatField(
        null=True, blank=True, help_text="Where that clock stood when they were counted last."
    )
    looked = models.PositiveBigIntegerField(
        default=0,
        help_text="Grows whenever a look changed what a page shows without a timeline entry.",
    )

    def __str__(self) -> str:
        return self.name


class Due(models.Model):
    """When an activity of a host is due next."""

    host = models.ForeignKey(Host, on_delete=models.CASCADE)
    activity = models.CharField(max_length=40)
    next_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["host", "activity"], name="due_once_per_activity")
        ]

    def __str__(self) -> str:
        return f"{self.activity} on {self.host_id} at {self.next_at:%H:%M:%S}"


class Tick(models.Model):
    """One execution of the periodic task that did something, or was skipped."""

    host = models.ForeignKey(Host, on_delete=models.CASCADE)
    at = models.DateTimeField(db_index=True)
    milliseconds = models.PositiveIntegerField(default=0)
    was_skipped = models.BooleanField(default=False)
    runs = models.PositiveIntegerField(default=0)
    ended = models.PositiveIntegerField(default=0)
    started = models.PositiveIntegerField(default=0)
    error = models.TextField(blank=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"tick at {self.at:%Y-%m-%d %H:%M:%S}"
