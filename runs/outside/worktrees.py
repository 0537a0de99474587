"""What git says about one worktree: clean or not, what changed, how far it came."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from runs.domain.ports import Change, Progress, SeamError
from runs.outside.git import QUICK, GitRepos, failed

_UNTRACKED_LIMIT = 200
_COMMIT = re.compile(r"[0-9a-f]{40,64}")


class GitWorktrees(GitRepos):
    """`Repos` complete: reference repositories and worktrees."""

    def is_dirty(self, path: Path) -> bool:
        return bool(self._git.ask(path, "status", "--porcelain", timeout=QUICK).strip())

    def glimpse(self, repo: Path, branch: str) -> str | None:
        """A loose ref is one small file; a packed one reads as None, which only costs a later look."""
        try:
            text = (repo / "refs" / "heads" / branch).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            return None
        return text if _COMMIT.fullmatch(text) else None

    def subject(self, path: Path, commit: str) -> str:
        return self._git.ask(path, "log", "-1", "--format=%s", commit, "--", timeout=QUICK).strip()

    def progress(self, path: Path, fork_point: str) -> Progress:
        head = self._git.ask(path, "rev-parse", "HEAD", timeout=QUICK).strip()
        count = self._git.ask(path, "rev-list", "--count", f"{fork_point}..HEAD", timeout=QUICK)
        return Progress(head, int(count))

    def changes(self, path: Path, fork_point: str) -> Sequence[Change]:
        numbers = self._git.ask(
            path,
            "diff",
            "--no-ext-diff",
            "--no-renames",
            "--numstat",
            "-z",
            fork_point,
            "--",
            timeout=QUICK,
        )
        kinds = self._kinds(path, fork_point)
        found = []
        for entry in numbers.split("\0"):
            if entry:
                added, removed, name = entry.split("\t", 2)
                found.append(Change(name, kinds.get(name, "M"), _number(added), _number(removed)))
        return [*found, *(Change(name, "?", None, None) for name in self._untracked(path))]

    def patch(self, path: Path, fork_point: str, limit: int) -> str:
        done = self._git(
            path,
            "diff",
            "--no-ext-diff",
            "--no-color",
            "--no-renames",
            fork_point,
            "--",
            timeout=QUICK,
        )
        if done.status != 0:
            raise failed("diff", done)
        return done.stdout if len(done.stdout) <= limit else _cut(done.stdout, limit)

    def _kinds(self, path: Path, fork_point: str) -> dict[str, str]:
        text = self._git.ask(
            path,
            "diff",
            "--no-ext-diff",
            "--no-renames",
            "--name-status",
            "-z",
            fork_point,
            "--",
            timeout=QUICK,
        )
        words = [word for word in text.split("\0") if word]
        if len(words) % 2:
            raise SeamError("git diff gave a list that was not understood")
        return dict(zip(words[1::2], words[::2], strict=True))

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
