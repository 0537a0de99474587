"""Task groups: one piece of work cut into tasks, and who works on them."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q

from runs.groups.terms import NAME_CHARACTERS, SUBJECT_CHARACTERS, TaskStatus, is_name
from runs.lifecycle.models import Run
from runs.projects.models import Project


def fit_name(text: str) -> None:
    """Refuse a name that could not be a folder or a file (RUNE-74)."""
    if not is_name(text):
        raise ValidationError(
            f"A name has letters, digits, _ and - only, and at most {NAME_CHARACTERS} of them."
        )


class TaskGroup(models.Model):
    """Tasks under one name. Of one name a project has one open group; closed ones are history."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="task_groups")
    name = models.CharField(max_length=NAME_CHARACTERS, validators=[fit_name])
    preset = models.CharField(max_length=20, default="work", help_text="How it is watched.")
    output_dir = models.CharField(
        max_length=500,
        blank=True,
        help_text="Where workers leave their output files, in the worktree of their run.",
    )
    signals = models.BooleanField(
        default=False, help_text="Whether its signal folder was set up (RUNE-64, RUNE-65)."
    )
    made_at = models.DateTimeField()
    made_by = models.CharField(max_length=150, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                name="group_one_open_per_name",
                fields=["project", "name"],
                condition=Q(closed_at=None),
            ),
        ]
        indexes = [models.Index(name="group_history", fields=["project", "-id"])]

    def __str__(self) -> str:
        return f"{self.name} of {self.project_id}"

    @property
    def is_open(self) -> bool:
        return self.closed_at is None


class Worker(models.Model):
    """Somebody who works on tasks of a group: a run's agent, a named one inside it, or a person."""

    group = models.ForeignKey(TaskGroup, on_delete=models.CASCADE, related_name="workers")
    name = models.CharField(max_length=NAME_CHARACTERS, validators=[fit_name])
    run = models.ForeignKey(
        Run, null=True, blank=True, on_delete=models.SET_NULL, related_name="group_workers"
    )
    output_file = models.CharField(
        max_length=200, blank=True, help_text="What it has to leave before a task counts (RUNE-87)."
    )
    sent_back_at = models.DateTimeField(null=True, blank=True)
    sent_back_why = models.TextField(blank=True, help_text="Why its last task was not accepted.")

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(name="worker_one_per_name", fields=["group", "name"]),
        ]

    def __str__(self) -> str:
        return self.name


class Task(models.Model):
    """One task. Whoever changes its status names the status and the claim that it was read in.

    One with an issue follows the runs of that issue: nobody claims it, and nobody gives it back.
    """

    group = models.ForeignKey(TaskGroup, on_delete=models.CASCADE, related_name="tasks")
    key = models.CharField(max_length=NAME_CHARACTERS, validators=[fit_name])
    subject = models.CharField(max_length=SUBJECT_CHARACTERS)
    description = models.TextField(blank=True)
    status = models.CharField(
        max_length=12,
        choices=[(s.value, s.words) for s in TaskStatus],
        default=TaskStatus.PENDING,
    )
    owner = models.CharField(max_length=NAME_CHARACTERS, blank=True)
    claim = models.PositiveIntegerField(default=0, help_text="How often it was taken.")
    claimed_at = models.DateTimeField(null=True, blank=True)
    completed_at = models.DateTimeField(null=True, blank=True)
    issue_key = models.CharField(
        max_length=60, blank=True, help_text="The issue whose runs it follows."
    )
    run = models.ForeignKey(
        Run, null=True, blank=True, on_delete=models.SET_NULL, related_name="group_tasks"
    )
    note = models.TextField(blank=True, help_text="What was said when it was last handed back.")

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(name="task_one_per_key", fields=["group", "key"]),
            models.UniqueConstraint(
                name="task_one_per_issue",
                fields=["group", "issue_key"],
                condition=~Q(issue_key=""),
            ),
            models.CheckConstraint(
                name="task_status_fits",
                condition=(
                    Q(status=TaskStatus.PENDING, owner="", claimed_at=None, completed_at=None)
                    | Q(status=TaskStatus.IN_PROGRESS, completed_at=None, claimed_at__isnull=False)
                    & ~Q(owner="")
                    | Q(status=TaskStatus.COMPLETED, completed_at__isnull=False)
                ),
            ),
        ]
        indexes = [
            models.Index(name="task_of_issue", fields=["issue_key"], condition=~Q(issue_key="")),
        ]

    def __str__(self) -> str:
        return f"#{self.key} {self.subject}"
