"""Composite workflows: phases over task groups, one after the other."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

from runs.groups.models import FAR, Monitor, TaskGroup
from runs.groups.terms import NAME_CHARACTERS, MonitorState
from runs.projects.models import Project
from runs.workflows import rules
from runs.workflows.rules import PhaseState, WorkflowState

WORKFLOW_CHARACTERS, PHASE_CHARACTERS = 80, 40
_OPEN = (WorkflowState.RUNNING, WorkflowState.HELD)
_NOT_ENDED = (PhaseState.WAITING, PhaseState.RUNNING)


class WorkflowQuerySet(models.QuerySet["Workflow"]):
    def running(self) -> WorkflowQuerySet:
        """Those that are stepped; a held one is not."""
        return self.filter(state=WorkflowState.RUNNING)

    def held(self) -> WorkflowQuerySet:
        """Those that wait for a person."""
        return self.filter(state=WorkflowState.HELD)

    def due(self, host: str, now: datetime) -> WorkflowQuerySet:
        """Those of a host to step now; a time too far ahead is wrong."""
        late = Q(look_at__lte=now) | Q(look_at__gt=now + FAR * 2)
        return self.running().filter(late, host=host)


class Workflow(models.Model):
    """One composite workflow. `runs.workflows.stepper` steps it, `runs.workflows.acts` asks of it.

    Its ceiling counts from `counted_from`, which a hold moves on: who waits for a person uses up
    nothing. Whoever stores a step names the `version` that it read.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="workflows")
    name = models.CharField(max_length=WORKFLOW_CHARACTERS)
    host = models.CharField(max_length=100)
    state = models.CharField(
        max_length=12,
        choices=[(s.value, s.value) for s in WorkflowState],
        default=WorkflowState.RUNNING,
    )
    ceiling_seconds = models.PositiveIntegerField(
        "ceiling (seconds)",
        default=round(rules.CEILING.total_seconds()),
        validators=[MinValueValidator(1)],
    )
    started_at = models.DateTimeField()
    started_by = models.CharField(max_length=150, blank=True)
    counted_from = models.DateTimeField()
    held_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.CharField(max_length=150, blank=True)
    note = models.TextField(blank=True, help_text="Why it is held, or how it ended.")
    look_at = models.DateTimeField(null=True, blank=True)
    version = models.PositiveIntegerField(default=0)

    objects = WorkflowQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                name="workflow_stands_in_one_way",
                condition=(
                    Q(state=WorkflowState.RUNNING, ended_at=None, held_at=None)
                    & Q(look_at__isnull=False)
                    | Q(state=WorkflowState.HELD, ended_at=None, look_at=None)
                    & Q(held_at__isnull=False)
                    | ~Q(state__in=_OPEN) & Q(ended_at__isnull=False, look_at=None, held_at=None)
                ),
            ),
            models.CheckConstraint(
                name="workflow_ceiling_at_least_one", condition=Q(ceiling_seconds__gte=1)
            ),
        ]
        indexes = [
            models.Index(
                name="workflow_due",
                fields=["host", "look_at"],
                condition=Q(state=WorkflowState.RUNNING),
            ),
            models.Index(name="workflow_history", fields=["project", "-id"]),
            models.Index(
                name="workflow_held", fields=["project"], condition=Q(state=WorkflowState.HELD)
            ),
        ]

    def __str__(self) -> str:
        return f"workflow {self.pk} of {self.project_id} ({self.state})"

    @property
    def is_open(self) -> bool:
        return self.state in _OPEN

    @property
    def ceiling(self) -> timedelta:
        return timedelta(seconds=self.ceiling_seconds)


class WorkflowPhase(models.Model):
    """One phase: a group, what its monitor may take, and the net around it."""

    workflow = models.ForeignKey(Workflow, on_delete=models.CASCADE, related_name="phases")
    number = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=PHASE_CHARACTERS)
    group = models.ForeignKey(
        TaskGroup, null=True, on_delete=models.SET_NULL, related_name="workflow_phases"
    )
    group_name = models.CharField(max_length=NAME_CHARACTERS)
    timeout_seconds = models.PositiveIntegerField(
        null=True, blank=True, help_text="What its monitor may take; empty: no timeout."
    )
    net_seconds = models.PositiveIntegerField(validators=[MinValueValidator(1)])
    state = models.CharField(
        max_length=12,
        choices=[(s.value, s.value) for s in PhaseState],
        default=PhaseState.WAITING,
    )
    began_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    monitor = models.ForeignKey(
        Monitor, null=True, blank=True, on_delete=models.SET_NULL, related_name="workflow_phases"
    )
    completed = models.JSONField(default=list)
    incomplete = models.JSONField(default=list)
    note = models.TextField(blank=True)

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(name="phase_one_per_number", fields=["workflow", "number"]),
            models.UniqueConstraint(name="phase_one_per_name", fields=["workflow", "name"]),
            models.UniqueConstraint(
                name="phase_one_running",
                fields=["workflow"],
                condition=Q(state=PhaseState.RUNNING),
            ),
            models.CheckConstraint(
                name="phase_ended_iff_not_open",
                condition=(
                    Q(state=PhaseState.WAITING, began_at=None, ended_at=None)
                    | Q(state=PhaseState.RUNNING, began_at__isnull=False, ended_at=None)
                    | ~Q(state__in=_NOT_ENDED) & Q(ended_at__isnull=False)
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"phase {self.number} of workflow {self.workflow_id} ({self.state})"

    @property
    def timeout(self) -> timedelta | None:
        return None if self.timeout_seconds is None else timedelta(seconds=self.timeout_seconds)

    @property
    def net(self) -> timedelta:
        return timedelta(seconds=self.net_seconds)

    @property
    def is_timed_out(self) -> bool:
        return self.state == PhaseState.TIMED_OUT

    def seen(self, now: datetime) -> rules.Phase:
        """The phase as the rule takes it."""
        return rules.Phase(
            PhaseState(self.state),
            self.net,
            rules.ZERO if self.began_at is None else now - self.began_at,
            None if self.monitor is None else MonitorState(self.monitor.state),
        )
