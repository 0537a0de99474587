"""Reads and writes small files where others may write too, without being held up or misled; makes
folders that go again, removes those whose modes forbid it, and tells when a disk is full.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import pwd
import shlex
import shutil
import stat
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from runs.core.ports import Output, UnremovableError

ALMOST_FULL = 1 << 20
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def read_small(path: Path, limit: int) -> str | None:
    """The text of a regular file of at most `limit` bytes; None for anything else.

    Agents may write into the folders that we read: a pipe would block us, a link would lead
    elsewhere, a huge file would fill our memory. None of them is opened further than to see it.
    """
    found = read_piece(path, 0, limit + 1)
    if found is None or len(found.data) > limit:
        return None
    try:
        return found.data.decode()
    except ValueError:
        return None


def read_piece(path: Path, start: int, limit: int) -> Output | None:
    """At most `limit` bytes of a regular file from `start` on, or from its end for a negative one.

    None for anything else, by the same rules as `read_small`.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            return None
        begin = start if start >= 0 else max(0, facts.st_size + start)
        data = os.pread(handle, limit, begin)
        return Output(data, facts.st_size, datetime.fromtimestamp(facts.st_mtime, UTC))
    except (OSError, ValueError, OverflowError):
        return None
    finally:
        os.close(handle)


def write_inside(root: Path, name: str, text: str) -> None:
    """Write a private file below a folder, in place of one that is there; no link is followed.

    Raises OSError, and then no part of it is there: ELOOP or ENOTDIR where a folder on the way is
    something else.
    """
    with _enter_parent(root, name) as (at, last):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(last, dir_fd=at)
        _write_new(at, last, text, 0o600)


def replace_inside(root: Path, name: str, text: str) -> None:
    """Replace a file below a folder in one step, so that whoever reads it never finds it missing.

    Raises OSError, and then it is as it was.
    """
    with _enter_parent(root, name) as (at, last):
        fresh = f".{last}-{os.getpid()}-{os.urandom(4).hex()}"
        _write_new(at, fresh, text, 0o644)
        try:
            os.rename(fresh, last, src_dir_fd=at, dst_dir_fd=at)
        except OSError:
            os.unlink(fresh, dir_fd=at)
            raise


def _write_new(at: int, name: str, text: str, mode: int) -> None:
    """Write a file that is not there yet into an open folder; one that is incomplete goes again."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(name, flags, mode, dir_fd=at)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, mode)
            file.write(text.encode())
    except OSError:
        os.unlink(name, dir_fd=at)
        raise


@contextlib.contextmanager
def _enter_parent(root: Path, name: str) -> Iterator[tuple[int, str]]:
    """Open the folder of a file below another one, made where it is missing; no link is followed."""
    *folders, last = name.split("/")
    with contextlib.ExitStack() as stack:
        at = _enter_folder(str(root), None, stack)
        for folder in folders:
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder, dir_fd=at)
            at = _enter_folder(folder, at, stack)
        yield at, last


def _enter_folder(name: str, at: int | None, stack: contextlib.ExitStack) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (os.O_NOFOLLOW if at is not None else 0)
    handle = os.open(name, flags, dir_fd=at)
    stack.callback(os.close, handle)
    return handle


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    """Wait for the lock of a file and hold it; it goes with the process. Raises OSError."""
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_full(folder: Path) -> bool:
    """Whether the disk of a folder takes no more data or no more files; False when unsure."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    has_room = disk.f_bavail * disk.f_frsize > ALMOST_FULL
    has_names = disk.f_files == 0 or disk.f_favail > 0
    return not (has_room and has_names)


