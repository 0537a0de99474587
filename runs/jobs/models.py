"""Jobs: long work that survives the process that does it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Q

from runs.core.states import JobKind
from runs.projects.models import Project

_UNFINISHED = Q(finished_at=None)
_FREE = Q(owner="", beat_at=None)


class JobQuerySet(models.QuerySet["Job"]):
    def unfinished(self) -> JobQuerySet:
        """Those that are still to be done."""
        return self.filter(_UNFINISHED)

    def of(self, kind: JobKind, subject: Any) -> JobQuerySet:
        """Those of one row, or of the rows of an outer query."""
        return self.filter(kind=kind, subject=subject)

    def claimable(self, host: str, now: datetime) -> JobQuerySet:
        """Those of a host that nobody works on and whose time has come and not passed."""
        is_due = Q(not_before=None) | Q(not_before__lte=now)
        is_in_time = Q(deadline=None) | Q(deadline__gt=now)
        return self.unfinished().filter(is_due, is_in_time, host=host, owner="")


class Job(models.Model):
    """Long work on one row of another table, `subject`, by at most one process at a time.

    `token` is a fencing token: it grows with each claim, and whoever holds an older one may not
    write any more. A finished job stays, since pages tell how often it was tried.
    """

    kind = models.CharField(max_length=30, choices=[(one.value, one.value) for one in JobKind])
    subject = models.BigIntegerField()
    project = models.ForeignKey(Project, null=True, blank=True, on_delete=models.CASCADE)
    host = models.CharField(max_length=100)
    owner = models.CharField(
        max_length=200, blank=True, default="", help_text="The process that works on it."
    )
    beat_at = models.DateTimeField(null=True, blank=True)
    token = models.PositiveBigIntegerField(default=0)
    not_before = models.DateTimeField(null=True, blank=True)
    deadline = models.DateTimeField(null=True, blank=True)
    losses = models.PositiveIntegerField(
        default=0, help_text="How often the process that worked on it was gone."
    )
    troubles = models.PositiveIntegerField(
        default=0, help_text="How often in a row it could not be done."
    )
    requested_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = JobQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                name="job_one_unfinished", fields=["kind", "subject"], condition=_UNFINISHED
            ),
            models.CheckConstraint(
                name="job_owner_iff_heartbeat",
                condition=_FREE | ~Q(owner="") & Q(beat_at__isnull=False),
            ),
            models.CheckConstraint(
                name="job_finished_has_no_owner", condition=_UNFINISHED | Q(owner="")
            ),
        ]
        indexes = [
            models.Index(name="job_open", fields=["host"], condition=_UNFINISHED),
            models.Index(name="job_subject", fields=["subject", "kind"]),
        ]

    def __str__(self) -> str:
        return f"job {self.pk}: {self.kind} {self.subject}"
