"""Watch sessions: stored periods of automatic work on a project, with counters and an exit code."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models
from django.db.models import F, Q

from runs.projects.models import Project
from runs.watch.session import Phase, Reason, Request, Validation

# A session that waits for an event is looked at once an hour at the latest.
FAR = timedelta(hours=1)


class WatchSessionQuerySet(models.QuerySet["WatchSession"]):
    def open(self) -> WatchSessionQuerySet:
        """Sessions that have not ended."""
        return self.filter(ended_at=None)

    def due(self, now: datetime) -> WatchSessionQuerySet:
        """Open sessions for which there may be something to do; a time too far ahead is wrong."""
        late = Q(look_at=None) | Q(look_at__lte=now) | Q(look_at__gt=now + FAR)
        return self.open().filter(late)

    def to_resume(self, now: datetime) -> WatchSessionQuerySet:
        """Sessions of a switch that is on, which a tracker ended that may be asked again now."""
        late = Q(retry_at=None) | Q(retry_at__lte=now) | Q(retry_at__gt=now + FAR)
        return self.filter(late, needs_resume=True, project__is_auto=True)


class WatchSession(models.Model):
    """One watch session. `runs.watch.stepper` steps it, `runs.watch.acts` asks things of it.

    Whatever changes it raises `version`; whoever stores a step names the version that it read.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="watch_sessions")
    is_auto = models.BooleanField(default=False, help_text="Opened by the switch of the project.")
    is_watching = models.BooleanField(default=False, help_text="Waits when nothing is ready.")
    limit = models.PositiveIntegerField(
        null=True, blank=True, help_text="Ends after so many issues; empty: no limit."
    )
    every = models.PositiveIntegerField(
        null=True, blank=True, help_text="Validates after so many issues; empty: at the end alone."
    )
    phase = models.CharField(
        max_length=30, choices=[(p.value, p.value) for p in Phase], default=Phase.WORKING
    )
    completed = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    unstarted = models.PositiveIntegerField(
        default=0, help_text="Issues that were claimed and whose agent could not start."
    )
    stopped = models.PositiveIntegerField(default=0, help_text="Runs that a person stopped.")
    threshold = models.PositiveIntegerField(
        null=True, blank=True, help_text="The count at which the next validation is due."
    )
    validated = models.PositiveIntegerField(
        default=0, help_text="The count at the last validation."
    )
    validation = models.CharField(
        max_length=10,
        blank=True,
        default="",
        choices=[(v.value, v.value or "none") for v in Validation],
        help_text="How the validation stands that this session waits for.",
    )
    poll_failures = models.PositiveIntegerField(default=0)
    next_poll_at = models.DateTimeField(null=True, blank=True)
    idle_noted_at = models.DateTimeField(null=True, blank=True)
    blocked = models.PositiveIntegerField(
        null=True, blank=True, help_text="Open issues that were not ready at the last idle notice."
    )
    held = models.CharField(
        max_length=300,
        blank=True,
        default="",
        help_text="Why nothing started at the last poll although something was ready.",
    )
    look_at = models.DateTimeField(
        null=True, blank=True, help_text="When it is stepped next; empty: now."
    )
    request = models.PositiveSmallIntegerField(
        choices=[(r.value, r.name.lower()) for r in Request], default=Request.NONE
    )
    asked_at = models.DateTimeField(null=True, blank=True)
    asked_by = models.CharField(max_length=150, blank=True)
    opened_by = models.CharField(
        max_length=150, blank=True, help_text="Empty: the product, because the switch is on."
    )
    opened_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(
        max_length=30,
        blank=True,
        default="",
        choices=[(r.value, r.value) for r in Reason],
        help_text="Why it is about to end, or has ended.",
    )
    code = models.PositiveSmallIntegerField(null=True, blank=True, help_text="The exit code.")
    seen_until = models.DateTimeField(
        null=True,
        blank=True,
        help_text="Until when it stands under Needs you; empty: until somebody has opened it.",
    )
    switches = models.JSONField(
        default=dict,
        blank=True,
        help_text="What this session turns off or sets of its project's checks: disabled, "
        "coverage_threshold, keep_worktrees.",
    )
    needs_resume = models.BooleanField(
        default=False, help_text="The switch is on, but its session ended; Resume opens another."
    )
    retry_at = models.DateTimeField(
        null=True, blank=True, help_text="When the tracker is asked again, to resume by itself."
    )
    retries = models.PositiveIntegerField(default=0, help_text="How often that was in vain.")
    version = models.PositiveIntegerField(default=0)

    objects = WatchSessionQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                name="watch_one_open_per_project", fields=["project"], condition=Q(ended_at=None)
            ),
            models.CheckConstraint(
                name="watch_ended_iff_code",
                condition=(
                    Q(ended_at=None, code=None) & ~Q(phase=Phase.ENDED)
                    | Q(ended_at__isnull=False, code__isnull=False, phase=Phase.ENDED)
                    & ~Q(reason="")
                ),
            ),
            models.CheckConstraint(
                name="watch_terms_at_least_one",
                condition=(Q(limit=None) | Q(limit__gte=1)) & (Q(every=None) | Q(every__gte=1)),
            ),
            models.CheckConstraint(
                name="watch_counts_fit",
                condition=Q(failed__lte=F("completed"), validated__lte=F("completed")),
            ),
            models.CheckConstraint(
                name="watch_request_known", condition=Q(request__in=[r.value for r in Request])
            ),
        ]
        indexes = [
            models.Index(name="watch_due", fields=["look_at"], condition=Q(ended_at=None)),
            models.Index(name="watch_resume", fields=["project"], condition=Q(needs_resume=True)),
            models.Index(name="watch_history", fields=["project", "-id"]),
            models.Index(name="watch_ended", fields=["-ended_at"]),
        ]

    def __str__(self) -> str:
        return f"watch session {self.pk} of {self.project_id} ({self.phase})"

    @property
    def is_open(self) -> bool:
        return self.ended_at is None

    def held_up(self, active: int) -> str:
        """Why it starts nothing although something is ready; nothing while runs of it work."""
        return self.held if self.phase == Phase.WORKING and not active else ""
