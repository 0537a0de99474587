"""Task groups, tasks and workers; monitors, their checkpoints, and presets of their options."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

from runs.groups.monitor_rules import Memory, Seen
from runs.groups.terms import (
    NAME_CHARACTERS,
    SHIPPED,
    SUBJECT_CHARACTERS,
    Decision,
    MonitorState,
    Options,
    Preset,
    Result,
    TaskStatus,
    is_name,
)
from runs.lifecycle.models import Run
from runs.projects.models import Project


def fit_name(text: str) -> None:
    """Refuse a name that could not be a folder or a file."""
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


# A time too far ahead is wrong: the clock was set meanwhile.
FAR = timedelta(hours=1)
# A year. What is longer is a slip of the finger, and none at all is another answer.
MOST_SECONDS = 31_536_000


class MonitorOptions(models.Model):
    """The options of a monitor, in seconds. Empty: no timeout, and tasks are never given back."""

    label = models.CharField(max_length=80, default="Monitor")
    poll_seconds = models.PositiveIntegerField(
        "poll interval (seconds)", default=30, validators=[MinValueValidator(1)]
    )
    stale_seconds = models.PositiveIntegerField(
        "stalled after (seconds)", default=300, validators=[MinValueValidator(1)]
    )
    timeout_seconds = models.PositiveIntegerField(
        "timeout (seconds)",
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Empty: none at all.",
    )
    release_seconds = models.PositiveIntegerField(
        "given back after (seconds)",
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Empty: a stalled task is only warned of.",
    )
    has_checkpoints = models.BooleanField("reports checkpoints", default=False)

    class Meta:
        abstract = True

    def clean(self) -> None:
        """Refuse a time that nobody means, by the name of its field."""
        times = ("poll_seconds", "stale_seconds", "timeout_seconds", "release_seconds")
        long = [name for name in times if (getattr(self, name) or 0) > MOST_SECONDS]
        if long:
            said = f"At most {MOST_SECONDS} seconds, which is a year."
            raise ValidationError(dict.fromkeys(long, said))

    @property
    def options(self) -> Options:
        return Options(
            label=self.label,
            poll=timedelta(seconds=self.poll_seconds),
            stale=timedelta(seconds=self.stale_seconds),
            timeout=_length(self.timeout_seconds),
            release=_length(self.release_seconds),
            has_checkpoints=self.has_checkpoints,
        )


class PresetQuerySet(models.QuerySet["MonitorPreset"]):
    def complete(self) -> PresetQuerySet:
        """All presets; a shipped one that is missing is there again."""
        there = set(self.filter(name__in=SHIPPED).values_list("name", flat=True))
        lacking = [_shipped(name, SHIPPED[name]) for name in SHIPPED if name not in there]
        if lacking:
            self.bulk_create(lacking, ignore_conflicts=True)
        return self.all()


class MonitorPreset(MonitorOptions):
    """What a kind of work is watched with; an admin may tune it."""

    name = models.CharField(max_length=20, unique=True)
    is_unique = models.BooleanField(
        "findings are unique",
        default=False,
        help_text="Each task's findings are its worker's own, so none is ever given back.",
    )

    objects = PresetQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                name="preset_unique_is_never_released",
                condition=Q(is_unique=False) | Q(release_seconds=None),
                violation_error_message=(
                    "Findings that are unique to a worker are never given back: leave it empty."
                ),
            ),
            models.CheckConstraint(
                name="preset_numbers_are_positive",
                condition=Q(poll_seconds__gte=1, stale_seconds__gte=1),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class MonitorQuerySet(models.QuerySet["Monitor"]):
    def running(self) -> MonitorQuerySet:
        """Monitors that have not ended."""
        return self.filter(state=MonitorState.RUNNING)

    def due(self, host: str, now: datetime) -> MonitorQuerySet:
        """Those of a host with something to look at; a time too far ahead is wrong."""
        late = Q(look_at__lte=now) | Q(look_at__gt=now + FAR)
        return self.running().filter(late, host=host)


class Monitor(MonitorOptions):
    """One watch over a group, to its end. `runs.groups.monitors` passes, and ends it once.

    `look_at` is the earlier of `pass_at` (by listing) and `check_at` (its signal folder; empty on
    the slow path). Whoever stores a pass names the `version` that it read.
    """

    group = models.ForeignKey(TaskGroup, on_delete=models.CASCADE, related_name="monitors")
    preset = models.CharField(max_length=20, blank=True)
    host = models.CharField(max_length=100)
    expected = models.PositiveIntegerField()
    state = models.CharField(
        max_length=12,
        choices=[(s.value, s.value) for s in MonitorState],
        default=MonitorState.RUNNING,
    )
    started_at = models.DateTimeField()
    started_by = models.CharField(max_length=150, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.CharField(max_length=150, blank=True)
    look_at = models.DateTimeField(null=True, blank=True)
    pass_at = models.DateTimeField(null=True, blank=True)
    check_at = models.DateTimeField(null=True, blank=True)
    is_fast = models.BooleanField(default=False, help_text="Watches its signal folder.")
    checks = models.PositiveIntegerField(default=0, help_text="Checks of the signal folder so far.")
    milestone = models.PositiveSmallIntegerField(default=0)
    checkpoint_count = models.PositiveIntegerField(default=0)
    seen = models.JSONField(default=dict, help_text="Per task: claim, seconds after the start.")
    reported = models.JSONField(default=list)
    error = models.TextField(blank=True)
    completed = models.JSONField(default=list)
    incomplete = models.JSONField(default=list)
    timed_out = models.BooleanField(default=False)
    version = models.PositiveIntegerField(default=0)

    objects = MonitorQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                name="monitor_one_running_per_group",
                fields=["group"],
                condition=Q(state=MonitorState.RUNNING),
            ),
            models.CheckConstraint(
                name="monitor_ended_iff_not_running",
                condition=(
                    Q(state=MonitorState.RUNNING, ended_at=None, look_at__isnull=False)
                    | ~Q(state=MonitorState.RUNNING) & Q(ended_at__isnull=False, look_at=None)
                ),
            ),
            models.CheckConstraint(
                name="monitor_error_has_no_result",
                condition=~Q(state=MonitorState.ERROR) | Q(completed=[], incomplete=[]),
            ),
        ]
        indexes = [
            models.Index(
                name="monitor_due",
                fields=["host", "look_at"],
                condition=Q(state=MonitorState.RUNNING),
            ),
            # Somebody who comes back is told what ended meanwhile.
            models.Index(
                name="monitor_ended", fields=["-ended_at"], condition=Q(ended_at__isnull=False)
            ),
            # A failed one needs a person, and the overview must not read through all that ended.
            models.Index(
                name="monitor_failed", fields=["group"], condition=Q(state=MonitorState.ERROR)
            ),
        ]

    def __str__(self) -> str:
        return f"monitor {self.pk} of group {self.group_id} ({self.state})"

    @property
    def is_running(self) -> bool:
        return self.state == MonitorState.RUNNING

    @property
    def memory(self) -> Memory:
        """What it remembers, as the rule takes it."""
        return Memory(
            self.milestone,
            self.checkpoint_count,
            {key: Seen(claim, timedelta(seconds=s)) for key, (claim, s) in self.seen.items()},
            frozenset(self.reported),
        )

    @property
    def result(self) -> Result | None:
        """Completed, incomplete, timed out: exactly what an end tells; None when it tells nothing."""
        if self.state not in (MonitorState.COMPLETE, MonitorState.TIMED_OUT):
            return None
        return Result(tuple(self.completed), tuple(self.incomplete), self.timed_out)


def columns(memory: Memory) -> Mapping[str, Any]:
    """A monitor's memory as its columns keep it."""
    return {
        "milestone": memory.milestone,
        "checkpoint_count": memory.checkpoints,
        "seen": {key: [s.claim, s.since.total_seconds()] for key, s in memory.seen.items()},
        "reported": sorted(memory.reported),
    }


