"""State folders that tests start from a copy of, each made once in a run.

Its processes share them, since migrating an empty database takes three seconds of the machine's time.
Only SQLite's database lies in the folder.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from labsite.database import chosen
from tests import databases
from tests.house.product import lab

OPERATOR = {
    "DJANGO_SUPERUSER_USERNAME": "anna",
    "DJANGO_SUPERUSER_EMAIL": "anna@example.org",
    "DJANGO_SUPERUSER_PASSWORD": "correct horse battery",
}


def migrated(factory: pytest.TempPathFactory) -> Path:
    """With all tables, and nothing in them."""
    return _once(factory, "migrated", lambda state: _run("migrate", "-v", "0", state=state))


def copied(factory: pytest.TempPathFactory, state: Path) -> Path:
    """A state folder of which the tables alone are there. On PostgreSQL the product makes them itself."""
    return state if chosen() else databases.copy(migrated(factory), state)


def used(factory: pytest.TempPathFactory) -> Path:
    """With Anna's account, as after a first start. On PostgreSQL each process has its own."""
    if not chosen():
        return _once(factory, "used", lambda state: _use(copied(factory, state)))
    state = factory.mktemp("used") / "state"
    _use(state)
    return state


def _use(state: Path) -> None:
    _run("prepare", state=state)
    _run("createsuperuser", "--noinput", state=state, **OPERATOR)


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
