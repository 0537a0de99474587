"""Validations of a watch session, and the agents that try to mend what failed in one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.db import models
from django.db.models import Q

from runs.core.paths import Paths
from runs.core.states import ValidationState, ValidationStep
from runs.projects.models import Project
from runs.validation.rules import FixEnd
from runs.watch.models import WatchSession

_OPEN = Q(state=ValidationState.RUNNING)


class ValidationQuerySet(models.QuerySet["Validation"]):
    def running(self) -> ValidationQuerySet:
        """Those that nobody has ended."""
        return self.filter(_OPEN)

    def unsettled(self) -> ValidationQuerySet:
        """Ended ones of which a process, a worktree or a fixer may be left."""
        return self.exclude(_OPEN).filter(settled_at=None)


class Validation(models.Model):
    """One validation: what was put together, which commands ran on it, and what they gave.

    `attempt` is 0 for what the session's runs delivered, n for what the n-th fixer made of it.
    `commands`, `minutes` and `most_fixers` are the project's as they were when it began. Of
    `results` each is one command of one attempt; the last one may still run.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="validations")
    session = models.ForeignKey(
        WatchSession, null=True, blank=True, on_delete=models.CASCADE, related_name="validations"
    )
    run = models.ForeignKey(
        "runs.Run",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="validations",
        help_text="The run that it is about, where no watch session started it.",
    )
    number = models.PositiveIntegerField()
    count = models.PositiveIntegerField(help_text="Completions of the session when it began.")
    asked_by = models.CharField(
        max_length=150,
        blank=True,
        default="",
        db_default="",
        help_text="The person who asked for it again; empty: labsite began it by itself.",
    )
    host = models.CharField(max_length=100)
    state = models.CharField(
        max_length=20,
        choices=[(s.value, s.value) for s in ValidationState],
        default=ValidationState.RUNNING,
    )
    step = models.CharField(
        max_length=10,
        choices=[(s.value, s.value) for s in ValidationStep],
        default=ValidationStep.CHECKING,
    )
    reason = models.TextField(blank=True, help_text="What the results mean, in a sentence.")
    attempt = models.PositiveIntegerField(default=0)
    commands = models.JSONField(default=list)
    minutes = models.PositiveIntegerField()
    most_fixers = models.PositiveIntegerField()
    results = models.JSONField(default=list)
    spec = models.JSONField(
        null=True, blank=True, help_text="The run-level spec of a project with gates; else none."
    )
    coverage = models.JSONField(null=True, blank=True, help_text="What was measured, and needed.")
    e2e = models.JSONField(null=True, blank=True, help_text="How the run on the fixture went.")
    artifacts = models.JSONField(default=dict, blank=True)
    follow_up_key = models.CharField(
        max_length=60, blank=True, default="", help_text="The issue that was made of its failure."
    )
    base = models.CharField(max_length=64, blank=True)
    commit = models.CharField(max_length=64, blank=True)
    merged = models.JSONField(default=list, help_text="What was put together, in this order.")
    left_out = models.JSONField(default=list, help_text="What was not, and why.")
    failure = models.JSONField(default=dict, help_text="What a fixer has to mend.")
    mark = models.CharField(max_length=64, editable=False)
    runner = models.CharField(max_length=200, blank=True, help_text="The process that works on it.")
    beat_at = models.DateTimeField(null=True, blank=True)
    not_before = models.DateTimeField(null=True, blank=True)
    losses = models.PositiveIntegerField(
        default=0, help_text="How often its process was gone in this attempt."
    )
    troubles = models.PositiveIntegerField(
        default=0, help_text="How often it could not be prepared, in this attempt."
    )
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    settled_at = models.DateTimeField(null=True, blank=True)
    warning = models.TextField(blank=True)

    objects = ValidationQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(name="validation_number_once", fields=["session", "number"]),
            models.UniqueConstraint(
                name="validation_count_once",
                fields=["session", "count"],
                condition=Q(asked_by=""),
            ),
            models.UniqueConstraint(
                name="validation_one_running", fields=["session"], condition=_OPEN
            ),
            models.UniqueConstraint(
                name="validation_of_run_one_running", fields=["run"], condition=_OPEN
            ),
            models.UniqueConstraint(name="validation_of_run_number_once", fields=["run", "number"]),
            models.CheckConstraint(
                name="validation_of_session_or_run",
                condition=Q(session=None, run__isnull=False) | Q(session__isnull=False, run=None),
            ),
            models.CheckConstraint(
                name="validation_ended_iff_moment",
                condition=Q(_OPEN, ended_at=None) | ~_OPEN & Q(ended_at__isnull=False),
            ),
            models.CheckConstraint(
                name="validation_settled_only_after_end", condition=Q(settled_at=None) | ~_OPEN
            ),
            models.CheckConstraint(
                name="validation_state_known",
                condition=Q(state__in=[s.value for s in ValidationState]),
            ),
        ]
        indexes = [
            models.Index(name="validation_open", fields=["host"], condition=Q(settled_at=None)),
        ]

    def __str__(self) -> str:
        whose = f"session {self.session_id}" if self.session_id else f"run {self.run_id}"
        return f"validation {self.number} of {whose} ({self.state})"

    @property
    def is_running(self) -> bool:
        return self.state == ValidationState.RUNNING

    @property
    def current(self) -> list[Mapping[str, Any]]:
        """The results of the attempt that is checked now, else of the last one that was checked.

        A fixer that ended without a commit left nothing to check: what failed before stands.
        """
        checked = [one["attempt"] for one in self.results]
        shown = self.attempt if self.is_checking or not checked else max(checked)
        return [one for one in self.results if one["attempt"] == shown]

    @property
    def is_checking(self) -> bool:
        """Whether its commands run now, or are about to."""
        return self.is_running and self.step == ValidationStep.CHECKING

    def folder(self, paths: Paths) -> Path:
        """The private folder that holds what its commands printed."""
        return paths.validations / str(self.pk)


