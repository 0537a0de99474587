"""Kept work: the facts that git tells of branches and rescues, and the part of `Repos` that is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

RESCUES = "refs/labsite/rescue/"


@dataclass(frozen=True, slots=True)
class Branch:
    """One managed branch: tip, time of its last commit, and its worktree if git knows one."""

    name: str
    tip: str
    at: datetime
    worktree: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole state of a branch and its worktree, stored as objects but not yet kept by a ref.

    `head` is the commit that the worktree stands on, `index` the tree that was staged, `files` the
    tree of everything on disk that is not ignored. Without a worktree all three are the branch's.
    `beside` are commits of repositories that lie in the worktree, and what only its own repository
    has: `names` are the names that these have there, of other branches and of stashes.
    """

    tip: str
    head: str
    index: str
    files: str
    is_dirty: bool
    has_worktree: bool
    beside: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a worktree stands. Empty: not known, or on no branch.

    `is_linked`: it is still a worktree of its repository, and not a folder without one or a
    repository of its own.
    """

    head: str = ""
    branch: str = ""
    is_linked: bool = True


@dataclass(frozen=True, slots=True)
class ObjectCount:
    """How many files git keeps the objects of a repository in, and their bytes.

    `free`: how many bytes more fit on its disk; None: could not tell.
    """

    loose: int
    packs: int
    size: int = 0
    free: int | None = None


@dataclass(frozen=True, slots=True)
class SharedState:
    """Of the repository that runs share: the texts of its small files, and marks of its hooks.

    Bytes of a text that are not UTF-8 stand as surrogates. `unread`: what is there and could not be read.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    hooks: Mapping[str, str] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()


class Guarding(Protocol):
    """The small files of shared repositories that decide what git does there."""

    def read_shared(self, repo: Path) -> SharedState | None:
        """Return how they are now; None where that could not be told."""

    def accepted_shared(self, repo: Path) -> SharedState | None:
        """Return how they were when that was last accepted; None when never, or when nobody knows."""

    def accept_shared(self, repo: Path, state: SharedState) -> None:
        """Store how they have to be from now on. Raises SeamError."""

    def mend_shared(
        self, repo: Path, files: Mapping[str, str | None], hooks: Sequence[str]
    ) -> None:
        """Write these files, remove those without a text, and put these hooks aside. Raises SeamError."""

    def own_settings(self, path: Path) -> str | None:
        """Return the settings of a run's own repository; None where there is none to be read."""


