"""The database is locked, full or gone: pages say so, ticks go on afterwards, nothing is half stored."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.db import IntegrityError, OperationalError, connection
from django.test import Client
from psycopg.errors import ReadOnlySqlTransaction, UniqueViolation

from labsite import database as database_settings
from labsite.engines.postgresql.base import DatabaseWrapper
from runs import tick
from runs.core.database_trouble import database_words
from runs.core.states import Outcome
from runs.dispatch import start_requests
from runs.lifecycle import launch, outcomes
from runs.models import Notice, Run, Settings, StartRequest
from tests import make
from tests.patience import PATIENCE
from tests.world.stories import look, ready

pytestmark = pytest.mark.django_db(transaction=True)
on_sqlite = pytest.mark.skipif(
    "sqlite" not in django_settings.DATABASES["default"]["ENGINE"],
    reason="locks the whole database, which only SQLite has",
)

HOLD = """
import sqlite3, sys, time
held = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=120)
held.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
held.execute("ROLLBACK")
"""


@contextlib.contextmanager
def locked(database: str) -> Iterator[subprocess.Popen[str]]:
    """Another process holds the database."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, database],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    try:
        yield holder
    finally:
        holder.stdin.close()
        holder.stdout.close()
        holder.wait(PATIENCE)


@contextlib.contextmanager
def waiting(seconds: float) -> Iterator[str]:
    """This process waits for a lock that long; the answer is the path of the database."""
    options = connection.settings_dict["OPTIONS"]
    before, options["timeout"] = options["timeout"], seconds
    connection.close()
    try:
        yield str(connection.settings_dict["NAME"])
    finally:
        options["timeout"] = before
        connection.close()


def impatient() -> contextlib.AbstractContextManager[str]:
    """It hardly waits."""
    return waiting(0.2)


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("database is locked", "Another program holds"),
        ("canceling statement due to lock timeout", "Another program holds"),
        ("unable to open database file", "Bring the folder back"),
        ("attempt to write a readonly database", "Bring the folder back"),
        ("no such table: runs_run", "Bring the folder back"),
        ("database or disk is full", "Make room"),
        ("could not extend file: No space left on device", "Make room"),
        ("disk I/O error", "Make room"),
        ("cannot execute UPDATE in a read-only transaction", "takes changes again"),
        ("connection refused", "does not answer just now"),
    ],
)
def test_what_the_database_said_becomes_what_to_do(said, word):
    assert word in database_words(said)
    assert "agents are not touched" in database_words(said)


def test_a_server_that_only_reads_is_one_that_cannot_be_used() -> None:
    errors = DatabaseWrapper({}).wrap_database_errors
    with pytest.raises(OperationalError, match="read-only"), errors:
        raise ReadOnlySqlTransaction("cannot execute UPDATE in a read-only transaction")
    with pytest.raises(IntegrityError), errors:
        raise UniqueViolation("duplicate key")


@pytest.mark.real
@on_sqlite
def test_a_locked_database_makes_a_tick_blind_and_the_next_one_goes_on(world):
    world.tracker.add_root("demo")
    run = make.a_run(make.a_project())
    world.live(run)
    look(world)
    world.sessions.end(run.session)
    with impatient() as database, locked(database):
        report = tick.tick(world.lab, force=True)
        assert report.was_blind
        assert report.errors == [database_words("database is locked")]
    assert run.session in world.sessions.all
    assert tick.tick(world.lab, force=True).ended == 1
    run.refresh_from_db()
    assert run.outcome == "died"
    assert Notice.objects.filter(kind="run.ended").count() == 1


@pytest.mark.real
@on_sqlite
def test_a_lock_in_the_middle_of_a_tick_loses_no_outcome(world):
    """Taken while the tracker is asked; the lease cannot be given back either.

    The same worker goes on at once, since it knows that its tick is over. Others wait.
    """
    world.tracker.add_root("demo")
    run = make.a_run(make.a_project())
    world.live(run)
    world.tracker.add_pull("demo", "afk/7")
    with contextlib.ExitStack() as stack:
        database = stack.enter_context(impatient())

        class Late:
            def __getattr__(self, name):  # type: ignore[no-untyped-def]
                return getattr(world.tracker, name)

            def pulls(self, heads):  # type: ignore[no-untyped-def]
                stack.enter_context(locked(database))
                return world.tracker.pulls(heads)

        report = tick.tick(replace(world.lab, tracker_for=lambda kind: Late()), force=True)
        assert report.ended == 0
        assert report.errors
    run.refresh_from_db()
    assert run.is_active
    other = replace(world.lab, process="boot:2:2")
    assert tick.tick(other, force=True).was_skipped
    assert tick.tick(world.lab, force=True).ended == 1
    run.refresh_from_db()
    assert run.outcome == "succeeded"


@pytest.mark.real
@on_sqlite
def test_pages_are_read_through_a_lock_and_a_click_is_told_to_come_again(world, operator):
    project = make.a_project(agent=make.an_agent())
    world.tracker.add_root("demo")
    run = make.a_run(project)
    world.live(run)
    Settings.current()
    client = Client(raise_request_exception=False)
    client.force_login(operator)
    with impatient() as database, locked(database):
        assert client.get("/").status_code == 200
        assert client.get(f"/runs/{run.pk}/").status_code == 200
        page = client.post(f"/runs/{run.pk}/stop", {"sure": "yes"})
        assert page.status_code == 503
        assert page["Retry-After"]
        assert b"Another program holds the database" in page.content
        part = client.post(f"/projects/{project.pk}/start", headers={"HX-Request": "true"})
        assert part.status_code == 503
        assert b'hx-target="#banner"' in part.content
        assert b"Load the page again" in part.content
    run.refresh_from_db()
    assert run.is_active
    assert not StartRequest.objects.exists()
    assert client.post(f"/runs/{run.pk}/stop", {"sure": "yes"}).status_code in (200, 303)


@on_sqlite
def test_a_start_that_could_not_be_stored_keeps_its_agent(day):
    """The agent works already when "working" cannot be stored: the next tick stores it."""
    ready(day.real)
    start_requests.request(day.real.lab, day.project, "anna")
    tick.tick(day.real.lab, project="demo")
    run = Run.objects.get()
    with contextlib.ExitStack() as stack:
        database = stack.enter_context(impatient())
        late = replace(day.real.lab, pause=lambda _: stack.enter_context(locked(database)))
        launch.carry_out(late, run.pk)
    assert day.again(run).state == "starting"
    assert day.real.session_names() == [run.session]
    Run.objects.filter(pk=run.pk).update(launcher="boot:1:1")
    look(day.real)
    assert day.again(run).state == "working"
    assert day.real.session_names() == [run.session]


@pytest.mark.real
@on_sqlite
def test_seconds_of_a_real_lock_are_waited_out_and_ten_would_be(world):
    """With the patience that the product really has: the click takes long, and it counts."""
    world.tracker.add_root("demo")
    run = make.a_run(make.a_project())
    patience = database_settings.settings("", Path())["OPTIONS"]["timeout"]
    assert patience == 10
    with waiting(patience) as database, locked(database) as holder:
        assert holder.stdin is not None
        began = time.monotonic()
        release = threading.Timer(2.0, holder.stdin.close)
        release.start()
        assert outcomes.record(world.lab, run, Outcome.STOPPED, "stopped by anna")
        assert time.monotonic() - began >= 2
        release.join()
    run.refresh_from_db()
    assert run.outcome == "stopped"