@contextlib.contextmanager
def private_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A new folder below `parent`, gone at the end; those that killed processes left go first.

    A lock on each tells whether its maker still lives. Raises OSError when none can be made.
    """
    for old in parent.glob(f"{glob.escape(prefix)}*"):
        _remove_dead(old)
    place, handle = _make(parent, prefix)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        os.close(handle)


def _make(parent: Path, prefix: str) -> tuple[Path, int]:
    """A locked folder: until it has its lock, another process may take it for a dead one's."""
    while True:
        place = Path(tempfile.mkdtemp(dir=parent, prefix=prefix))
        with contextlib.suppress(FileNotFoundError):
            handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(handle, fcntl.LOCK_EX)
            if place.exists():
                return place, handle
            os.close(handle)


def _remove_dead(old: Path) -> None:
    with contextlib.suppress(OSError):
        handle = os.open(old, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(handle).st_uid == os.getuid():
                shutil.rmtree(old, ignore_errors=True)
        finally:
            os.close(handle)


def remove_tree(path: Path) -> None:
    """Remove a folder whole, also where its modes forbid it, as those of Go's module cache do.

    What a link in it leads to stays. Raises UnremovableError; then all else in it is gone.
    """
    with contextlib.suppress(RecursionError):
        shutil.rmtree(path, ignore_errors=True)
        if os.path.lexists(path):
            open_folders(path)
            shutil.rmtree(path, ignore_errors=True)
    if os.path.lexists(path):
        raise UnremovableError(_describe_remains(path))


def open_folders(path: Path) -> None:
    """Let their owner read, write and enter a folder and all below it, as far as it is this user.

    Only folders: a file in it may be linked from elsewhere. Each is opened before it is changed, so
    that a link that takes its place in that moment leads nowhere.
    """
    with contextlib.suppress(OSError, RecursionError):
        parent = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _open_folder(parent, path.name)
        finally:
            os.close(parent)


def _open_folder(parent: int, name: str) -> None:
    with contextlib.suppress(OSError):
        held = os.open(name, os.O_PATH | _FOLDER, dir_fd=parent)
        try:
            facts = os.fstat(held)
            if facts.st_uid == os.geteuid() and facts.st_mode & stat.S_IRWXU != stat.S_IRWXU:
                mode = stat.S_IMODE(facts.st_mode) | stat.S_IRWXU
                os.chmod(f"/proc/self/fd/{held}", mode)  # noqa: PTH101
            with os.scandir(f"/proc/self/fd/{held}") as entries:
                inside = [one.name for one in entries if one.is_dir(follow_symlinks=False)]
            for one in inside:
                _open_folder(held, one)
        finally:
            os.close(held)


def _describe_remains(path: Path) -> str:
    """Say what stands in the way of a folder's removal, whose it is, and what removes the rest."""
    stuck = _find_obstacle(path)
    why = _describe_owner(stuck) or f"the system refuses to remove {stuck}"
    return f"{path} could not be removed whole: {why}. Remove the rest with: {_removal_of(path)}"


def describe_closed(folder: Path) -> str:
    """Say that a folder may not be read, so that nothing can be kept of it, and what removes it."""
    why = _describe_owner(folder) or f"the system refuses to read {folder}"
    return (
        f"{why} and cannot be kept, since it may not be read. Remove it with: {_removal_of(folder)}"
    )


def _removal_of(path: Path) -> str:
    return shlex.join(["sudo", "rm", "-rf", "--", str(path)])


def _describe_owner(path: Path) -> str:
    """Say to which other user a path belongs; empty where it is this one's, or cannot be told."""
    try:
        uid = path.lstat().st_uid
        return "" if uid == os.geteuid() else f"{path} belongs to {pwd.getpwuid(uid).pw_name}"
    except OSError:
        return ""
    except KeyError:
        return f"{path} belongs to user {uid}"


def _find_obstacle(path: Path) -> Path:
    """The first folder of what is left in which this user may not remove; else the whole of it."""
    wanted = os.R_OK | os.W_OK | os.X_OK
    for folder, inside, _ in os.walk(path):
        for name in inside:
            one = Path(folder) / name
            if not one.is_symlink() and not os.access(one, wanted, effective_ids=True):
                return one
    return path
