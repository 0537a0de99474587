"""Sessions that people drive: an agent, a worktree and a branch of their own, and no issue."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from runs.core.states import PersonState
from runs.projects.models import Project


class ManualSession(models.Model):
    """One session that a person started and drives. Nobody judges it; Stop ends it."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="manual_sessions")
    host = models.CharField(max_length=100)
    label = models.CharField(max_length=60)
    session = models.CharField(max_length=200)
    branch = models.CharField(max_length=80)
    mark = models.CharField(max_length=64, editable=False)
    worktree = models.CharField(max_length=500, blank=True)
    fork_point = models.CharField(max_length=64, blank=True)
    agent = models.CharField(max_length=60, blank=True)
    by = models.CharField(max_length=150)
    state = models.CharField(
        max_length=10,
        choices=[(s.value, s.value) for s in PersonState],
        default=PersonState.STARTING,
    )
    launcher = models.CharField(max_length=200, blank=True)
    asked_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    settled_at = models.DateTimeField(null=True, blank=True)
    is_torn_down = models.BooleanField(
        default=False,
        help_text="Ended by a person, so the guarded rule is applied to what is left.",
    )
    warning = models.TextField(blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(name="manual_label_once", fields=["project", "label"]),
            models.UniqueConstraint(name="manual_session_once", fields=["host", "session"]),
            models.CheckConstraint(
                name="manual_ended_iff_moment",
                condition=Q(state=PersonState.ENDED, ended_at__isnull=False)
                | ~Q(state=PersonState.ENDED) & Q(ended_at=None),
            ),
            models.CheckConstraint(
                name="manual_settled_only_after_end",
                condition=Q(settled_at=None) | Q(state=PersonState.ENDED),
            ),
        ]
        indexes = [
            models.Index(name="manual_open", fields=["host"], condition=Q(settled_at=None)),
        ]

    def __str__(self) -> str:
        return f"{self.session} ({self.state})"

    @property
    def is_open(self) -> bool:
        return self.state != PersonState.ENDED
