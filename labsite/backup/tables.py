"""The database in the backup: SQLite by its own online copy, PostgreSQL by its own programs."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from labsite import database
from labsite.backup.form import Unfit
from runs.core.paths import Paths
from runs.core.ports import SeamError
from runs.machine import shell

LONG = 6 * 3600.0
SQLITE, POSTGRESQL = "sqlite", "postgresql"
MEMBERS = {SQLITE: "database/lab.sqlite3", POSTGRESQL: "database/lab.dump"}
# Where rows name a path in the state folder. Texts of the past keep the path they were written with.
PLACES = (
    *(("runs_run", "worktree"), ("runs_project", "url"), ("runs_project", "source")),
    *(("runs_manualsession", "worktree"), ("runs_host", "tmux_socket")),
)
_STEPS = "SELECT app, name FROM django_migrations ORDER BY app, name"
# Whatever was rescued or told long before the backup is kept as long again from the restore on.
TERMS = {"runs_term"}
_COLUMNS = "SELECT master.name, info.name FROM sqlite_master AS master, pragma_table_info(master.name) AS info"
_MOVE = (
    "UPDATE {table} SET {column} = {mark} || substr({column}, {length}) "
    "WHERE substr({column}, 1, {length} - 1) = {mark}"
)


def engine() -> str:
    """The engine that the environment chooses. Raises WrongSetting."""
    return POSTGRESQL if database.chosen() else SQLITE


def save(paths: Paths, into: Path) -> list[str]:
    """Copy the database as it is at one moment; the answer names its migrations. Raises Unfit."""
    return _dump(into) if engine() == POSTGRESQL else _copy(paths, into)


def _copy(paths: Paths, into: Path) -> list[str]:
    """In one step under SQLite's own read lock, so that writers go on and nothing is half there."""
    if not paths.database.exists():
        raise Unfit(
            f"There is no database in {paths.state}, so there is nothing to save: "
            "set LAB_STATE_DIR to the folder that labsite uses."
        )
    try:
        source = sqlite3.connect(f"{paths.database.as_uri()}?mode=ro", uri=True, timeout=30)
        copy = sqlite3.connect(into)
        try:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")
            found = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
            steps = [".".join(row) for row in copy.execute(_STEPS)] if found == "ok" else []
        finally:
            copy.close()
            source.close()
    except sqlite3.DatabaseError as error:
        if into.exists() and "full" in str(error):
            raise Unfit(
                f"The disk of {into.parent.parent} is full. Nothing was left behind."
            ) from error
        raise Unfit(_damaged(paths, str(error))) from error
    if found != "ok":
        raise Unfit(_damaged(paths, found))
    return steps


def _damaged(paths: Paths, why: str) -> str:
    return (
        f"The database {paths.database} cannot be copied ({why}), so no backup was made: "
        "./lab doctor says more, and an older backup may be needed."
    )


def _dump(into: Path) -> list[str]:
    _ask("pg_dump", "--format=custom", "--no-owner", "--no-privileges", f"--file={into}")
    with _server() as server:
        return [".".join(row) for row in server.execute(_STEPS)]


def is_empty() -> bool:
    """Whether the chosen PostgreSQL database holds none of our tables. Raises Unfit."""
    with _server() as server:
        row = server.execute("SELECT to_regclass('django_migrations')").fetchone()
        return row is not None and row[0] is None


@contextlib.contextmanager
def _server() -> Iterator[Any]:
    """A transaction on the chosen server. Raises Unfit when it does not answer."""
    import psycopg

    try:
        with psycopg.connect(**_connection()) as connection:
            yield connection
    except psycopg.Error as error:
        raise Unfit(
            f"The PostgreSQL database does not answer as it should ({type(error).__name__}): see "
            "LAB_DATABASE_URL, and ./lab doctor."
        ) from error


def load(file: Path, kind: str, paths: Paths, old: str, new: str) -> None:
    """Put a saved database in place and let its rows name the new state folder. Raises Unfit.

    On PostgreSQL this is the one step that cannot be taken back, so it comes last.
    """
    if kind == SQLITE:
        file.rename(paths.database)
        holder = sqlite3.connect(paths.database, isolation_level=None)
        try:
            there = {f"{table}.{column}" for table, column in holder.execute(_COLUMNS)}
            for order, values in _moves(old, new, "?", there):
                holder.execute(order, values)
            for table in TERMS & _tables(there):
                holder.execute(f"DELETE FROM {table}")  # noqa: S608
        finally:
            holder.close()
        return
    _ask(
        "pg_restore",
        "--no-owner",
        "--no-privileges",
        "--single-transaction",
        "--dbname=",
        str(file),
    )
    with _server() as server:
        rows = server.execute("SELECT table_name, column_name FROM information_schema.columns")
        there = {f"{table}.{column}" for table, column in rows.fetchall()}
        for order, values in _moves(old, new, "%s", there):
            server.execute(order, values)
        for table in TERMS & _tables(there):
            server.execute(f"DELETE FROM {table}")  # noqa: S608
    file.unlink()


def _moves(
    old: str, new: str, mark: str, there: Collection[str]
) -> list[tuple[str, tuple[str, str]]]:
    """Orders that put paths below the old folder below the new one; older files lack some columns."""
    return [
        (
            _MOVE.format(table=table, column=column, mark=mark, length=len(old) + 2),
            (f"{new}/", f"{old}/"),
        )
        for table, column in PLACES
        if f"{table}.{column}" in there
    ]


def _tables(there: Collection[str]) -> set[str]:
    return {name.partition(".")[0] for name in there}


def _connection() -> dict[str, Any]:
    """The chosen server for psycopg."""
    told = database.settings(database.chosen(), Path(os.devnull))
    names = {
        "NAME": "dbname",
        "USER": "user",
        "PASSWORD": "password",
        "HOST": "host",
        "PORT": "port",
    }
    parts = {mine: told[theirs] for theirs, mine in names.items() if told[theirs]}
    return {**told["OPTIONS"], **parts, "options": ""}


def _environment() -> Mapping[str, str]:
    """The chosen server for PostgreSQL's own programs: never in argv, which others can read."""
    names = {"dbname": "PGDATABASE", "user": "PGUSER", "password": "PGPASSWORD", "host": "PGHOST"}
    names |= {"port": "PGPORT", "sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT"}
    names |= {"sslcert": "PGSSLCERT", "sslkey": "PGSSLKEY", "service": "PGSERVICE"}
    told = _connection()
    ours = {variable: str(told[name]) for name, variable in names.items() if told.get(name)}
    return {**os.environ, **ours, "PGCONNECT_TIMEOUT": "10"}


def _ask(program: str, *argv: str) -> None:
    try:
        shell.check([program, *argv], timeout=LONG, env=_environment())
    except SeamError as error:
        said = " ".join(str(error).split()).rstrip(".?")
        raise Unfit(
            f"{said}. PostgreSQL's own programs are needed for its databases (Debian, Ubuntu: "
            "apt install postgresql-client), at least as new as the server."
        ) from error
