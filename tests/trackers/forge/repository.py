"""Real git behind a repository of a double: its branches are heads, its merges are merges."""

from __future__ import annotations

from pathlib import Path

from tests.repositories import git
from tests.trackers.forge.repo import Repo
from tests.trackers.forge.state import Item


def back(repo: Repo, origin: Path) -> None:
    """Let a bare repository say where branches are, and carry out merges."""

    def tip(branch: str) -> str | None:
        return git(origin, "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}") or None

    def merge(item: Item, style: str) -> str:
        """A squash or a merge commit, made without a worktree."""
        assert item.pull is not None
        base, head = f"refs/heads/{item.pull.base}", f"refs/heads/{item.pull.head}"
        before = git(origin, "rev-parse", base)
        tree = git(origin, "merge-tree", "--write-tree", base, head).splitlines()[0]
        parents = ["-p", before] if style == "squash" else ["-p", before, "-p", head]
        commit = git(origin, "commit-tree", tree, *parents, "-m", f"{item.title} (#{item.number})")
        git(origin, "update-ref", base, commit, before)
        return commit

    repo.tip, repo.on_merge = tip, merge
