"""Sets damaged databases aside before Django opens them, so that the product serves."""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from runs.core.paths import Paths


def mend(paths: Paths, on_server: bool) -> None:
    """Set damaged databases aside and say so. Never raises for a folder that is not there yet.

    `on_server`: the facts are on a PostgreSQL server, so an old file of theirs is left alone.
    """
    mark = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    for kept in set_damaged_aside(
        [paths.queue] if on_server else [paths.database, paths.queue], mark
    ):
        print(
            f"A state file was damaged and could not be read; it was kept as {kept}, and labsite goes on "
            "with a new one. Live agent sessions are found again.",
            file=sys.stderr,
        )


def set_damaged_aside(databases: Iterable[Path], mark: str) -> list[Path]:
    """Move databases away that SQLite cannot read, so that new ones can be made.

    Nothing is deleted: the answer names where each damaged file was kept.
    """
    kept = []
    for database in databases:
        if database.exists() and not _is_readable(database):
            for part in (Path(f"{database}-wal"), Path(f"{database}-shm"), database):
                if part.exists():
                    part.rename(part.with_name(f"{part.name}.damaged-{mark}"))
            kept.append(database.with_name(f"{database.name}.damaged-{mark}"))
    return kept


def _is_readable(database: Path) -> bool:
    """Whether SQLite takes the file for a whole database. A busy one is not a damaged one."""
    try:
        connection = sqlite3.connect(database, timeout=10)
        try:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
        finally:
            connection.close()
    except sqlite3.OperationalError:
        return True
    except sqlite3.DatabaseError:
        return False
