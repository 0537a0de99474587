"""Fixtures that every test may ask for. A test that reaches the outside without one fails at once."""

from __future__ import annotations

import gc
import shutil
import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import TransactionTestCase

from labsite.database import chosen
from runs.core.paths import Paths
from tests import databases, emptying, make, order, prepared
from tests.chromium import browser, chromium
from tests.fakes import World
from tests.real import RealWorld
from tests.redis_server import redis_installed, redis_server
from tests.web.browser_fixture import tab
from tests.web.browsing import open_page
from tests.web.daphne_fixture import once_served, own_served, prepared_state, served
from tests.web.live_fixture import page_server
from tests.web.people import anna, vera

# Fixtures of page tests, whichever room the page is of.
__all__ = [
    "anna",
    "browser",
    "chromium",
    "once_served",
    "open_page",
    "own_served",
    "page_server",
    "prepared_state",
    "redis_installed",
    "redis_server",
    "served",
    "tab",
    "vera",
]

# With one of these a test's outcome can depend on the database.
DATABASE_FIXTURES = frozenset(
    {"db", "transactional_db", "served", "own_served", "used", "once_used"}
)
# With one of these a test starts programs, whose whole way is walked on SQLite. On PostgreSQL too
# only where what is shown rests on the database, which its mark says.
PROGRAM_FIXTURES = frozenset({"real", "served", "own_served", "used", "once_used", "browser"})
BOTH = "both_databases"
# What asks the database no question that one answers otherwise than the other: not there at all.
ANY = "any_database"
# Of a table of cases the first stands for all there, since they differ in what our rules make of them;
# unless its cases send other statements, or values that only one database keeps.
EVERY_CASE = "every_case"


# Nothing that is imported and collected is garbage; looking through it again and again took as
# long as making it.
gc.disable()

# A shell ignores Ctrl-C for what it starts in the background, `nohup` a closed terminal, and every
# program of the tests would too: one that is to end of it would be waited for until time is up.
# A handler of ours is no handler of theirs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)


def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Make the tables that all processes copy while they collect, so that no test waits for them."""
    if not chosen():
        factory = config._tmp_path_factory
        threading.Thread(target=prepared.migrated, args=(factory,), daemon=True).start()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
    # Commands that tests run in this process set Django up anew. Its log would go to the output that is
    # captured for that one test, and each later warning would fail on a closed file, aloud.
    settings.LOGGING_CONFIG = None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--database-bound",
        action="store_true",
        help="only tests that depend on the database; of those that start programs the marked ones",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items[:] = _in_order(items)
    if config.getoption("--database-bound"):
        chosen = _database_bound(items)
        config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
        items[:] = chosen


def _in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    waiting = [path for path in files if any(_starts_programs(item) for item in files[path])]
    computing = [path for path in files if path not in set(waiting)]
    for some in (waiting, computing):
        some.sort(key=lambda path: order.place(path.parent.name, path.name))
    return [item for path in order.interleaved(waiting, computing) for item in files[path]]


def _starts_programs(item: pytest.Item) -> bool:
    is_one = item.path.parent.name in order.OF_PROGRAMS
    return is_one or bool(PROGRAM_FIXTURES & set(getattr(item, "fixturenames", ())))


def _database_bound(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    chosen = [item for item in items if _is_database_bound(item)]
    first: dict[str, pytest.Item] = {}
    for item in chosen:
        first.setdefault(item.nodeid.partition("[")[0], item)
    firsts = {*first.values()}
    return [item for item in chosen if item in firsts or not _is_one_of_a_table(item)]


def _is_database_bound(item: pytest.Item) -> bool:
    if item.get_closest_marker(ANY) is not None:
        return False
    fixtures = set(getattr(item, "fixturenames", ()))
    if fixtures & PROGRAM_FIXTURES:
        return item.get_closest_marker(BOTH) is not None
    return item.get_closest_marker("django_db") is not None or bool(fixtures & DATABASE_FIXTURES)


def _is_one_of_a_table(item: pytest.Item) -> bool:
    """Whether it is a case that a test lists, and not the same promise on another thing of a fixture."""
    if item.get_closest_marker(EVERY_CASE) is not None or item.get_closest_marker(BOTH) is not None:
        return False
    given = {*getattr(getattr(item, "callspec", None), "params", ())}
    listed = [mark.args[0] for mark in item.iter_markers("parametrize")]
    names = [name.split(",") if isinstance(name, str) else name for name in listed]
    return bool(given) and given <= {name.strip() for some in names for name in some}


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
    """SQLite's file is there before Django makes it: see the next one."""
    return not chosen()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None,
    django_db_keepdb: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Start from a copy of the tables that the run's processes share."""
    migrated, test = prepared.migrated(tmp_path_factory), connection.settings_dict["TEST"]
    if django_db_keepdb:
        shutil.copyfile(Paths(migrated).database, test["NAME"])
    else:
        test["TEMPLATE"] = databases.template(migrated)


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
