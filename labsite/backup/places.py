"""Which parts of a state folder a backup holds, and a private place beside a file to make it in."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from labsite.backup.form import Unfit

# Saved in their own way, or made again by the next start.
ELSEWHERE = frozenset(
    {"lab.sqlite3", "lab.sqlite3-wal", "lab.sqlite3-shm", "lab.sqlite3-journal"}
    | {"repos", "origins", "worktrees"}
)
MADE_AGAIN = frozenset(
    {"queue.sqlite3", "queue.sqlite3-wal", "queue.sqlite3-shm", "queue.sqlite3-journal"}
    | {
        "static",
        "static.stamp",
        "bin",
        "feed",
        "clones",
        "trials",
        "answers",
        "signals",
        "tmux.conf",
        "tmux.sock",
        "worker.sock",
    }
    | {"address", "up.lock", "setup.token", "setup.new"}
)
# Dead with the session that they were for, and secret.
OF_SESSIONS = frozenset({"token", "git-token", "order.json"})


def is_left_out(name: str) -> bool:
    """Whether a path below the state folder is no plain file of the backup."""
    parts = name.split("/")
    if parts[0] in ELSEWHERE | MADE_AGAIN or parts[0].startswith(".doctor-"):
        return True
    return name.endswith(".part") or (
        parts[0] == "runs" and (parts[-1] in OF_SESSIONS or "tmux-" in name)
    )


@contextlib.contextmanager
def beside(target: Path, mark: str) -> Iterator[Path]:
    """A private folder beside `target`, gone at the end; those of killed ones are swept up.

    A lock on each says whether its maker still lives. Raises Unfit when none can be made.
    """
    prefix = f".{target.name}.{mark}-"
    try:
        for old in target.parent.glob(f"{prefix}*"):
            _sweep(old)
        place = Path(tempfile.mkdtemp(dir=target.parent, prefix=prefix))
    except OSError as error:
        raise Unfit(
            f"The folder {target.parent} cannot be written ({error.strerror}): choose another place. "
            "Nothing was changed."
        ) from error
    handle = os.open(place, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        os.close(handle)


def _sweep(old: Path) -> None:
    """Remove what a killed attempt left. A fresh one of another process keeps its lock."""
    with contextlib.suppress(OSError):
        handle = os.open(old, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(handle).st_uid == os.getuid():
                shutil.rmtree(old, ignore_errors=True)
        finally:
            os.close(handle)
