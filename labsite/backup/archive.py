"""Writes and reads the one file: a compressed tar of plain files, a checksum for each, never links."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from labsite.backup.form import ABOUT_BYTES, HEAD, HEAD_BYTES, SUMS, Head, Unfit, read_head, safe

PIECE = 1024 * 1024
LEVEL = 3  # packs of git are compressed already; more effort saves little
_BROKEN = (
    *(tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile),
    *(ValueError, OverflowError),  # numbers and names that nobody can mean
)


class Writer:
    """Adds members to a fresh file at `path`; `close` writes the checksums and the disk's copy."""

    def __init__(self, path: Path, head: Head) -> None:
        self._raw = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        self._zip = gzip.GzipFile("", "wb", LEVEL, self._raw, mtime=0)
        self._tar = tarfile.open(fileobj=self._zip, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115
        self._sums: dict[str, str] = {}
        self.add(HEAD, head.as_bytes())

    def add(self, name: str, content: bytes) -> None:
        self._store(name, io.BytesIO(content), len(content), 0o600, 0.0)

    def about(self, name: str, told: dict[str, Any]) -> None:
        self.add(name, json.dumps(told).encode())

    def add_file(self, name: str, path: Path, mode: int | None = None) -> None:
        """A file that nobody changes any more, with its permissions and time."""
        with path.open("rb") as file:
            seen = os.fstat(file.fileno())
            bits = (seen.st_mode if mode is None else mode) & 0o777
            self._store(name, file, seen.st_size, bits, seen.st_mtime)

    def close(self) -> None:
        """Finish the file; from here on it is whole and on the disk. Raises OSError."""
        self.add(SUMS, json.dumps(self._sums).encode())
        self._tar.close()
        self._zip.close()
        self._raw.flush()
        os.fsync(self._raw.fileno())
        self._raw.close()

    def abandon(self) -> None:
        """Let go of a file that will not be finished; never raises."""
        with contextlib.suppress(OSError):
            self._raw.close()

    def _store(self, name: str, file: IO[bytes], size: int, mode: int, changed: float) -> None:
        member = tarfile.TarInfo(name)
        member.size, member.mode, member.mtime = size, mode, int(changed)
        summed = _Summed(file)
        self._tar.addfile(member, summed)
        self._sums[name] = summed.sum.hexdigest()


class _Summed:
    """A file whose content is summed up while it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.sum = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        piece = self._file.read(size)
        self.sum.update(piece)
        return piece


class Reader:
    """A backup file that was read through once: every member is whole and has a plain name."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self.told():
            self.head, self.sizes = self._verified()

    def members(self) -> Iterator[tuple[str, tarfile.TarInfo, IO[bytes]]]:
        """Each member with its content, in the order in which it was written. Raises Unfit."""
        with tarfile.open(self._path, "r:gz") as tar:
            for member in tar:
                file = tar.extractfile(member) if member.isreg() else None
                if file is None:
                    raise Unfit(
                        f"The backup holds {member.name!r}, which is no plain file. Nothing was changed."
                    )
                yield member.name, member, file
            # To the very end, where the compression's own checksum lies.
            while tar.fileobj is not None and tar.fileobj.read(PIECE):
                pass

    def _verified(self) -> tuple[Head, dict[str, int]]:
        seen: dict[str, str] = {}
        sizes: dict[str, int] = {}
        head: Head | None = None
        sums: object = None
        for name, member, file in self.members():
            safe(name)
            if name in sizes or sums is not None:
                raise Unfit(
                    "The backup was tampered with: a member is there twice, or after the end."
                )
            sizes[name] = member.size
            if head is None:
                head = read_head(_small(file, HEAD_BYTES) if name == HEAD else b"")
                file.seek(0)
            if name == SUMS:
                sums = _json(_small(file, ABOUT_BYTES))
                continue
            seen[name] = _sum(file)
        if head is None:
            raise Unfit("This file is not a backup of labsite. Nothing was changed.")
        if sums is None:
            raise Unfit("The backup is not whole: its end is missing. Nothing was changed.")
        if sums != seen:
            raise Unfit("The backup is damaged: a checksum does not agree. Nothing was changed.")
        return head, sizes

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """Around every reading: what a damaged file raises becomes one sentence."""
        try:
            yield
        except _BROKEN as error:
            raise Unfit(
                f"{self._path} is not a backup of labsite, or not whole ({error}). Nothing was changed."
            ) from error


def _sum(file: IO[bytes]) -> str:
    summed = _Summed(file)
    while summed.read(PIECE):
        pass
    return summed.sum.hexdigest()


def _small(file: IO[bytes], limit: int) -> bytes:
    raw = file.read(limit + 1)
    if len(raw) > limit:
        raise Unfit("A list in the backup is larger than can be meant. Nothing was changed.")
    return raw


def _json(raw: bytes) -> object:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Unfit("A list in the backup cannot be read. Nothing was changed.") from error


def read_about(file: IO[bytes]) -> dict[str, Any]:
    """An object that `Writer.about` wrote. Raises Unfit for anything else."""
    told = _json(_small(file, ABOUT_BYTES))
    if not isinstance(told, dict):
        raise Unfit("A list in the backup cannot be read. Nothing was changed.")
    return told


def lay(root: Path, name: str, file: IO[bytes], member: tarfile.TarInfo) -> Path:
    """Write one member below `root`, replacing what is there and following no link on the way."""
    path = clear(root, name)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as out:
        shutil.copyfileobj(file, out, PIECE)
        os.fchmod(out.fileno(), member.mode & 0o777)
    os.utime(path, (member.mtime, member.mtime))
    return path


def clear(root: Path, name: str) -> Path:
    """A place below `root` where nothing is, in real folders. Raises Unfit for a path that leads out."""
    path = root
    *folders, last = safe(name).parts
    for part in folders:
        path /= part
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            path.unlink()
        path.mkdir(mode=0o700, exist_ok=True)
    path /= last
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    return path
