"""Worktrees as versions before made them: linked to the shared repository, with all of its state."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from runs.core.ports import SeamError
from runs.machine.worktrees import GitWorktrees
from tests.real import RealWorld


class LinkedWorktrees(GitWorktrees):
    """Makes claims as versions before did (decision 49); all else is as in the product."""

    makes_own = False


def make_linked(real: RealWorld) -> None:
    """Let every start make its worktree as versions before did."""
    real.repos = LinkedWorktrees(real.repos._git)
    real.lab = replace(real.lab, repos=real.repos)


def cut(tree: Path) -> None:
    """Take away what makes a folder a worktree, as an agent may."""
    own = tree / ".git"
    if own.is_dir():
        shutil.rmtree(own)
    else:
        own.unlink()


def refuse_removal(repo: Path, path: Path) -> None:
    """Stand in for `Repos.remove_worktree` where the system does not let a folder go. Raises SeamError."""
    raise SeamError(f"{path} could not be removed whole")
