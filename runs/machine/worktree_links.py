"""Whether a worktree and its repository still name each other, read from git's small files alone.

git itself would look for a repository in the folders above, so it is not asked about a worktree
whose link an agent removed or replaced.
"""

from __future__ import annotations

from pathlib import Path

from runs.machine.files import read_small

LINK_BYTES = 8000


def admin_of(repo: Path, path: Path) -> Path | None:
    """The repository's notes of a worktree; None when folder and notes do not name each other."""
    target = _target(path / ".git")
    if target is None:
        return None
    try:
        admin = target.resolve()
        back = read_small(admin / "gitdir", LINK_BYTES)
        is_ours = back is not None and (
            admin.parent == (repo / "worktrees").resolve()
            and (admin / back.strip()).resolve() == path.resolve() / ".git"
        )
    except (OSError, ValueError, RuntimeError):
        return None
    return admin if is_ours else None


def registered(repo: Path) -> list[tuple[Path, Path]]:
    """A repository's notes of each worktree, and where they say that it lies.

    Notes that cannot be read are left out.
    """
    found = ((admin, read_small(admin / "gitdir", LINK_BYTES)) for admin in _notes(repo))
    return [(admin, Path(text.strip()).parent) for admin, text in found if text and text.strip()]


def _notes(repo: Path) -> list[Path]:
    try:
        return sorted((repo / "worktrees").iterdir())
    except OSError:
        return []


def is_repository(folder: Path) -> bool:
    """Whether a folder looks like the inside of a repository of git."""
    head = folder / "HEAD"
    has_head = head.is_file() or head.is_symlink()
    return has_head and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def leads_somewhere(own: Path) -> bool:
    """Whether `.git` is a folder, or a link to something that exists."""
    try:
        return own.is_dir() or ((target := _target(own)) is not None and target.exists())
    except (OSError, ValueError):
        return True  # it may, and nobody can see where


def _target(own: Path) -> Path | None:
    link = read_small(own, LINK_BYTES)
    if link is None or not link.startswith("gitdir: "):
        return None
    return own.parent / link.removeprefix("gitdir: ").strip()
