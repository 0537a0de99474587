"""The timeline. Each row is written in the transaction of the change it tells: the outbox."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from runs.core.states import NoticeKind
from runs.groups.models import TaskGroup
from runs.lifecycle.models import Run
from runs.projects.models import Project
from runs.watch.models import WatchSession

OUTAGE_KINDS = ("project.recovered", "project.warned", "run.held", "run.resumed")


def kinds() -> list[tuple[str, str]]:
    """The words of `kind`; asked for each time, so that a new word needs no migration."""
    return [(kind.value, kind.value) for kind in NoticeKind]


# What a monitor tells of a group at each pass, mostly the same. No run has such entries. One kind alone:
# with several SQLite would not use the index.
UNFOLDED = Q(kind=NoticeKind.MONITOR_PROGRESS, times=None, group__isnull=False)


class Notice(models.Model):
    """One thing worth telling. Pages render it; pushes only say that there is a new one."""

    at = models.DateTimeField()
    kind = models.CharField(max_length=30, choices=kinds)
    project = models.ForeignKey(Project, null=True, blank=True, on_delete=models.CASCADE)
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.CASCADE)
    group = models.ForeignKey(
        TaskGroup, null=True, blank=True, on_delete=models.CASCADE, db_index=False
    )
    watch = models.ForeignKey(
        WatchSession,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        db_index=False,
        help_text="The watch session that it is part of.",
    )
    issue_key = models.CharField(max_length=60, blank=True)
    text = models.TextField()
    by = models.CharField(
        max_length=150, blank=True, help_text="The user who did it; empty: the product."
    )
    outcome = models.CharField(max_length=16, blank=True)
    is_news = models.BooleanField(
        default=True, help_text="Told on pages of many runs; steps of one run are not."
    )
    times = models.PositiveIntegerField(
        null=True, blank=True, help_text="How many equal passes of a monitor it stands for."
    )
    since = models.DateTimeField(
        null=True, blank=True, help_text="When the first of these was told; `at` is the last."
    )

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(name="notice_of_run", fields=["run", "-id"]),
            models.Index(name="notice_of_project", fields=["project", "-id"]),
            models.Index(
                name="notice_of_group", fields=["group", "-id"], condition=Q(group__isnull=False)
            ),
            models.Index(
                name="notice_of_watch", fields=["watch", "-id"], condition=Q(watch__isnull=False)
            ),
            models.Index(name="notice_unfolded", fields=["group", "id"], condition=UNFOLDED),
            # A busy product writes many steps between two pieces of news.
            models.Index(name="notice_news", fields=["-id"], condition=Q(is_news=True)),
            models.Index(
                name="notice_news_of_project",
                fields=["project", "-id"],
                condition=Q(is_news=True),
            ),
            models.Index(
                name="notice_pause",
                fields=["-at"],
                condition=Q(kind__in=("auto.paused", "agent.held")),
            ),
            # When a tracker or an agent's account could not be used, for whoever was away.
            models.Index(name="notice_outage", fields=["at"], condition=Q(kind__in=OUTAGE_KINDS)),
            # What people did, for the audit: by time, and by each thing that it is narrowed by.
            models.Index(name="notice_act", fields=["-at", "-id"], condition=~Q(by="")),
            models.Index(name="notice_act_by", fields=["by", "-at", "-id"], condition=~Q(by="")),
            models.Index(
                name="notice_act_kind", fields=["kind", "-at", "-id"], condition=~Q(by="")
            ),
            models.Index(
                name="notice_act_project", fields=["project", "-at", "-id"], condition=~Q(by="")
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.text[:60]}"
