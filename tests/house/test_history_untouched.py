"""What the product asks again and again never reads all runs or the whole timeline, however long they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from runs import heartbeat, offers, tick
from runs.conversation import keeping
from runs.models import Run
from runs.timeline.folding import Folding
from tests.fakes import World
from tests.web import board_rows as rows

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="it is SQLite's plan that is read"),
]
TABLES = ("runs_run", "runs_notice")


@contextmanager
def asked() -> Iterator[list[tuple[str, Any]]]:
    """Each question with its parameters as they are bound: what is put into a text has another plan."""
    found: list[tuple[str, Any]] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("SELECT"):
            found.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield found


def whole_tables(sql: str, params: Any) -> list[str]:
    """The steps of its plan that read one of the long tables from end to end."""
    named = re.findall(r'"(runs_\w+|auth_\w+)" ([A-Z]+\d+)\b', sql)
    # Parts of one statement may call different tables the same: those cannot be told apart here.
    other = {alias for table, alias in named if table not in TABLES}
    aliases = {alias for table, alias in named if table in TABLES} - other
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
        plan = [row[3] for row in cursor.fetchall()]
    scans = [re.fullmatch(r"SCAN (\w+)", step) for step in plan]
    return [found[0] for found in scans if found and found[1] in {*TABLES, *aliases}]


@pytest.mark.parametrize(
    "what", ["tick", "due", "beat", "keep", "fold", "/", "/needs/", "project", "run"]
)
def test_no_question_reads_a_long_table_whole(
    what: str, client: Client, operator: User, world: World
) -> None:
    project = rows.full_board(world, 2)
    client.force_login(operator)
    address = {
        "project": f"/projects/{project.pk}/",
        "run": f"/runs/{Run.objects.latest('pk').pk}/",
    }.get(what, what)
    with asked() as questions:
        if what == "tick":
            tick.tick(world.lab, force=True)
        elif what == "due":
            offers.Offers()._ask(world.lab)
        elif what == "beat":
            heartbeat.beat(world.lab)
        elif what == "keep":
            keeping.waiting("local", world.clock.now).exists()
        elif what == "fold":
            Folding().tend(world.lab)
        else:
            assert client.get(address).status_code == 200
    assert questions
    found = {sql: whole for sql, params in questions if (whole := whole_tables(sql, params))}
    assert found == {}
