"""Health: for machines at two addresses, for people as the age of the last tick."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from runs.models import Host, Settings
from runs.overview import worker_health
from tests.fakes import World
from tests.web.people import text_of

pytestmark = pytest.mark.django_db


def _ticked(world: World, error: str = "") -> Host:
    return Host.objects.create(name="local", last_tick_at=world.clock.now, last_error=error)


def test_the_process_answers_without_login_and_without_the_database(
    client: Client, django_assert_num_queries: Any
) -> None:
    client.cookies["lab_session"] = "a cookie that would need a look into the database"
    with django_assert_num_queries(0):
        answer = client.get("/healthz")
    assert (answer.status_code, answer.content) == (200, b"ok\n")
    assert answer.headers["Cache-Control"] == "no-store"


def test_health_is_only_read(client: Client) -> None:
    assert [client.post(address).status_code for address in ("/healthz", "/readyz")] == [405, 405]


@pytest.mark.row("X-13", level="contract")
def test_ready_tells_database_queue_and_the_last_tick(client: Client, world: World) -> None:
    _ticked(world)
    world.clock.forward(seconds=20)
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json() == {
        "ready": True,
        "database": "answers",
        "queue": "answers",
        "last_tick": {"at": "2026-11-21T12:00:00+00:00", "age_seconds": 20, "is_late": False},
    }


@pytest.mark.row("X-13", level="contract")
def test_a_tick_older_than_two_intervals_is_a_warning_and_no_failure(
    client: Client, world: World
) -> None:
    _ticked(world, "tmux: token=secret")
    world.clock.forward(seconds=61)
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["last_tick"]["is_late"] is True
    assert "Is the worker running?" in answer.json()["warning"]
    assert "secret" not in text_of(answer)


@pytest.mark.row("X-13", level="contract")
def test_a_product_that_never_ticked_is_late(client: Client, world: World) -> None:
    body = client.get("/readyz").json()
    assert body["last_tick"] == {"at": None, "age_seconds": None, "is_late": True}


def test_a_database_or_queue_that_does_not_answer_is_not_ready(
    client: Client, world: World, settings: Any
) -> None:
    class Broken:
        def pending_count(self) -> int:
            raise OSError("disk I/O error, password=secret")

    settings.HUEY = Broken()
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert (answer.json()["ready"], answer.json()["queue"]) == (False, "does not answer")
    assert "secret" not in text_of(answer)


def test_a_database_that_does_not_answer_is_not_ready(
    client: Client, world: World, settings: Any
) -> None:
    def broken() -> None:
        raise RuntimeError("database is locked, password=secret")

    settings.RUNS_LAB = broken
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"ready": False, "database": "does not answer", "queue": "answers"}


@pytest.mark.row("X-13", level="contract")
def test_the_age_of_the_last_tick_is_one_query(
    world: World, django_assert_num_queries: Any
) -> None:
    host = _ticked(world, "tmux did not answer")
    interval = Settings.current().tick_interval
    with django_assert_num_queries(1):
        told = worker_health.last_tick(world.clock.forward(seconds=60), host.name, interval)
    assert (told.at, told.is_late, told.error) == (host.last_tick_at, False, "tmux did not answer")
    assert worker_health.last_tick(world.clock.forward(seconds=1), host.name, interval).is_late


@pytest.mark.row("X-15", level="contract")
def test_a_clock_set_back_gives_no_negative_age(world: World) -> None:
    _ticked(world)
    told = worker_health.last_tick(world.clock.forward(hours=-1), world.lab.host)
    assert told.age is not None
    assert told.age.total_seconds() == 0
    assert not told.is_late


def test_of_several_hosts_its_own_counts_and_without_one_the_newest(world: World) -> None:
    first = _ticked(world)
    later = world.clock.forward(minutes=5)
    Host.objects.create(name="other", last_tick_at=later)
    Host.objects.create(name="gone", last_tick_at=world.clock.now, removed_at=later)
    assert worker_health.last_tick(later, first.name).at == first.last_tick_at
    assert worker_health.last_tick(later, "web alone").at == later
