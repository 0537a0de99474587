"""Where the running product answers, as its address file and its lock say."""

from __future__ import annotations

import fcntl

from runs.core.paths import Paths


def address_of_running(paths: Paths) -> str:
    """The base URL while `./lab up` runs on this state folder, else an empty string."""
    try:
        with paths.up_lock.open("r") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return paths.address.read_text().strip() if paths.address.exists() else ""
    except OSError:
        return ""
    return ""
