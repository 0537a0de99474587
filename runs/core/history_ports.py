"""What git tells of commits: the facts, and the part of `Repos` that is asked for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # git knows it in every repository


@dataclass(frozen=True, slots=True)
class Change:
    """One changed file. `kind` is git's letter: A, D, M, R, T, or ? for an untracked one.

    `added` and `removed` are lines, None for a binary file. Modes and ids are those of git's raw
    listing; an id of zeros is a side that is not there, or not in the repository yet.
    `is_open`: some of it is in a worktree and in no commit.
    """

    path: str
    kind: str
    added: int | None
    removed: int | None
    old_path: str = ""
    old_mode: str = ""
    new_mode: str = ""
    old_id: str = ""
    new_id: str = ""
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit as a list shows it. `parents` are ids, the first one is what it is shown against."""

    id: str
    parents: tuple[str, ...]
    author: str
    at: datetime
    subject: str
    body: str = ""


class History(Protocol):
    """Commits compared. Every call is bounded in time and in what is read."""

    def changes(self, path: Path, fork_point: str, head: str = "") -> Sequence[Change]:
        """Changed files since the fork point, renames found.

        In a worktree uncommitted and untracked ones are included; with `head` the path is a
        repository, and what `head` has changed since it left `fork_point` is meant (their merge
        base; `EMPTY_TREE` for everything). Raises SeamError.
        """

    def patch(self, path: Path, fork_point: str, limit: int, head: str = "") -> str:
        """The diff behind `changes`, at most `limit` bytes of whole files. Raises SeamError.

        Untracked text files follow as added ones, as far as they fit.
        """

    def patch_of(self, repo: Path, change: Change, limit: int) -> str:
        """The diff of one file between the two contents that its change names, at most `limit`
        bytes; empty when a side is in no repository. Raises SeamError.
        """

    def commits(self, repo: Path, base: str, head: str, limit: int) -> Sequence[Commit]:
        """The commits that `head` has and `base` has not, newest first, at most `limit`."""

    def texts(self, repo: Path, commit: str, names: Sequence[str], limit: int) -> Mapping[str, str]:
        """The texts of those of these files that lie at the top of a commit, each up to `limit` bytes.

        A link, a folder, a submodule is no file. Raises SeamError, also when there is no such commit.
        """

    def tips(self, repo: Path, refs: Sequence[str]) -> Mapping[str, str]:
        """The commits of these full ref names, in one look; those that are not there are left out."""


class GitSettings(Protocol):
    """What git's settings of the user that runs labsite mean for commits, a part of `Repos`."""

    def committer(self, repo: Path) -> str | None:
        """Return who git names in new commits, as `Name <address>`; None when it knows nobody.

        Raises SeamError when git could not be asked.
        """

    def why_unsigned(self, env: Mapping[str, str]) -> str:
        """Return why git cannot sign a commit without a person; empty where it can or signs none.

        `env`: what a session's environment has beside labsite's own. Raises SeamError when git
        could not be asked.
        """

    def has_lfs(self) -> bool | None:
        """Whether Git LFS is installed here; None when git could not be asked."""

    def hooks_path(self) -> str:
        """Return the folder of hooks that git's own settings of this user name for all repositories."""


class LargeFiles(Protocol):
    """What Git LFS keeps of a worktree elsewhere, a part of `Repos`."""

    def lacks_large_files(self, path: Path) -> bool:
        """Whether a worktree has files that Git LFS keeps, by any .gitattributes, not fetched yet.

        Raises SeamError.
        """

    def fetch_large_files(
        self, path: Path, folders: Sequence[str], token: str = "", place: str = ""
    ) -> None:
        """Put them into a new worktree, those of `folders` alone if there are some.

        The token goes to no other server than `place`. Raises SeamError.
        """
