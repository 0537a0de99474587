"""Copies plain files of folders that others may be writing in: what vanishes is left out."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labsite.backup import archive
from labsite.backup.archive import Writer
from labsite.backup.form import lines_of, links_of
from runs.machine.worktree_links import is_repository

Skip = Callable[[str], bool]
NAMED_BYTES = 16 * 1024**2
_OBJECT = re.compile(rb"(?<![0-9a-f])(?:[0-9a-f]{64}|[0-9a-f]{40})(?![0-9a-f])")


def named_in(content: bytes) -> set[str]:
    """Whatever in it may be the name of an object of git."""
    return {name.decode() for name in _OBJECT.findall(content)}


@dataclass
class Kept:
    """What of a folder went into the file beside plain content.

    `named`: whatever may be an object of git in small files, as in logs and heads.
    """

    links: dict[str, str] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    files: int = 0
    named: set[str] = field(default_factory=set)
    left_out: list[str] = field(default_factory=list)

    def about(self) -> dict[str, Any]:
        return {"links": self.links, "folders": self.folders}


class Copier:
    """Copies files into the backup through a quiet copy, since a tar must know their size before.

    `inner` are repositories of git that were met on the way: somebody may be writing in them, so
    no order of plain copies is safe, and they are saved by themselves.
    """

    def __init__(self, writer: Writer, staging: Path) -> None:
        self.writer = writer
        self.staging = staging
        self._quiet = staging / "quiet"
        self.inner: set[Path] = set()

    def tree(self, root: Path, prefix: str, skip: Skip = lambda _: False) -> Kept:
        """Everything below `root` but what `skip` names by its relative path."""
        kept = Kept()
        for name in self._walk(root, skip, kept):
            self.one(root, name, prefix, kept)
        return kept

    def some(self, root: Path, names: Iterable[str], prefix: str) -> Kept:
        """Named files; a name that ends in a slash stands for the folder with all that is in it."""
        kept = Kept()
        for name in names:
            if not name.endswith("/"):
                self.one(root, name, prefix, kept)
                continue
            kept.folders.append(name.rstrip("/"))
            for inner in self._walk(root / name, lambda _: False, kept, name):
                self.one(root, inner, prefix, kept)
        return kept

    def one(self, root: Path, name: str, prefix: str, kept: Kept) -> None:
        path = root / name
        try:
            seen = path.lstat()
            if stat.S_ISLNK(seen.st_mode):
                kept.links[name] = str(path.readlink())
            elif stat.S_ISREG(seen.st_mode):
                self._file(path, f"{prefix}/{name}", seen.st_mode, kept)
                kept.files += 1
            elif not stat.S_ISSOCK(seen.st_mode):
                kept.left_out.append(str(path))
        except FileNotFoundError:
            if "\\x" in name:  # how a name that is no text reads once git's list was decoded
                kept.left_out.append(str(path))
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.ELOOP, errno.ENXIO):
                raise
            kept.left_out.append(str(path))

    def raw(self, root: Path, prefix: str) -> Kept:
        """Everything below `root` as it lies there, even where it was a repository."""
        kept = Kept()
        for name in self._walk(root, lambda _: False, kept, is_raw=True):
            self.one(root, name, prefix, kept)
        return kept

    def _walk(
        self, root: Path, skip: Skip, kept: Kept, prefix: str = "", is_raw: bool = False
    ) -> Iterator[str]:
        """Names below a folder, never through a link; each folder is noted, so that empty ones stay."""
        for folder, folders, files in os.walk(root):
            base = Path(folder).relative_to(root)
            inside = [prefix + str(base / name) for name in folders]
            taken = [name for name in inside if not skip(name)]
            if not is_raw:
                taken = [name for name in taken if not self._is_inner(root, name, prefix)]
            folders[:] = [Path(name).name for name in taken]
            for name in taken:
                if (root / name.removeprefix(prefix)).is_symlink():
                    yield name
                else:
                    kept.folders.append(name)
            yield from (
                name for name in (prefix + str(base / file) for file in files) if not skip(name)
            )

    def _is_inner(self, root: Path, name: str, prefix: str) -> bool:
        path = root / name.removeprefix(prefix)
        if path.is_symlink() or not is_repository(path):
            return False
        self.inner.add(path)
        return True

    def _file(self, path: Path, member: str, mode: int, kept: Kept) -> None:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file, self._quiet.open("wb") as quiet:
            shutil.copyfileobj(file, quiet, archive.PIECE)
            seen = os.fstat(file.fileno())
        os.utime(self._quiet, ns=(seen.st_atime_ns, seen.st_mtime_ns))
        if seen.st_size <= NAMED_BYTES:
            kept.named |= named_in(self._quiet.read_bytes())
        self.writer.add_file(member, self._quiet, mode)
        self._quiet.unlink()


def put_back(root: Path, about: dict[str, Any]) -> None:
    """Folders that may be empty, and links last, so that nothing was ever written through one."""
    for name in lines_of(about, "folders"):
        if not (root / name).is_dir() or (root / name).is_symlink():
            archive.clear(root, name).mkdir(mode=0o700)
    for name, target in links_of(about).items():
        archive.clear(root, name).symlink_to(target)


def remove(root: Path, names: Iterable[str]) -> None:
    """Take files away that had been deleted."""
    for name in names:
        path = archive.clear(root, name)
        with contextlib.suppress(OSError):
            if path.parent != root:
                path.parent.rmdir()
