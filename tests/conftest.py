"""Fixtures that every test may ask for. A test that reaches the outside without one fails at once."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import TransactionTestCase

from labsite.database import chosen
from runs.core.paths import Paths
from tests import emptying, make, prepared
from tests.chromium import browser, chromium
from tests.fakes import World
from tests.real import RealWorld
from tests.web.browser_fixture import tab
from tests.web.browsing import open_page
from tests.web.daphne_fixture import prepared_state, served
from tests.web.live_fixture import page_server
from tests.web.people import anna, vera

# Fixtures of page tests, whichever room the page is of.
__all__ = [
    "anna",
    "browser",
    "chromium",
    "open_page",
    "page_server",
    "prepared_state",
    "served",
    "tab",
    "vera",
]

# With one of these a test's outcome can depend on the database.
DATABASE_FIXTURES = frozenset({"db", "transactional_db", "served", "used", "once_used"})
# With one of these a test starts programs, whose whole way is walked on SQLite. On PostgreSQL too
# only where what is shown rests on the database, which its mark says.
PROGRAM_FIXTURES = frozenset({"real", "served", "used", "once_used", "browser"})
BOTH = "both_databases"
# What asks the database no question that one answers otherwise than the other: not there at all.
ANY = "any_database"


# Nothing that is imported and collected is garbage; looking through it again and again took as
# long as making it.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--database-bound",
        action="store_true",
        help="only tests that depend on the database; of those that start programs the marked ones",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--database-bound"):
        return
    chosen = [item for item in items if _is_database_bound(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen


def _is_database_bound(item: pytest.Item) -> bool:
    if item.get_closest_marker(ANY) is not None:
        return False
    fixtures = set(getattr(item, "fixturenames", ()))
    if fixtures & PROGRAM_FIXTURES:
        return item.get_closest_marker(BOTH) is not None
    return item.get_closest_marker("django_db") is not None or bool(fixtures & DATABASE_FIXTURES)


# How fast examples come is a matter of the machine; a busy one makes no test wrong. They are the same
# in every run: what a new one would find says nothing of the change that is tested.
hypothesis.settings.register_profile(
    "labsite",
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("labsite")


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """The database is there before Django makes it: see the next one."""
    return not chosen()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None,
    django_db_keepdb: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Start from the tables that the run's processes share; on PostgreSQL Django makes them."""
    if django_db_keepdb:
        made = Paths(prepared.migrated(tmp_path_factory)).database
        shutil.copyfile(made, connection.settings_dict["TEST"]["NAME"])


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", emptying.after_test)
        yield


@pytest.fixture
def world(tmp_path: Path, settings: Any) -> World:
    """A fake outside; `runs.wiring.lab()` gives its Lab."""
    made = World(tmp_path / "state")
    settings.RUNS_LAB = lambda: made.lab
    return made


@pytest.fixture
def real(tmp_path: Path, settings: Any, transactional_db: None) -> Iterator[RealWorld]:
    """Real tmux and git; `runs.wiring.lab()` gives its Lab."""
    made = RealWorld(tmp_path)
    settings.RUNS_LAB = lambda: made.lab
    yield made
    made.close()


@pytest.fixture
def operator(db: None) -> User:
    """Anna, who may act."""
    return make.a_user("anna")


@pytest.fixture
def viewer(db: None) -> User:
    """Vera, who may look."""
    return make.a_user("vera", operator=False)
