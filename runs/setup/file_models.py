"""Files that a project brings along into each new worktree, such as `.env`."""

from __future__ import annotations

from django.db import models

from runs.core.encrypted import SecretField
from runs.projects.models import Project
from runs.setup.file_rules import MOST_CHARACTERS


class ProjectFile(models.Model):
    """One file: where it lies in the worktree, and its content, which is never shown again.

    `size` is that of the content in bytes, so that no list has to decrypt it.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="files")
    path = models.CharField(max_length=MOST_CHARACTERS)
    content = SecretField(editable=False)
    size = models.PositiveIntegerField()
    changed_at = models.DateTimeField()
    changed_by = models.CharField(max_length=150)

    class Meta:
        ordering = ["path"]
        constraints = [
            models.UniqueConstraint(fields=["project", "path"], name="one_project_file_a_path")
        ]

    def __str__(self) -> str:
        return self.path


class RetiredFile(models.Model):
    """What a file held before it was replaced or removed, at `changed_at`.

    A worktree of before may hold it still, so that it is kept out of what labsite shows. It is
    never shown or placed, and goes when no such worktree can be left.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="retired_files")
    content = SecretField(editable=False)
    changed_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.project_id} until {self.changed_at}"
