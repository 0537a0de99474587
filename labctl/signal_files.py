"""Reads and writes the signal files of task groups, for sessions and for labsite.

A group's folder holds `.expected`, `inscription.json`, one `<task>.done` a completed task and, once
there are enough, the sentinel `.all-done`. The first signal of a task stands. `<task>.began` is
there while a writer is at work; one that is left behind without its signal tells of a crash.

Every function takes the descriptor that `safe_files.opened` gives.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import time

from labctl.safe_files import (
    MOST_FILES,
    Unfit,
    existing,
    fresh,
    from_json,
    is_name,
    line,
    names,
    put,
    read,
    remove,
    stems,
    to_json,
)

TYPE_CHECKING = False  # importing `typing` would take longer than all else in a hook
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from typing import Any

EXPECTED, SENTINEL, INSCRIPTION = ".expected", ".all-done", "inscription.json"
DONE, BEGAN = ".done", ".began"
SUBJECT_CHARACTERS = 256
TEXT_CHARACTERS = 1000
TIME_CHARACTERS = 64
SIGNAL_BYTES = 64 * 1024
INSCRIPTION_BYTES = 4 * 1024 * 1024
TURNS = 5
MOST_BEGAN = 2000

_COUNT = re.compile(rb"[1-9][0-9]{0,8}", re.ASCII)


def stamp() -> str:
    """Now, as signals write it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def prepare(at: int, expected: int, inscription: Mapping[str, Any]) -> None:
    """Empty the folder and write the inscription; `.expected` comes last, since it announces the rest.

    A group that has no task yet gets its number with the first one.
    """
    for name in names(at):
        remove(at, name)
    put(at, INSCRIPTION, to_json(inscription))
    if expected:
        put(at, EXPECTED, str(expected).encode())


def expect(at: int, expected: int, inscription: Mapping[str, Any]) -> None:
    """Another number of tasks. A sentinel that came too early goes; one that is due comes."""
    put(at, INSCRIPTION, to_json(inscription), replace=True)
    put(at, EXPECTED, str(expected).encode(), replace=True)
    _settle(at, stamp())


def expected(at: int) -> int | None:
    """How many signals are expected: a positive number without leading zero."""
    try:
        text = read(at, EXPECTED, TIME_CHARACTERS).strip()
    except (OSError, Unfit):
        return None
    return int(text) if _COUNT.fullmatch(text) else None


def inscription(at: int) -> dict[str, Any]:
    """What was agreed. Raises Unfit or OSError."""
    return from_json(read(at, INSCRIPTION, INSCRIPTION_BYTES), INSCRIPTION)


def sentinel(at: int) -> dict[str, Any] | None:
    """Total and time of completion; None while there is no sentinel. Raises Unfit or OSError."""
    try:
        said = from_json(read(at, SENTINEL, SIGNAL_BYTES), SENTINEL)
    except FileNotFoundError:
        return None
    total, when = said.get("total"), said.get("completed_at")
    if (
        type(total) is not int
        or not 1 <= total <= MOST_FILES
        or line(when, TIME_CHARACTERS) in ("", None)
    ):
        raise Unfit(f"{SENTINEL} does not say how many signals came when.")
    return {"total": total, "completed_at": line(when, TIME_CHARACTERS)}


def keys(at: int) -> list[str]:
    """Tasks with a signal file. Temporary files, links and invalid names are ignored."""
    return stems(at, DONE)


def done(at: int, wanted: Collection[str] | None = None) -> list[dict[str, str]]:
    """What signals say, by task; of `wanted` ones only if that is given. Unfit ones say nothing."""
    found = []
    for key in keys(at):
        if wanted is None or key in wanted:
            with contextlib.suppress(OSError, Unfit):
                said = from_json(read(at, key + DONE, SIGNAL_BYTES), key + DONE)
                if said.get("task_id") == key:
                    found.append(cut(key, said))
    return found