class Fixer(models.Model):
    """One agent that tries to mend a failed validation. It is no run: it counts as nothing."""

    validation = models.ForeignKey(Validation, on_delete=models.CASCADE, related_name="fixers")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="fixers")
    host = models.CharField(max_length=100)
    number = models.PositiveIntegerField()
    session = models.CharField(max_length=200)
    branch = models.CharField(max_length=80)
    mark = models.CharField(max_length=64, editable=False)
    worktree = models.CharField(max_length=500, blank=True)
    fork_point = models.CharField(max_length=64)
    agent = models.CharField(max_length=60, blank=True)
    prompt = models.TextField(blank=True)
    launcher = models.CharField(max_length=200, blank=True)
    asked_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    settled_at = models.DateTimeField(null=True, blank=True)
    end = models.CharField(
        max_length=40, blank=True, default="", choices=[(e.value, e.value) for e in FixEnd]
    )
    head = models.CharField(max_length=64, blank=True)
    commits = models.PositiveIntegerField(default=0)
    accepted_at = models.DateTimeField(
        null=True, blank=True, help_text="When the validation passed on its branch."
    )
    checked_at = models.DateTimeField(
        null=True, blank=True, help_text="When the commands had judged what it delivered."
    )
    told_at = models.DateTimeField(
        null=True, blank=True, help_text="When it was said where an accepted fix is."
    )
    is_pushed = models.BooleanField(default=False)
    warning = models.TextField(blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(name="fixer_number_once", fields=["validation", "number"]),
            models.UniqueConstraint(
                name="fixer_one_at_a_time", fields=["validation"], condition=Q(ended_at=None)
            ),
            models.CheckConstraint(
                name="fixer_ended_iff_end",
                condition=Q(end="", ended_at=None) | ~Q(end="") & Q(ended_at__isnull=False),
            ),
            models.CheckConstraint(
                name="fixer_settled_only_after_end", condition=Q(settled_at=None) | ~Q(end="")
            ),
        ]
        indexes = [
            models.Index(name="fixer_open", fields=["host"], condition=Q(settled_at=None)),
        ]

    def __str__(self) -> str:
        return f"{self.session} ({self.end or 'working'})"

    @property
    def is_open(self) -> bool:
        return not self.end
