"""Where the running product answers, as its address file and its lock say."""

from __future__ import annotations

import fcntl
from pathlib import Path

from runs.core.paths import Paths


def address_of_running(paths: Paths) -> str:
    """The base URL while `./lab up` runs on this state folder, else an empty string."""
    if not any(_is_held(lock) for lock in (paths.up_lock, paths.web_lock)):
        return ""
    return paths.address.read_text().strip() if paths.address.exists() else ""


def _is_held(lock: Path) -> bool:
    try:
        with lock.open("r") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