def write(at: int, key: str, worker: str, subject: str, when: str) -> bool:
    """Leave a task's signal, and the sentinel with the last one; False if it stands already.

    Raises Unfit for a name, OSError when the disk did not take it: then a marker stays.
    """
    if not is_name(key) or (worker and not is_name(worker)):
        raise Unfit(f"{key!r} or {worker!r} is no name of a task or a worker.")
    said = {"worker": worker, "subject": subject, "completed_at": when}
    with _marked(at, key):
        is_new = put(at, key + DONE, to_json(cut(key, said)))
        if not is_new and not stat.S_ISREG(os.lstat(key + DONE, dir_fd=at).st_mode):
            raise OSError(errno.EEXIST, "something else lies in the place of the signal")
        wanted = expected(at)
        if wanted is not None and _seal(at, wanted, when) and expected(at) != wanted:
            _settle(at, when)
    return is_new


def crashed(at: int) -> list[dict[str, str]]:
    """Tasks whose writer ended before the signal was there, with what it could still say."""
    there = set(keys(at))
    return [
        {"task_id": key, "why": why}
        for key in stems(at, BEGAN)[:MOST_BEGAN]
        if key not in there and (why := _last_words(at, key + BEGAN)) is not None
    ]


def cut(key: str, said: Mapping[str, Any]) -> dict[str, str]:
    """A signal with every field cut to its longest allowed length."""
    worker = said.get("worker")
    return {
        "task_id": key,
        "worker": str(worker) if is_name(worker) else "",
        "subject": line(said.get("subject"), SUBJECT_CHARACTERS) or f"Task {key}",
        "completed_at": line(said.get("completed_at"), TIME_CHARACTERS),
    }


def _seal(at: int, wanted: int, when: str) -> bool:
    """Write the sentinel if enough signals are there; an existing one is kept."""
    total = len(keys(at))
    if total < wanted:
        return False
    put(at, SENTINEL, to_json({"total": total, "expected": wanted, "completed_at": when}))
    return True


def _settle(at: int, when: str) -> None:
    """Bring sentinel and expected number together, whoever writes signals meanwhile.

    A writer that read the old number looks at it again after its sentinel, so one of the two sees
    both; and after a sentinel was taken away it is counted once more.
    """
    for _ in range(TURNS):
        wanted = expected(at)
        if wanted is None:
            return
        if len(keys(at)) < wanted:
            remove(at, SENTINEL)
        if not _seal(at, wanted, when) or expected(at) == wanted:
            return


@contextlib.contextmanager
def _marked(at: int, key: str) -> Iterator[None]:
    """Leaves a marker behind if the signal is not written, however the writer ends.

    The writer holds a lock on it while it lives; so who finds the lock free knows that it is gone.
    """
    mark = _mark(at, key + BEGAN)
    try:
        yield
    except BaseException as error:
        if mark is not None:
            with contextlib.suppress(OSError):
                os.write(mark, to_json({"why": line(str(error), TEXT_CHARACTERS)}))
        raise
    else:
        remove(at, key + BEGAN)
    finally:
        if mark is not None:
            os.close(mark)


def _mark(at: int, name: str) -> int | None:
    """The locked marker; None when not even that could be written, which holds up nobody."""
    try:
        temporary, mark = fresh(at, name)
    except OSError:
        return None
    try:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.rename(temporary, name, src_dir_fd=at, dst_dir_fd=at)
    except OSError:
        os.close(mark)
        remove(at, temporary)
        return None
    return mark


def _last_words(at: int, name: str) -> str | None:
    """Why a marker was left behind; None while its writer lives, or when it is gone by now."""
    try:
        mark = existing(at, name)
    except OSError:
        return None
    try:
        fcntl.flock(mark, fcntl.LOCK_SH | fcntl.LOCK_NB)
        said = from_json(os.read(mark, SIGNAL_BYTES), name)
        return line(said.get("why"), TEXT_CHARACTERS)
    except BlockingIOError:
        return None
    except (OSError, Unfit):
        return ""
    finally:
        os.close(mark)
