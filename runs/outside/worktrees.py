"""What git says about one worktree: clean or not, what changed, how far it came."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from runs.domain.ports import Change, Progress, SeamError
from runs.outside.files import read_small
from runs.outside.git import QUICK, failed
from runs.outside.repos import GitRepos

REF_BYTES = 200
_UNTRACKED_LIMIT = 200
_COMMIT = re.compile(r"[0-9a-f]{40,64}")


class GitWorktrees(GitRepos):
    """`Repos` complete: reference repositories and worktrees."""

    def is_dirty(self, path: Path) -> bool:
        return bool(self._git.ask(path, "status", "--porcelain", timeout=QUICK).strip())

    def is_kept_by(self, path: Path, branch: str) -> bool:
        """Exit 0: the branch holds the worktree's head; 1: commits would be lost; else unknown."""
        done = self._git(
            path, "merge-base", "--is-ancestor", "HEAD", f"refs/heads/{branch}", timeout=QUICK
        )
        if done.status in (0, 1):
            return done.status == 0
        raise failed("merge-base", done)

    def glimpse(self, repo: Path, branch: str) -> str | None:
        """A loose ref is one small file; a packed one reads as None, which only costs a later look."""
        text = (read_small(repo / "refs" / "heads" / branch, REF_BYTES) or "").strip()
        return text if _COMMIT.fullmatch(text) else None

    def subject(self, path: Path, commit: str) -> str:
        return self._git.ask(path, "log", "-1", "--format=%s", commit, "--", timeout=QUICK).strip()

    def progress(self, path: Path, fork_point: str) -> Progress:
        head = self._git.ask(path, "rev-parse", "HEAD", timeout=QUICK).strip()
        count = self._git.ask(path, "rev-list", "--count", f"{fork_point}..HEAD", timeout=QUICK)
        return Progress(head, int(count))

    def changes(self, path: Path, fork_point: str, head: str = "") -> Sequence[Change]:
        numbers = self._diff(path, fork_point, head, "--numstat", "-z")
        words = [
            word
            for word in self._diff(path, fork_point, head, "--name-status", "-z").split("\0")
            if word
        ]
        if len(words) % 2:
            raise SeamError("git diff gave a list that was not understood")
        kinds = dict(zip(words[1::2], words[::2], strict=True))
        found = []
        for entry in numbers.split("\0"):
            if entry:
                added, removed, name = entry.split("\t", 2)
                found.append(Change(name, kinds.get(name, "M"), _number(added), _number(removed)))
        untracked = [] if head else self._untracked(path)
        return [*found, *(Change(name, "?", None, None) for name in untracked)]

    def patch(self, path: Path, fork_point: str, limit: int, head: str = "") -> str:
        text = self._diff(path, fork_point, head, "--no-color", limit=limit + 1)
        return text if len(text) <= limit else _cut(text, limit)

    def _diff(
        self, path: Path, fork_point: str, head: str, *flags: str, limit: int | None = None
    ) -> str:
        """One `git diff`: from the fork point to a commit, or to the working copy."""
        ends = (fork_point, head) if head else (fork_point,)
        careful = ("--no-ext-diff", "--no-textconv", "--no-renames")
        done = self._git(path, "diff", *careful, *flags, *ends, "--", timeout=QUICK, limit=limit)
        if done.status != 0:
            raise failed("diff", done)
        return done.stdout

    def _untracked(self, path: Path) -> list[str]:
        text = self._git.ask(
            path, "ls-files", "--others", "--exclude-standard", "-z", timeout=QUICK
        )
        return [name for name in text.split("\0") if name][:_UNTRACKED_LIMIT]


def _cut(patch: str, limit: int) -> str:
    """Whole files only, so that what is left is still a patch."""
    kept = patch[:limit]
    end = kept.rfind("\ndiff --git ")
    return kept[: end + 1] if end > 0 else ""


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None
