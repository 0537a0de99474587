"""State folders that tests start from a copy of, each made once in a run.

Its processes share them, since migrating an empty database takes seconds of the machine's time.
SQLite's database lies in the folder, PostgreSQL's on the server, under a name that the folder gives it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import databases
from tests.house.product import lab

OPERATOR = {
    "DJANGO_SUPERUSER_USERNAME": "anna",
    "DJANGO_SUPERUSER_EMAIL": "anna@example.org",
    "DJANGO_SUPERUSER_PASSWORD": "correct horse battery",
}


def migrated(factory: pytest.TempPathFactory) -> Path:
    """With all tables, and nothing in them but what a new folder starts with."""
    make = "from runs.management import tables; tables.bring_up_to_date()"
    return _once(factory, "migrated", lambda state: _run("shell", "-c", make, state=state))


def copied(factory: pytest.TempPathFactory, state: Path) -> Path:
    """A state folder of which the tables alone are there."""
    return databases.copy(migrated(factory), state)


def collected(factory: pytest.TempPathFactory) -> Path:
    """With all tables and the static files, as `prepare` leaves it."""
    return _once(factory, "collected", lambda state: _run("prepare", state=copied(factory, state)))


def used(factory: pytest.TempPathFactory) -> Path:
    """With Anna's account, as after a first start."""

    def use(state: Path) -> None:
        databases.copy(collected(factory), state)
        _run("createsuperuser", "--noinput", state=state, **OPERATOR)

    return _once(factory, "used", use)


def _once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """The folder of that name; who comes while another process makes it waits until it is whole."""
    base = factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        base = base.parent
    state, is_whole = base / f"once-{name}", base / f"once-{name}.whole"
    with (base / f"once-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_whole.exists():
            shutil.rmtree(state, ignore_errors=True)
            make(state)
            is_whole.touch()
    return state


def _run(*argv: str, state: Path, **more: str) -> None:
    done = lab("manage", *argv, state=state, **more)
    assert done.returncode == 0, done.stderr