class Keeping(Guarding, Protocol):
    """Parked branches, rescue refs, and what is removed only after them. Bounded like all of git."""

    def hold(self, repo: Path) -> AbstractContextManager[None]:
        """Nobody else who holds removes or restores anything meanwhile. Raises SeamError if busy."""

    def branches(self, repo: Path, prefixes: Sequence[str]) -> Sequence[Branch]:
        """Every branch under these prefixes, newest commit first, in one look. Raises SeamError."""

    def merged(self, repo: Path, base: str, prefixes: Sequence[str]) -> frozenset[str]:
        """Those whose tip origin's base holds, in one look. Raises SeamError."""

    def pushed_tips(self, repo: Path, base: str, prefixes: Sequence[str]) -> Mapping[str, str]:
        """Origin's branches under these prefixes and its base, as last fetched, in one look."""

    def ahead(self, repo: Path, branch: str, base: str) -> int:
        """Commits that origin's base does not have. Raises SeamError."""

    def unpushed(self, repo: Path, branch: str, base: str) -> int:
        """Commits that origin's branch, or its base if it has no such branch, lacks."""

    def forward(self, repo: Path, path: Path, branch: str) -> bool:
        """Bring the clean worktree of a branch to where origin has that, as last fetched.

        False when it is there already, has changes or commits of its own, or stands elsewhere; then
        nothing was touched. Raises SeamError.
        """

    def switch(self, repo: Path, path: Path, branch: str, commit: str, *, clean: bool) -> bool:
        """Put a worktree on a new branch, which begins at `commit`; an earlier one of the name is moved.

        With `clean` whatever is not committed is gone, so that it has to be kept before. Without, it
        is carried over, and where it is in the way the branch begins at the commit that is checked
        out: False. Raises SeamError.
        """

    def snapshot(
        self, repo: Path, tip: str, path: Path | None, tell: Callable[[int], None] | None = None
    ) -> Snapshot:
        """Store the state of a branch and its worktree as objects; touches neither worktree nor index.

        Submodules are stored with all that they hold, or where that is no work of their own, by
        the commit on which they stand. Raises SeamError when anything in it cannot be stored; then nothing was. With `tell` it may
        take hours, and the bytes stored so far are told now and then.
        """

    def registered(self, repo: Path) -> Sequence[Path]:
        """Where the worktrees lie that the repository has notes of, as far as they can be read."""

    def standing(self, repo: Path, path: Path) -> Standing:
        """Where a worktree stands. Raises SeamError."""

    def weight(self, repo: Path, path: Path) -> int:
        """Bytes of the files that a snapshot of a worktree would have to store. Raises SeamError."""

    def place_files(
        self, repo: Path, path: Path, contents: Mapping[str, str], *, is_again: bool = False
    ) -> None:
        """Write files into a worktree, by their paths in it, for its owner alone to read.

        git ignores them there, they count as no work, and no rescue keeps them. One that is there
        already stays as it is. Raises UnfitFileError where git tracks one, or could commit it, or
        a link is on its way: then nothing was written. Raises SeamError otherwise. Where an agent
        has worked (`is_again`), what git tracks is left alone, and so is what is there.
        """

    def included(self, checkout: Path, limit: int) -> Mapping[str, str | None]:
        """Return the files of a person's checkout that its `.worktreeinclude` names and git ignores.

        With their text; None for what is none, or has more than `limit` bytes. Raises SeamError.
        """

    def holds_submodule_work(self, repo: Path, path: Path) -> bool:
        """Whether a submodule that was checked out has changes or commits that its origin has not.

        True where that could not be told.
        """

    def parents(self, repo: Path, commit: str) -> Sequence[str]:
        """The commits that a commit names as its parents. Raises SeamError."""

    def keep(self, repo: Path, ref: str, state: Snapshot, notes: Mapping[str, str]) -> str:
        """Make a new ref that holds a whole state; its commit. Raises SeamError: then there is none.

        `notes` go into the commit's message, one on a line, so that the ref explains itself.
        """

    def rescues(self, repo: Path) -> Mapping[str, Mapping[str, str]]:
        """Every rescue ref with its notes, `at` (seconds) and `commit` among them."""

    def drop(self, repo: Path, ref: str) -> None:
        """Remove a rescue ref; one that is gone already is fine. Raises SeamError."""

    def put_back(self, repo: Path, ref: str, branch: str, path: Path | None) -> None:
        """Make the branch of a rescue ref again under a free name, and its worktree at a free path.

        What was not committed is not committed again; the index is as it was. Raises `Taken` when
        there is such a branch or path, else SeamError; a half-made worktree is removed again, and
        the ref keeps everything.
        """

    def add_detached(
        self, repo: Path, path: Path, commit: str, folders: Sequence[str] = ()
    ) -> None:
        """Make a clean worktree at a commit, on no branch, in place of whatever is there.

        Only for folders that are nobody's work. Raises SeamError.
        """

    def add_again(self, repo: Path, path: Path, branch: str, folders: Sequence[str] = ()) -> bool:
        """Make the worktree of a branch that is there, whole or not at all. Raises SeamError.

        False when there is a folder already, which is left alone. Only one whose making was cut
        short is made anew: nobody has worked in it.
        """

    def force_remove(self, repo: Path, path: Path) -> None:
        """Remove a worktree whatever it holds; one that is gone is fine. Raises SeamError."""

    def delete_branch(self, repo: Path, branch: str, tip: str) -> None:
        """Delete a branch if it still stands at `tip`. Raises SeamError when it does not."""

    def packed_at(self, repo: Path) -> datetime | None:
        """Return when packing a repository was last begun; None when never, or when nobody knows."""

    def count_objects(self, repo: Path) -> ObjectCount:
        """Count the files that hold a repository's objects. Raises SeamError."""

    def pack(self, repo: Path, now: datetime) -> bool:
        """Put all objects and refs of a repository into few files, and drop none of them.

        Runs borrow objects that none of its refs needs. False where somebody else is packing it.
        Others may read and write meanwhile, and being killed harms nothing. Raises SeamError.
        """

    def sizes(self, paths: Sequence[Path]) -> Mapping[Path, int]:
        """Bytes on disk below each path; what could not be measured is left out. Raises SeamError."""


@dataclass(frozen=True, slots=True)
class Disk:
    """Disk use of a project beside its quota, in bytes; a quota of 0 is none."""

    used: int
    quota: int

    @property
    def is_low(self) -> bool:
        """Whether four fifths of the quota are used, so that a warning comes before it is reached."""
        return self.quota > 0 and self.used * 5 >= self.quota * 4
