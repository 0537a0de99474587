"""What git fetches into a new worktree after its files: submodules and large files, with the token."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from runs.core.ports import Lab, SeamError
from runs.models import Project
from runs.projects import git_credentials
from runs.projects.checkout_fields import SUBMODULES

NO_LFS = (
    "git-lfs is not installed or not set up here (git lfs install), so that large files are short "
    "texts in this worktree"
)


def fetch_large_files(lab: Lab, project: Project, path: Path) -> str:
    """Put what Git LFS keeps elsewhere into a worktree; why not, where it is not installed.

    Raises SeamError.
    """
    if not lab.repos.lacks_large_files(path):
        return ""
    if not lab.repos.has_lfs():
        return NO_LFS
    where = git_credentials.place(project)
    token = git_credentials.of_git(lab, project) if where else ""
    try:
        lab.repos.fetch_large_files(path, project.checked_out_folders, token, where)
    except SeamError as error:
        raise SeamError(f"large files could not be fetched: {error}") from error
    return ""


def environment_of(lab: Lab, project: Project, argv: Sequence[str]) -> dict[str, str]:
    """What a command of the set-up gets: the token of git for that which fetches submodules alone.

    Raises SeamError.
    """
    return git_credentials.environment(lab, project) if tuple(argv) == SUBMODULES else {}
