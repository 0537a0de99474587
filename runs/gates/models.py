"""Passes of a run's work through the gates of its project, and what was proven in each."""

from __future__ import annotations

from pathlib import Path

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from runs.agents.models import EFFORT_CHARACTERS, MODEL_CHARACTERS, AgentProfile
from runs.core.paths import Paths
from runs.core.states import AttemptState, Claim, Gate, JobKind
from runs.jobs.models import Job
from runs.lifecycle.models import Run
from runs.projects.models import Project
from runs.spending import day_rules
from runs.spending.day_rules import Used

_OPEN = Q(state=AttemptState.RUNNING)


class Reviewer(models.Model):
    """Who reviews a project's work: an agent in one-shot mode, or any command that answers findings."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="reviewers")
    position = models.PositiveIntegerField(default=0)
    name = models.CharField(max_length=60)
    is_on = models.BooleanField(default=True)
    profile = models.ForeignKey(AgentProfile, null=True, blank=True, on_delete=models.CASCADE)
    command = models.JSONField(
        default=list, blank=True, help_text="An argument list; empty where an agent reviews."
    )
    model = models.CharField(
        max_length=MODEL_CHARACTERS,
        blank=True,
        default="",
        help_text="Empty: the agent's own default.",
    )
    effort = models.CharField(
        max_length=EFFORT_CHARACTERS,
        blank=True,
        default="",
        help_text="Empty: the agent's own default.",
    )
    instructions = models.TextField(blank=True, default="", max_length=10_000)

    class Meta:
        ordering = ["project", "position", "id"]
        constraints = [
            models.UniqueConstraint(name="reviewer_name_once", fields=["project", "name"]),
        ]

    def __str__(self) -> str:
        return self.name


class AttemptQuerySet(models.QuerySet["Attempt"]):
    def running(self) -> AttemptQuerySet:
        """Those that nobody has ended."""
        return self.filter(_OPEN)

    def with_retries(self) -> AttemptQuerySet:
        """Add `retries` and `restarts`: how often a gate was asked again, and its worker was gone."""
        job = Job.objects.of(JobKind.ATTEMPT, OuterRef("pk")).order_by("-pk")
        return self.annotate(
            retries=Coalesce(Subquery(job.values("troubles")[:1]), "troubles"),
            restarts=Coalesce(Subquery(job.values("losses")[:1]), "losses"),
        )


class Attempt(models.Model):
    """One pass of a run's work through evidence, clean room and review.

    `gate` is the one that it is at. `decisions` holds one entry a gate, as `rules.Decision` has it.
    `results` are the commands of the clean room, as those of a validation. What it is about
    (`context`, `spec`) is fixed when it begins.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="gate_attempts")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="gate_attempts")
    host = models.CharField(max_length=100)
    number = models.PositiveIntegerField(validators=[MinValueValidator(1)])
    state = models.CharField(
        max_length=10,
        choices=[(s.value, s.value) for s in AttemptState],
        default=AttemptState.RUNNING,
    )
    gate = models.CharField(
        max_length=10, choices=[(g.value, g.words) for g in Gate], default=Gate.EVIDENCE
    )
    claim = models.CharField(max_length=10, choices=[(c.value, c.value) for c in Claim])
    rationale = models.TextField(blank=True, default="", max_length=2000)
    resolution = models.CharField(
        max_length=10, blank=True, default="", help_text="success, no_change or obsolete."
    )
    commit = models.CharField(max_length=64, blank=True, default="")
    tree = models.CharField(max_length=64, blank=True, default="")
    base = models.CharField(max_length=64, blank=True, default="")
    evidence_from = models.JSONField(
        default=dict, blank=True, help_text="Where the record of the attempt before ended."
    )
    spec = models.JSONField(default=dict)
    context = models.JSONField(default=dict)
    evidence = models.JSONField(default=list)
    results = models.JSONField(default=list)
    coverage = models.JSONField(null=True, blank=True)
    artifacts = models.JSONField(default=dict)
    decisions = models.JSONField(default=list)
    step = models.JSONField(
        default=dict, blank=True, help_text="What follows from it: the next step, and why."
    )
    reason = models.TextField(blank=True, default="")
    mark = models.CharField(max_length=64, editable=False)
    # Up to `troubles` known to workers of the version before alone, since its job says it now. The
    # next version drops them.
    runner = models.CharField(max_length=200, blank=True, default="")
    beat_at = models.DateTimeField(null=True, blank=True)
    not_before = models.DateTimeField(null=True, blank=True)
    losses = models.PositiveIntegerField(default=0)
    troubles = models.PositiveIntegerField(default=0)
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    settled_at = models.DateTimeField(null=True, blank=True)
    warning = models.TextField(blank=True, default="")

    objects = AttemptQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(name="attempt_number_once", fields=["run", "number"]),
            models.UniqueConstraint(name="attempt_one_running", fields=["run"], condition=_OPEN),
            models.CheckConstraint(
                name="attempt_ended_iff_moment",
                condition=Q(_OPEN, ended_at=None) | ~_OPEN & Q(ended_at__isnull=False),
            ),
            models.CheckConstraint(
                name="attempt_state_known",
                condition=Q(state__in=[s.value for s in AttemptState]),
            ),
            models.CheckConstraint(name="attempt_from_one", condition=Q(number__gte=1)),
        ]
        indexes = [
            models.Index(name="attempt_open", fields=["host"], condition=Q(settled_at=None)),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of run {self.run_id} ({self.state})"

    @property
    def is_running(self) -> bool:
        return self.state == AttemptState.RUNNING

    def folder(self, paths: Paths) -> Path:
        """The private folder that holds what its commands and reviewers printed."""
        return paths.gates / str(self.pk)


class Review(models.Model):
    """What one reviewer said of one attempt. `findings` are checked against the schema."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="reviews")
    reviewer = models.CharField(max_length=60)
    state = models.CharField(
        max_length=12, help_text="running, passed, failed, unavailable or error."
    )
    reason = models.TextField(blank=True, default="")
    findings = models.JSONField(default=list)
    seconds = models.FloatField(default=0.0)
    log_name = models.CharField(max_length=100, blank=True, default="")
    spent_days = models.JSONField(
        default=list, blank=True, help_text="What its program told that it used, as that of a run."
    )
    spent_on = models.DateField(null=True, blank=True)
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(name="review_once", fields=["attempt", "reviewer"]),
        ]
        indexes = [
            models.Index(
                name="review_spent", fields=["spent_on"], condition=Q(spent_on__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.reviewer}: {self.state}"

    @property
    def is_waiting(self) -> bool:
        """Whether it is asked later; the reason says when. One that is asked now has no reason yet."""
        return self.state == "running" and bool(self.reason)

    @property
    def used(self) -> Used:
        """Tokens and money, as far as its program told them."""
        return next(iter(day_rules.read(self.spent_days).values()), Used())


class CheckRun(models.Model):
    """Commands that labsite ran in an agent's worktree because the agent asked (`labctl check`).

    `tree` is the tree of all files, committed or not, that git does not ignore; empty when it
    changed meanwhile or could not be read.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="check_runs")
    host = models.CharField(max_length=100)
    commands = models.JSONField(default=list)
    results = models.JSONField(default=list)
    tree = models.CharField(max_length=64, blank=True, default="")
    is_running = models.BooleanField(default=True)
    trouble = models.TextField(blank=True, default="")
    mark = models.CharField(max_length=64, editable=False)
    # Known to workers of the version before alone, since its job says it now. The next version drops them.
    runner = models.CharField(max_length=200, blank=True, default="")
    beat_at = models.DateTimeField(null=True, blank=True)
    asked_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                name="check_run_one_at_a_time", fields=["run"], condition=Q(is_running=True)
            ),
        ]
        indexes = [
            models.Index(name="check_run_open", fields=["host"], condition=Q(is_running=True)),
        ]

    def __str__(self) -> str:
        return f"check {self.pk} of run {self.run_id}"

    def folder(self, paths: Paths) -> Path:
        """The private folder that holds what its commands printed."""
        return paths.gates / f"check-{self.pk}"
