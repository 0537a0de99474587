"""Worktrees with a git repository of their own, as they will be made (decision 49)."""

from __future__ import annotations

import shutil
from pathlib import Path

from runs.machine.worktrees import GitWorktrees


class OwnRepositories(GitWorktrees):
    """Makes each new worktree with a repository of its own; all else is as in the product."""

    makes_own = True


def cut(tree: Path) -> None:
    """Take away what makes a folder a worktree, as an agent may."""
    own = tree / ".git"
    if own.is_dir():
        shutil.rmtree(own)
    else:
        own.unlink()
