"""Files in a folder that other programs write to as well: written atomically, no link is followed."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import stat

TYPE_CHECKING = False  # importing `typing` would take longer than all else in a hook
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

MOST_FILES = 100_000

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}", re.ASCII)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Unfit(ValueError):
    """An invalid name, or a file with invalid content; the text says which."""


def is_name(text: object) -> bool:
    """Whether this is a valid name of a group, a task or a worker."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


@contextlib.contextmanager
def opened(folder: str, *, make: bool = False) -> Iterator[int]:
    """A descriptor of a group's folder. Raises Unfit, or OSError where it is not there.

    The folder of all projects is resolved; the project's and the group's below it may be no links.
    """
    parent, group = os.path.split(folder)
    base, project = os.path.split(parent)
    if not is_name(group) or project in ("", ".", ".."):
        raise Unfit(f"{group!r} is no name of a group.")
    if make:
        os.makedirs(base, mode=0o700, exist_ok=True)  # noqa: PTH103
    with below(base, (project, group), make=make) as at:
        yield at


@contextlib.contextmanager
def below(base: str, path: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """A descriptor of a folder below `base`, which alone may be reached over links."""
    at = os.open(os.path.realpath(base, strict=True), _FOLDER)
    try:
        for name in path:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=at)
            further = os.open(name, _FOLDER, dir_fd=at)
            os.close(at)
            at = further
        yield at
    finally:
        os.close(at)


def put(at: int, name: str, data: bytes, *, replace: bool = False, sync: bool = True) -> bool:
    """Create a file atomically; False if the name is taken. Without `sync` a power cut may undo it."""
    temporary, new = fresh(at, name)
    try:
        try:
            while data:
                data = data[os.write(new, data) :]
            if sync:
                os.fsync(new)
        finally:
            os.close(new)
        if replace:
            os.rename(temporary, name, src_dir_fd=at, dst_dir_fd=at)
        else:
            os.link(temporary, name, src_dir_fd=at, dst_dir_fd=at, follow_symlinks=False)
    except FileExistsError:
        return False
    finally:
        remove(at, temporary)
    return True


def fresh(at: int, name: str) -> tuple[str, int]:
    """Open a new temporary file for this name. Returns its name and a descriptor."""
    temporary = f"{name}.tmp.{os.getpid()}.{os.urandom(4).hex()}"
    return temporary, os.open(temporary, _NEW, 0o600, dir_fd=at)


def existing(at: int, name: str) -> int:
    """A descriptor to read a file with; does not block on a FIFO or follow a link. Raises OSError."""
    return os.open(name, _OLD, dir_fd=at)


def read(at: int, name: str, most: int) -> bytes:
    """A file's bytes. Raises Unfit for one that is too large or no plain file, OSError."""
    file = existing(at, name)
    try:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > most:
            raise Unfit(f"{name} is no file of ours.")
        return os.read(file, most)
    finally:
        os.close(file)


def names(at: int, *, files: bool = False, folders: bool = False) -> list[str]:
    """What is in the folder; plain files or folders only, and no links. Raises Unfit, OSError."""
    with os.scandir(at) as entries:
        listed = [
            e.name
            for e in entries
            if not (files and not e.is_file(follow_symlinks=False))
            and not (folders and not e.is_dir(follow_symlinks=False))
        ]
    if len(listed) > MOST_FILES:
        raise Unfit("There are more files than any group has.")
    return listed


def stems(at: int, ending: str) -> list[str]:
    """Names of plain files with that ending, without it; invalid names are left out."""
    found = (name.removesuffix(ending) for name in names(at, files=True) if name.endswith(ending))
    return sorted(stem for stem in found if is_name(stem))


def remove(at: int, name: str) -> None:
    """Remove one thing: a link itself, a folder with all that is in it; no error when it is gone."""
    try:
        os.unlink(name, dir_fd=at)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):
        import shutil

        shutil.rmtree(name, dir_fd=at)


def drop(at: int, name: str) -> None:
    """Remove a folder if it is empty."""
    try:
        os.rmdir(name, dir_fd=at)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def to_json(said: Mapping[str, Any]) -> bytes:
    """An object as a file holds it."""
    return json.dumps(said, ensure_ascii=False).encode("utf-8", "replace")


def from_json(data: bytes, name: str) -> dict[str, Any]:
    """The object in a file. Raises Unfit."""
    try:
        said = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Unfit(f"{name} is no JSON.") from error
    if not isinstance(said, dict):
        raise Unfit(f"{name} is no JSON object.")
    return said


def line(value: object, most: int) -> str:
    """One line of text, cut to length; empty for any other type.

    Only printable characters: JSON may hold NUL and lone surrogates, which no database stores.
    """
    if not isinstance(value, str):
        return ""
    return "".join(c if c.isprintable() else "?" for c in " ".join(value.split())[:most])
