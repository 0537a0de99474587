"""One worktree in the backup: git's own notes of it, its index, and every file that differs.

Files that are as committed are made again from the repository; changed, untracked and conflicting
ones are kept byte by byte. What .gitignore names is not kept.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labsite.backup.archive import clear
from labsite.backup.tree import NAMED_BYTES, Copier, Kept, named_in
from runs.core.ports import SeamError
from runs.machine.git import Git, failed
from runs.machine.worktree_links import (
    MARK,
    admin_of,
    claims_of,
    registered,
    write_claim,
    write_note,
)

LONG = 3600.0
TURNS = 3


@dataclass
class Notes:
    """A worktree as saved: the branch it stood at, what its index names, and what its logs name."""

    path: str
    branch: str = ""
    head: str = ""
    staged: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)
    changed: int = 0
    left_out: list[str] = field(default_factory=list)

    @property
    def objects(self) -> set[str]:
        """All that it names; what its logs name may be gone."""
        return {*self.staged, *self.named, *filter(None, [self.head])}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a worktree's files lie, and git's notes of it in the repository."""

    files: Path
    admin: Path
    claims: Sequence[tuple[str, str]] = ()

    @property
    def is_own(self) -> bool:
        """Whether it is a repository of its own that borrows the objects of the shared one."""
        return self.admin == self.files / ".git"


def places(repo: Path, root: Path) -> list[Place]:
    """The worktrees of a repository whose files lie directly in `root`.

    An agent may have removed or replaced the link to it; then git would speak of another
    repository, and the folder is saved like any other.
    """
    found = []
    for admin, files in registered(repo):
        is_there = files.parent == root and files.is_dir()
        if is_there and admin_of(repo, files) in (admin, admin.resolve()):
            found.append(Place(files, admin, claims_of(repo, files)))
    return found


def lost(git: Git, repo: Path, root: Path, copier: Copier) -> set[str]:
    """Objects that only the notes of such folders may name: heads, logs and what was staged."""
    found: set[str] = set()
    known = {place.admin for place in places(repo, root)}
    for admin in sorted((repo / "worktrees").glob("*")):
        if admin in known:
            continue
        for name in (admin / "HEAD", *(admin / "logs").rglob("*")):
            if name.is_file() and name.stat().st_size <= NAMED_BYTES:
                found |= named_in(name.read_bytes())
        index = copier.staging / "index"
        _copy_index(admin / "index", index)
        if index.exists():
            with contextlib.suppress(SeamError):
                found |= staged(git, repo, index)
            index.unlink()
    return found


def save(git: Git, place: Place, rel: str, repo: str, prefix: str, copier: Copier) -> Notes:
    """Put one worktree under `prefix`. Raises SeamError when git cannot read it.

    An agent may commit meanwhile; then the look is repeated, so that index and files belong to
    the commit that is saved with them.
    """
    index = copier.staging / "index"
    for _ in range(TURNS):
        head = git(place.files, "rev-parse", "--verify", "-q", "HEAD").stdout.strip()
        _copy_index(place.admin / "index", index)
        differing, deleted = _differing(git, place.files, index)
        if git(place.files, "rev-parse", "--verify", "-q", "HEAD").stdout.strip() == head:
            break
    branch = git(place.files, "symbolic-ref", "-q", "HEAD").stdout.strip()
    names = staged(git, place.files, index)
    # What its own repository has of objects, the shared one has taken in.
    skipped = ("index", "objects") if place.is_own else ("index",)
    notes = copier.tree(
        place.admin, f"{prefix}/admin", lambda n: n in skipped or n.endswith(".lock")
    )
    if index.exists():
        copier.writer.add_file(f"{prefix}/admin/index", index, 0o600)
        index.unlink()
    kept = copier.some(place.files, differing, f"{prefix}/files")
    about: dict[str, Any] = {
        "path": rel,
        "repo": repo,
        "id": place.admin.name,
        "deleted": deleted,
        "admin": notes.about(),
        "own": place.is_own,
        "claims": [list(one) for one in place.claims],
        **kept.about(),
    }
    copier.writer.about(f"{prefix}/about.json", about)
    left_out = [*kept.left_out, *notes.left_out]
    return Notes(rel, branch, head, names, notes.named, len(differing) + len(deleted), left_out)


def save_raw(root: Path, rel: str, prefix: str, copier: Copier) -> Kept:
    """A folder that is no worktree any more, with everything in it."""
    kept = copier.tree(root, f"{prefix}/files")
    copier.writer.about(f"{prefix}/about.json", {"path": rel, **kept.about()})
    return kept


def _copy_index(source: Path, index: Path) -> None:
    """With its time: git trusts a file's size and time only when they are older than the index."""
    index.unlink(missing_ok=True)
    try:
        shutil.copy2(source, index)
    except FileNotFoundError:
        return


def _differing(git: Git, tree: Path, index: Path) -> tuple[list[str], list[str]]:
    """Paths to keep, folders of inner repositories with a slash at the end; and deleted ones."""
    deleted = set(_listed(git, tree, index, "--deleted"))
    unmerged = {line.partition("\t")[2] for line in _listed(git, tree, index, "--unmerged")}
    changed = {*_listed(git, tree, index, "--modified"), *unmerged} - deleted
    others = _listed(git, tree, index, "--others", "--exclude-standard")
    return sorted({*changed, *others}), sorted(deleted)


def staged(git: Git, tree: Path, index: Path) -> set[str]:
    """Objects that the index names; commits of submodules live elsewhere."""
    parts = (line.split(" ") for line in _listed(git, tree, index, "--stage"))
    return {part[1] for part in parts if part[0] != "160000"}


def _listed(git: Git, tree: Path, index: Path, *flags: str) -> Sequence[str]:
    done = git(tree, "ls-files", "-z", *flags, timeout=LONG, index=index, looks_at_files=True)
    if done.status != 0:
        raise failed("ls-files", done)
    return [name for name in done.stdout.split("\0") if name]


def check_out(git: Git, admin: Path, tree: Path) -> None:
    """Write every file that the index names, into a tree that has nothing yet. Raises SeamError."""
    argv = (f"--git-dir={admin}", f"--work-tree={tree}", "checkout-index", "-a", "-f", "-q", "-u")
    # From the notes, since the tree does not name its repository yet.
    folder = tree if admin.parent == tree else admin  # git takes a folder inside for a part of it
    done = git(folder, *argv, timeout=LONG, looks_at_files=True)
    if done.status != 0:
        raise failed("checkout-index", done)


def join_own(
    tree: Path, repo: Path, final_tree: Path, final_repo: Path, about: Mapping[str, Any]
) -> None:
    """Let a run's own repository and the shared one name each other by the paths that they will have."""
    own = tree / ".git"
    borrow(own, final_repo)
    clear(own, MARK).write_text(f"{write_note(repo, final_tree, is_made=True)}\n")
    for claim in about.get("claims", []):
        branch, pushed = (str(part) for part in claim)
        write_claim(repo, branch, final_tree, pushed)


def borrow(own: Path, repo: Path) -> None:
    """Let an own repository borrow the objects of a shared one."""
    for name in ("objects/info", "objects/pack"):
        (own / name).mkdir(parents=True, exist_ok=True)
    clear(own, "objects/info/alternates").write_text(f"{repo / 'objects'}\n")


def join(tree: Path, admin: Path, final_tree: Path, final_admin: Path) -> None:
    """Let tree and notes name each other by the paths that they will have."""
    clear(tree, ".git").write_text(f"gitdir: {final_admin}\n")
    clear(admin, "gitdir").write_text(f"{final_tree / '.git'}\n")
