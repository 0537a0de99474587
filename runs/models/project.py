"""Projects: a git repository with its tracker, its settings and its runs."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F

from runs.domain.paths import Paths
from runs.domain.states import ProjectState
from runs.models.agent import AgentProfile
from runs.models.quick import QuickRows
from runs.models.secret import SecretField

if TYPE_CHECKING:
    from runs.models.settings import Settings


class ProjectQuerySet(models.QuerySet["Project"]):
    def usable(self) -> ProjectQuerySet:
        """Projects whose reference repository is complete."""
        return self.filter(state=ProjectState.READY)

    def hold(self, pk: int) -> None:
        """Let nobody else hold this project until the transaction ends.

        For a look and a write that belong together; on SQLite nobody else writes anyway.
        """
        list(self.select_for_update(no_key=True).filter(pk=pk).values_list("pk"))

    def recent_first(self) -> ProjectQuerySet:
        """Last opened on top, never-opened ones alphabetical below (LAB-69)."""
        return self.order_by(F("last_opened_at").desc(nulls_last=True), "name")


class Project(QuickRows):
    """A repository that runs are started for. `slug` is its part of session and folder names."""

    name = models.CharField(max_length=60, unique=True)
    slug = models.CharField(max_length=60, unique=True, editable=False)
    state = models.CharField(
        max_length=12,
        choices=[(s.value, s.value) for s in ProjectState],
        default=ProjectState.CLONING,
    )
    source = models.CharField(
        max_length=500, help_text="What the operator typed: a path or a clone URL."
    )
    url = models.CharField(max_length=500, blank=True, help_text="The URL that is origin.")
    is_hosted = models.BooleanField(
        default=False,
        help_text="The source has no origin; labsite keeps a bare repository as its origin.",
    )
    token = SecretField(blank=True, default="", editable=False)
    default_branch = models.CharField(max_length=200, blank=True)
    clone_progress = models.CharField(max_length=200, blank=True)
    clone_deadline = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True)
    warning = models.TextField(blank=True, help_text="What could not be read at the last look.")
    tracker = models.CharField(max_length=20, blank=True, default="builtin")
    tracker_root = models.CharField(max_length=200, blank=True)
    ready_label = models.CharField(max_length=60, default="ready-for-agent")
    agent = models.ForeignKey(AgentProfile, null=True, blank=True, on_delete=models.SET_NULL)
    run_budget_minutes = models.PositiveIntegerField(
        "run budget (minutes)",
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(10080)],
        help_text="Empty: the general run budget.",
    )
    disk_quota_mb = models.PositiveIntegerField(
        "disk quota (MB)",
        null=True,
        blank=True,
        help_text="Worktrees and repository together; warns at 80 %, removes nothing. "
        "Empty: the general quota; 0: none.",
    )
    parked = models.PositiveIntegerField(
        null=True, blank=True, editable=False, help_text="Parked branches as last counted."
    )
    disk_bytes = models.BigIntegerField(null=True, blank=True, editable=False)
    disk_warned = models.BooleanField(default=False, editable=False)
    swept_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_opened_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()

    objects = ProjectQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def budget(self, settings: Settings) -> timedelta:
        """The wall time that a run of this project may take (C-01)."""
        if self.run_budget_minutes:
            return timedelta(minutes=self.run_budget_minutes)
        return settings.run_budget

    def repo(self, paths: Paths) -> Path:
        """The bare reference repository; its heads are the claims."""
        return paths.repos / f"{self.slug}.git"

    def origin(self, paths: Paths) -> Path:
        """The product's own origin for a project whose path has none."""
        return paths.origins / f"{self.slug}.git"
