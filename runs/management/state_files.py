"""The files of a state folder at a start: damaged ones set aside, static files collected anew."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command

from runs.domain.paths import Paths


def set_damaged_aside(paths: Paths, mark: str) -> list[Path]:
    """Move databases away that SQLite cannot read, so that the product serves (LAB-134).

    Nothing is deleted: the answer names where each damaged file was kept.
    """
    kept = []
    for database in (paths.database, paths.queue):
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


def collect_static(paths: Paths) -> bool:
    """Collect static files unless they were collected from exactly these; True when it did."""
    stamp = _fingerprint()
    if _all_there() and paths.static_stamp.exists() and paths.static_stamp.read_text() == stamp:
        return False
    call_command("collectstatic", interactive=False, verbosity=0)
    paths.static_stamp.write_text(stamp)
    return True


def _fingerprint() -> str:
    """Changes whenever a source file, or the way in which it is stored, changes."""
    lines = [settings.STORAGES["staticfiles"]["BACKEND"], *_sources()]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _sources() -> Iterator[str]:
    for finder in get_finders():
        for name, storage in finder.list([]):
            facts = Path(storage.path(name)).stat()
            yield f"{name} {facts.st_size} {facts.st_mtime_ns}"


def _all_there() -> bool:
    """Whether every collected file that the manifest names still lies on disk."""
    root = Path(settings.STATIC_ROOT)
    try:
        names = json.loads((root / "staticfiles.json").read_text())["paths"].values()
        return all((root / name).exists() for name in names)
    except (OSError, ValueError, KeyError, AttributeError):
        return False
