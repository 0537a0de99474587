"""The database of each state folder that a test starts the product on.

On SQLite it lies in the folder. On PostgreSQL each folder gets a database of its own on the
server that the tests run on, so that two products never meet in one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from labsite.database import chosen
from runs.core.paths import Paths

KEPT = 12  # no test uses more at once

_server = chosen()
# The processes of a run share what one of them made, and meet nothing of another run.
_run = os.environ.get("PYTEST_XDIST_TESTRUNUID", "")[:12] or str(os.getpid())
_made: dict[str, bool] = {}


def environment(state: Path) -> dict[str, str]:
    """What the product needs in its environment to find the folder's database; it is made first."""
    if not _server:
        return {}
    _make(_name(state))
    return {"LAB_DATABASE_URL": _url(_name(state))}


def copy(old: Path, new: Path) -> Path:
    """Copy a state folder, and with it what its database holds."""
    shutil.copytree(old, new, dirs_exist_ok=True)
    if _server:
        _drop([_name(new)])
        _make(_name(new), template=template(old))
    return new


def template(state: Path) -> str:
    """The name of a folder's database, which stays as long as the server, for copies of it."""
    _made[_name(state)] = True
    return _name(state)


def ask(state: Path, sql: str) -> list[tuple[Any, ...]]:
    """The rows that a statement answers in a folder's database; empty for one that answers none."""
    if not _server:
        connection = sqlite3.connect(Paths(state).database, isolation_level=None)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()
    import psycopg

    with psycopg.connect(_url(_name(state)), autocommit=True) as server:
        found = server.execute(sql)  # type: ignore[arg-type]
        return found.fetchall() if found.description else []


def _name(state: Path) -> str:
    return f"lab_{_run}_{hashlib.sha256(str(state).encode()).hexdigest()[:16]}"


def _url(name: str) -> str:
    base, _, query = _server.partition("?")
    return f"{base.rpartition('/')[0]}/{name}?{query}"


def _make(name: str, template: str = "template0") -> None:
    """Make a database unless it is there; the oldest ones that no copy is made from go."""
    if name in _made:
        return
    old = [made for made, is_template in _made.items() if not is_template]
    _drop(old[:-KEPT])
    _do([f'CREATE DATABASE "{name}" TEMPLATE "{template}"'])
    _made[name] = False


def _drop(names: Iterable[str]) -> None:
    for name in list(names):
        if _made.pop(name, None) is not None:
            _do([f'DROP DATABASE "{name}" WITH (FORCE)'])


def _do(statements: Iterable[str]) -> None:
    import psycopg

    with psycopg.connect(_server, autocommit=True) as server:
        for statement in statements:
            server.execute(statement)  # type: ignore[arg-type]