class Checkpoint(models.Model):
    """What a monitor told at a milestone or at a new blocker."""

    monitor = models.ForeignKey(Monitor, on_delete=models.CASCADE, related_name="all_checkpoints")
    at = models.DateTimeField()
    n = models.PositiveIntegerField()
    label = models.CharField(max_length=80)
    completed = models.PositiveIntegerField()
    total = models.PositiveIntegerField()
    percentage = models.PositiveSmallIntegerField()
    active = models.JSONField(default=list)
    blockers = models.JSONField(default=list)
    decision = models.CharField(max_length=11, choices=[(d.value, d.value) for d in Decision])

    class Meta:
        ordering = ["-n"]
        constraints = [
            models.UniqueConstraint(name="checkpoint_one_per_number", fields=["monitor", "n"]),
            models.CheckConstraint(
                name="checkpoint_decision_known",
                condition=Q(decision__in=[d.value for d in Decision]),
            ),
        ]
        indexes = [
            models.Index(
                name="checkpoint_investigate",
                fields=["-at"],
                condition=Q(decision=Decision.INVESTIGATE),
            ),
        ]

    def __str__(self) -> str:
        return f"checkpoint {self.n} of monitor {self.monitor_id}"


def _length(seconds: int | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)


def _seconds(length: timedelta | None) -> int | None:
    return None if length is None else round(length.total_seconds())


def _shipped(name: str, preset: Preset) -> MonitorPreset:
    options = preset.options
    return MonitorPreset(
        name=name,
        label=options.label,
        poll_seconds=round(options.poll.total_seconds()),
        stale_seconds=round(options.stale.total_seconds()),
        timeout_seconds=_seconds(options.timeout),
        release_seconds=_seconds(options.release),
        has_checkpoints=options.has_checkpoints,
        is_unique=preset.is_unique,
    )
