"""Hosts that run sessions, the lease of the one judge on each, and what each tick did."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import DurationField, ExpressionWrapper, F
from django.db.models.functions import Now


class HostQuerySet(models.QuerySet["Host"]):
    def with_silence(self) -> HostQuerySet:
        """By name, with how long each has been silent (`silent_for`).

        By the clock of the database alone, so that it does not matter whose clock is wrong.
        """
        silent: Any = Now() - F("seen_at")
        wrapped = ExpressionWrapper(silent, output_field=DurationField())
        return self.annotate(silent_for=wrapped).order_by("name")


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
    machine = models.CharField(
        max_length=64,
        blank=True,
        default="",
        editable=False,
        help_text="The state folder that works under this name; no other one may.",
    )
    labels = models.JSONField(default=list, blank=True, help_text="What projects may ask for.")
    ssh_address = models.CharField(
        max_length=200,
        blank=True,
        default="",
        help_text="How people reach it by ssh, such as anna@gpu1.example.org.",
    )
    tmux_socket = models.CharField(
        max_length=500,
        blank=True,
        default="",
        editable=False,
        help_text="Where its tmux server listens, for whoever attaches to a session there.",
    )
    is_draining = models.BooleanField(
        default=False, help_text="It takes nothing new, and what runs there finishes."
    )
    removed_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField(
        null=True, blank=True, help_text="Its last sign of life, by the clock of the database."
    )
    silent_since = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="The last sign of life before a silence that people were told of; empty: it is heard.",
    )
    version = models.CharField(max_length=40, blank=True, default="")
    load = models.FloatField(null=True, blank=True, help_text="Load average of a minute.")
    cores = models.PositiveIntegerField(null=True, blank=True)
    disk_free_mb = models.PositiveIntegerField(null=True, blank=True)
    slots_used = models.PositiveIntegerField(default=0)
    warm = models.JSONField(
        default=list, blank=True, help_text="Projects (slugs) whose clone it has."
    )

    objects = HostQuerySet.as_manager()

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
