"""Issues and pull requests that labsite stores itself. What people do to them is in `runs`."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from trackers.base import PullState, Side


class Root(models.Model):
    """One project's tracker. Issues and pull requests share one row of numbers."""

    name = models.CharField(max_length=60)
    next_number = models.PositiveIntegerField(default=1)

    def __str__(self) -> str:
        return self.name


class Label(models.Model):
    """A label of one tracker."""

    root = models.ForeignKey(Root, on_delete=models.CASCADE, related_name="labels")
    name = models.CharField(max_length=60)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["root", "name"], name="label_once_per_root")]

    def __str__(self) -> str:
        return self.name


class Issue(models.Model):
    """An issue with a Markdown body."""

    root = models.ForeignKey(Root, on_delete=models.CASCADE, related_name="issues")
    number = models.PositiveIntegerField()
    title = models.TextField()
    body = models.TextField(blank=True)
    author = models.CharField(max_length=150)
    is_open = models.BooleanField(default=True)
    labels = models.ManyToManyField(Label, blank=True, related_name="issues")
    labelled_by = models.JSONField(default=dict, help_text="Who set each label, by its name.")
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["root", "number"], name="issue_number_once_per_root")
        ]
        indexes = [
            models.Index(name="issue_open", fields=["root", "number"], condition=Q(is_open=True))
        ]

    def __str__(self) -> str:
        return f"#{self.number} {self.title[:60]}"


class IssueComment(models.Model):
    """A comment on an issue, by a person or by an agent."""

    issue = models.ForeignKey(Issue, on_delete=models.CASCADE, related_name="comments")
    author = models.CharField(max_length=150)
    body = models.TextField()
    at = models.DateTimeField()

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"comment on {self.issue_id} by {self.author}"


class PullRequest(models.Model):
    """A pull request: a pushed branch that asks to be merged.

    `merge_by`, `merge_at` and `merge_commit` tell who merged it, when, and what the base named
    then. On an open one they are written before the branch is moved: a merge that was interrupted
    is finished by whoever looks next.
    """

    root = models.ForeignKey(Root, on_delete=models.CASCADE, related_name="pulls")
    number = models.PositiveIntegerField()
    head = models.CharField(max_length=200)
    base = models.CharField(max_length=200)
    base_commit = models.CharField(max_length=64, blank=True, default="")
    head_commit = models.CharField(max_length=64, blank=True)
    title = models.TextField()
    body = models.TextField(blank=True)
    author = models.CharField(max_length=150)
    state = models.CharField(
        max_length=10, choices=[(s.value, s.value) for s in PullState], default=PullState.OPEN
    )
    merge_by = models.CharField(max_length=150, blank=True, default="")
    merge_at = models.DateTimeField(null=True, blank=True)
    merge_commit = models.CharField(max_length=64, blank=True, default="")
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["root", "number"], name="pull_number_once_per_root"),
            models.UniqueConstraint(
                fields=["root", "head"], condition=Q(state="open"), name="pull_one_open_per_head"
            ),
        ]
        # Each tick asks for the heads of live runs; without it that cost grows with history.
        # It also asks for merges that were interrupted, and the overview for those that wait.
        indexes = [
            models.Index(name="pull_of_head", fields=["root", "head"]),
            models.Index(
                name="pull_in_merge",
                fields=["merge_at"],
                condition=~Q(state="merged") & Q(merge_at__isnull=False),
            ),
            models.Index(name="pull_open", fields=["-created_at"], condition=Q(state="open")),
        ]

    def __str__(self) -> str:
        return f"#{self.number} {self.title[:60]}"


class PullComment(models.Model):
    """A comment on a pull request, or on one line of it as it stood at a commit.

    `quote` is that line's text, so that the comment can be understood when the line is gone.
    """

    pull = models.ForeignKey(PullRequest, on_delete=models.CASCADE, related_name="comments")
    author = models.CharField(max_length=150)
    body = models.TextField()
    at = models.DateTimeField()
    path = models.TextField(blank=True, default="")
    line = models.PositiveIntegerField(null=True, blank=True)
    side = models.CharField(max_length=3, blank=True, default="")
    commit = models.CharField(max_length=64, blank=True, default="")
    quote = models.TextField(blank=True, default="")

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                name="pull_comment_on_a_whole_place_or_none",
                condition=(
                    Q(path="", line=None, side="", commit="")
                    | Q(line__gte=1, side__in=[side.value for side in Side])
                    & ~Q(path="")
                    & ~Q(commit="")
                ),
            )
        ]

    def __str__(self) -> str:
        return f"comment on {self.pull_id} by {self.author}"
