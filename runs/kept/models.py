"""Kept work: what is parked in each project, as last counted, and what was rescued before a removal."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from runs.projects.models import Project


class Parked(models.Model):
    """A managed branch that nothing live owns, as last counted. Git is asked anew for its details."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="parked_rows")
    host = models.CharField(max_length=100, default="", help_text="The host whose git has it.")
    branch = models.CharField(max_length=200)
    tip = models.CharField(max_length=64)
    worktree = models.CharField(
        max_length=500, blank=True, help_text="The folder's name among the worktrees."
    )
    committed_at = models.DateTimeField()
    unpushed = models.PositiveIntegerField(
        null=True, blank=True, help_text="Commits that origin does not have; empty: unknown."
    )
    compared = models.CharField(
        max_length=130, blank=True, help_text="The two commits that the count is about."
    )
    bytes = models.BigIntegerField(
        null=True, blank=True, help_text="Size of its worktree; empty: not measured."
    )

    class Meta:
        ordering = ["-committed_at", "branch"]
        constraints = [
            models.UniqueConstraint(
                fields=["project", "host", "branch"], name="parked_once_per_host_and_branch"
            )
        ]

    def __str__(self) -> str:
        return f"{self.project_id} {self.branch}"


class Term(models.Model):
    """Until when something is kept, in seconds that labsite has lived through (`Host.lived`)."""

    name = models.CharField(max_length=300, unique=True)
    due = models.FloatField()

    def __str__(self) -> str:
        return self.name


class Discarding(models.Model):
    """A discard that the worker carries out, or one that failed, with the reason in `error`."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="discardings")
    branch = models.CharField(max_length=200)
    by = models.CharField(max_length=150, blank=True)
    asked_at = models.DateTimeField()
    process = models.CharField(max_length=100, blank=True, default="")
    total = models.BigIntegerField(default=0, help_text="Bytes to store; 0: not counted.")
    done = models.BigIntegerField(default=0, help_text="Bytes stored so far.")
    error = models.TextField(blank=True, default="")
    restarts = models.CharField(
        max_length=60,
        blank=True,
        default="",
        help_text="The issue of which a new run is asked for once this is done.",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "branch"], name="discarding_once_per_branch")
        ]

    def __str__(self) -> str:
        return f"{self.branch} of {self.project_id}"


class RescueQuerySet(models.QuerySet["Rescue"]):
    def waiting(self) -> RescueQuerySet:
        """Rescues that nobody has restored."""
        return self.filter(restored_at=None)


class Rescue(models.Model):
    """The state of a branch and its worktree at one moment, held by a ref.

    It goes when its term is over, and not before `expires_at`.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="rescues")
    ref = models.CharField(max_length=255)
    branch = models.CharField(max_length=200)
    why = models.CharField(max_length=200, help_text="What would have removed it.")
    by = models.CharField(max_length=150, blank=True)
    at = models.DateTimeField()
    expires_at = models.DateTimeField()
    commit = models.CharField(max_length=64)
    tip = models.CharField(max_length=64)
    head = models.CharField(max_length=64)
    index = models.CharField(max_length=64)
    files = models.CharField(max_length=64)
    is_dirty = models.BooleanField(default=False)
    had_worktree = models.BooleanField(default=False)
    restored_at = models.DateTimeField(null=True, blank=True)
    restored_as = models.CharField(max_length=200, blank=True)
    restored_by = models.CharField(max_length=150, blank=True)

    objects = RescueQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["project", "ref"], name="rescue_once_per_ref"),
            models.CheckConstraint(
                name="rescue_restored_as_something",
                condition=Q(restored_at=None, restored_as="")
                | Q(restored_at__isnull=False) & ~Q(restored_as=""),
            ),
        ]
        indexes = [models.Index(name="rescue_expiry", fields=["expires_at"])]

    def __str__(self) -> str:
        return f"{self.branch} of {self.project_id} at {self.at:%Y-%m-%d %H:%M}"
