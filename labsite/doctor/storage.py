"""Looks into SQLite files and the key without Django and without changing a byte of them."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from labsite import env, plain
from labsite.doctor.lines import Line, ok, warning, wrong
from runs.core.paths import Paths

CHECK_SECONDS = 5.0
BUSY_SECONDS = 3.0
STEPS = 20_000
BACKLOG = 200
LOST = "Restore a backup, or start labsite: it keeps the file beside and begins anew."


@contextlib.contextmanager
def opened(database: Path, seconds: float = CHECK_SECONDS) -> Iterator[sqlite3.Connection]:
    """A connection that only reads; a statement that takes longer is interrupted.

    A database that nobody uses has no log beside it, and reading it in the ordinary way would
    make one; so it is opened as a file that does not change.
    """
    is_used = database.with_name(f"{database.name}-wal").exists()
    mode = "mode=ro" if is_used else "mode=ro&immutable=1"
    connection = sqlite3.connect(f"{database.as_uri()}?{mode}", uri=True, timeout=BUSY_SECONDS)
    limit = time.monotonic() + seconds
    connection.set_progress_handler(lambda: int(time.monotonic() > limit), STEPS)
    try:
        yield connection
    finally:
        connection.close()


def database(paths: Paths, file: Path) -> Iterator[Line]:
    """Whether a SQLite file opens, holds together, and keeps its log as the product wants it."""
    check = "database" if file == paths.database else "queue"
    if not file.exists():
        if paths.state.exists():
            yield warning(check, f"{file.name} is not there yet", "./lab up makes it.")
        return
    if not file.is_file():
        yield wrong(check, f"{file.name} is no plain file", LOST)
        return
    try:
        with opened(file) as connection:
            yield _integrity(connection, check, file)
    except sqlite3.DatabaseError as error:
        yield _failed(check, file, error)


def _integrity(connection: sqlite3.Connection, check: str, file: Path) -> Line:
    try:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        broken = connection.execute("PRAGMA foreign_key_check").fetchone()
    except sqlite3.OperationalError as error:
        if "interrupted" not in str(error):
            raise
        return ok(
            check, f"{file.name} opens (too large to read through within {CHECK_SECONDS:g} s)"
        )
    if found != "ok":
        return wrong(check, f"{file.name} is damaged: {found}", LOST)
    if broken is not None:
        seen = f"{file.name}: a row of {broken[0]} points to a row of {broken[2]} that is gone"
        return wrong(check, seen, "Restore a backup, or ask for help with a copy of the file.")
    if not _uses_wal(file):
        return warning(check, f"{file.name} is not in WAL mode", "Restart labsite: it sets it.")
    return ok(check, f"{file.name} is whole ({_mib(file)}, WAL, references hold)")


def _uses_wal(file: Path) -> bool:
    """What the file's header says, since an unchanging file tells SQLite no journal mode."""
    with file.open("rb") as raw:
        return raw.read(20)[18:20] == b"\x02\x02"


def _mib(file: Path) -> str:
    return f"{file.stat().st_size / 1024**2:.1f} MiB"


def _failed(check: str, file: Path, error: sqlite3.DatabaseError) -> Line:
    if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
        return warning(
            check, f"{file.name} is busy", "Check again; if it stays so, restart labsite."
        )
    return wrong(check, f"{file.name} cannot be read: {error}", LOST)


def redis() -> Iterator[Line]:
    """Whether the server answers over which machines ring each other."""
    from runs.remote import link

    try:
        found = link.Link(env.text("LAB_REDIS_URL").strip(), "", "", Path("/"))
    except link.Unfit as error:
        yield wrong("redis", "LAB_REDIS_URL cannot be read", str(error))
        return
    if why := found.refusal():
        advice = "Start the server or correct LAB_REDIS_URL; workers go on meanwhile."
        yield wrong("redis", f"it cannot be used: {why}", advice)
    else:
        yield ok("redis", "answers")


def waiting(paths: Paths) -> Iterator[Line]:
    """How much work waits on the worker's queue."""
    if not paths.queue.is_file():
        return
    with opened(paths.queue) as connection:
        tables = {name for (name,) in connection.execute("select name from sqlite_master")}
        count = (
            connection.execute("select count(*) from task").fetchone()[0] if "task" in tables else 0
        )
    if count > BACKLOG:
        yield warning(
            "queue_depth", f"{count} tasks wait", "Is the worker running? See the last tick."
        )
    else:
        yield ok("queue_depth", f"{count} tasks wait")


def secret_key(paths: Paths) -> Iterator[Line]:
    """Whether the key that signs logins and encrypts tokens can be read. It is never shown."""
    if env.text("LAB_SECRET_KEY"):
        yield ok("secret_key", "comes from LAB_SECRET_KEY")
        return
    try:
        text = plain.text_of(paths.secret_key)
    except FileNotFoundError:
        if paths.database.exists() or paths.queue.exists():  # the first may be on a server
            advice = (
                "Put the key back from a backup before the next start, or stored tokens are lost."
            )
            yield wrong("secret_key", "secret.key is missing, and labsite was in use here", advice)
        return
    except (OSError, ValueError) as error:
        seen = f"secret.key cannot be read ({type(error).__name__})"
        yield wrong("secret_key", seen, "Put the key back from a backup.")
        return
    if len(text) < 20:
        yield wrong("secret_key", "secret.key holds no key", "Put the key back from a backup.")
    else:
        yield ok("secret_key", "secret.key can be read")
