"""Which database the product keeps its facts in: SQLite in the state folder, or a PostgreSQL server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from labsite import env

VARIABLE = "LAB_DATABASE_URL"
SCHEMES = ("postgres://", "postgresql://")
HOW = (
    "write it as postgres://user:password@host:5432/name, or postgres:///name?host=/folder for a "
    "Unix socket, with signs such as @ : / ? # % in user and password percent-encoded."
)
# A server that has vanished is noticed within a minute; a lock is waited for as long as on SQLite.
PATIENCE = {
    "connect_timeout": "5",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
    "options": "-c lock_timeout=10s -c statement_timeout=60s "
    "-c idle_in_transaction_session_timeout=60s",
}


def chosen() -> str:
    """The address of the PostgreSQL server to use; empty for SQLite."""
    return env.text("LAB_DATABASE_URL").strip()


def settings(url: str, file: Path) -> dict[str, Any]:
    """Django's settings for a server's address, or for SQLite in `file` when it is empty.

    Raises WrongSetting for an address that cannot be meant; its text never holds the address,
    since that has the password in it.
    """
    return _postgresql(url) if url else _sqlite(file)


def _sqlite(file: Path) -> dict[str, Any]:
    return {
        "ENGINE": "labsite.engines.sqlite",
        "NAME": file,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 10,
            # The cache of pages is each connection's own, and the system keeps the file in memory anyway.
            "init_command": "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;PRAGMA foreign_keys=ON;"
            "PRAGMA cache_size=-512;",
        },
    }


def _postgresql(url: str) -> dict[str, Any]:
    """libpq itself reads the address, so everything works that works for `psql`."""
    if not url.startswith(SCHEMES):
        raise env.WrongSetting(f"{VARIABLE} is not the address of a PostgreSQL server; {HOW}")
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        parts = {name: str(value) for name, value in conninfo_to_dict(url).items()}
        url.encode()
    except (ProgrammingError, UnicodeError):
        # What libpq says of it may quote a piece of the password.
        raise env.WrongSetting(
            f"{VARIABLE} cannot be read as the address of a PostgreSQL server; {HOW}"
        ) from None
    if _is_torn(parts):
        raise env.WrongSetting(f"{VARIABLE} is split at a sign of its password or port; {HOW}")
    if not parts.get("dbname"):
        raise env.WrongSetting(f"{VARIABLE} names no database; {HOW}")
    return {
        "ENGINE": "labsite.engines.postgresql",
        "NAME": parts.pop("dbname"),
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": parts.pop("port", ""),
        "OPTIONS": {**PATIENCE, "application_name": _name(_part()), **parts},
        # Each request has a thread of its own under ASGI, so a kept connection would never be used
        # again; and a worker that connects for each task meets no connection that died meanwhile.
        "CONN_MAX_AGE": 0,
    }


def _is_torn(parts: dict[str, str]) -> bool:
    """Whether a piece of the password ended up where it would be shown, as in `user:p@ss@host`."""
    ports = [port for port in parts.get("port", "").split(",") if port]
    named = parts.get("host", "") + parts.get("dbname", "").replace("/", "@")
    return "@" in named or not all(port.isascii() and port.isdigit() for port in ports)


def _part() -> str:
    """Which part of the product this process is, for the server's list of connections."""
    program = Path(sys.argv[0]).parent.name if sys.argv[0].endswith("__main__.py") else ""
    if program:
        return program
    command = next(iter(sys.argv[1:2]), "")
    return {"run_huey": "worker"}.get(command, command).strip()


def _name(part: str) -> str:
    return f"labsite {part}"


def name_after(part: str) -> None:
    """Have this process's connections named after its part, where it was forked with Django loaded."""
    from django.conf import settings

    options = settings.DATABASES["default"].get("OPTIONS", {})
    if options.get("application_name") == _name(_part()):
        options["application_name"] = _name(part)
