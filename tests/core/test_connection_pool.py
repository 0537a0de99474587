"""Work of many threads shares the few connections that are open."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.conf import settings
from django.db import connections

from labsite.database import chosen
from runs import tasks
from runs.core import database
from runs.core.database import ConnectionPool, keep_connection
from runs.models import Project
from tests import make
from tests.patience import PATIENCE

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(bool(chosen()), reason="a connection to a server never stays"),
]


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pool(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[ConnectionPool]:
    made = ConnectionPool(clock)
    monkeypatch.setattr(database, "pool", made)
    yield made
    made.close_idle(0)


def in_new_thread(work: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as one:
        return one.submit(work).result(PATIENCE)


def carried_out(during: Callable[[], object] = lambda: None) -> Callable[[], Any]:
    """Work of the worker; returns the connection that it used."""
    used: list[Any] = []

    @keep_connection
    def work() -> None:
        assert Project.objects.count() == 1
        used.append(connections["default"].connection)
        during()

    def carry_out() -> Any:
        work()
        return used[-1]

    return carry_out


@pytest.fixture(autouse=True)
def project() -> None:
    make.a_project()


@pytest.mark.usefixtures("pool")
def test_what_comes_after_uses_the_same_connection_in_any_thread() -> None:
    assert in_new_thread(carried_out()) is in_new_thread(carried_out())


@pytest.mark.usefixtures("pool")
def test_what_is_at_work_at_the_same_time_has_connections_of_its_own() -> None:
    both = threading.Barrier(2, timeout=PATIENCE)
    with ThreadPoolExecutor(2) as two:
        found = [two.submit(carried_out(both.wait)) for _ in range(2)]
        first, second = (one.result(PATIENCE) for one in found)
    assert first is not second


def test_a_connection_that_nobody_uses_for_a_while_is_closed(
    pool: ConnectionPool, clock: Clock
) -> None:
    first = in_new_thread(carried_out())
    clock.seconds = database.REST_SECONDS - 1
    pool.close_idle()
    assert in_new_thread(carried_out()) is first
    clock.seconds += database.REST_SECONDS
    pool.close_idle()
    assert in_new_thread(carried_out()) is not first


@pytest.mark.usefixtures("pool")
def test_work_inside_other_work_and_a_thread_with_a_connection_use_the_open_one() -> None:
    inner: list[Any] = []
    outer = in_new_thread(carried_out(lambda: inner.append(carried_out()())))
    assert inner == [outer]

    def with_its_own() -> tuple[Any, Any, Any]:
        try:
            Project.objects.count()
            own = connections["default"].connection
            return own, carried_out()(), connections["default"].connection
        finally:
            connections.close_all()

    own, used, after = in_new_thread(with_its_own)
    assert own is used is after


@pytest.mark.usefixtures("pool")
def test_a_connection_that_failed_is_given_to_nobody() -> None:
    def fail() -> None:
        connections["default"].errors_occurred = True

    assert in_new_thread(carried_out(fail)) is not in_new_thread(carried_out())


def test_the_worker_closes_what_nobody_uses_whenever_it_tidies() -> None:
    assert settings.HUEY.before_tidying == tasks.pool.close_idle
