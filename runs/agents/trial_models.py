"""Trials of agents: one start in a scratch repository, told step by step."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from runs.agents.models import AgentProfile
from runs.agents.trial_rules import OPEN, TrialState


class AgentTrial(models.Model):
    """One trial of an agent's profile, from the press to its end."""

    profile = models.ForeignKey(AgentProfile, on_delete=models.CASCADE)
    by = models.CharField(max_length=150)
    mark = models.CharField(max_length=64)
    state = models.CharField(
        max_length=10, choices=[(s.value, s.value) for s in TrialState], default=TrialState.WAITING
    )
    process = models.CharField(max_length=100, blank=True, default="")
    is_stop_wanted = models.BooleanField(default=False)
    steps = models.JSONField(default=list)
    screen = models.TextField(blank=True, default="")
    note = models.CharField(max_length=500, blank=True, default="")
    asked_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    deadline = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                name="trial_one_open_per_agent", fields=["profile"], condition=Q(state__in=OPEN)
            ),
            models.CheckConstraint(
                name="trial_ended_iff_over",
                condition=(
                    Q(state__in=OPEN, ended_at=None)
                    | ~Q(state__in=OPEN) & Q(ended_at__isnull=False)
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"trial {self.pk} of {self.profile_id} ({self.state})"

    @property
    def session(self) -> str:
        """Its tmux session; no project's, so that it takes no slot."""
        return f"trial-{self.pk}"

    @property
    def is_over(self) -> bool:
        return TrialState(self.state).is_over
