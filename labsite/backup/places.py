"""Which parts of a state folder a backup holds, and a private place beside a file to make it in."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from labsite.backup.form import Unfit
from runs.machine import files

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
        "clean-rooms",
        "e2e-fixtures",
        "reviews",
        "locks",
        "tmp",
        "tmux.conf",
        "tmux.sock",
        "worker.sock",
    }
    | {"address", "up.lock", "web.lock", "removed.txt", "setup.token", "setup.new"}
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
    """A private folder beside `target`, gone at the end; those of killed ones are removed first.

    Raises Unfit when none can be made.
    """
    with contextlib.ExitStack() as stack:
        try:
            folder = files.private_folder(target.parent, f".{target.name}.{mark}-")
            place = stack.enter_context(folder)
        except OSError as error:
            raise Unfit(
                f"The folder {target.parent} cannot be written ({error.strerror}): choose another "
                "place. Nothing was changed."
            ) from error
        yield place
