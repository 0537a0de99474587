"""What a connection to a database in a file tells: another file in its place, and what others wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from labsite.engines.sqlite.base import DatabaseWrapper
from runs.core import database

pytestmark = pytest.mark.django_db


def _open(file: Path) -> DatabaseWrapper:
    made = DatabaseWrapper(
        {**connections["default"].settings_dict, "NAME": str(file), "OPTIONS": {}}
    )
    made.connect()
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "some.sqlite3"


def test_a_file_that_was_replaced_or_removed_is_noticed(file: Path) -> None:
    opened = _open(file)
    assert not opened.is_replaced
    file.rename(file.with_suffix(".old"))
    assert opened.is_replaced
    file.touch()
    assert opened.is_replaced
    opened.close()
    assert not opened.is_replaced


def test_work_that_comes_again_keeps_its_connection_until_another_file_is_there(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = _open(file)
    monkeypatch.setattr(database, "connection", opened)
    seen: list[Any] = []

    @database.keep_connection
    def work(number: int) -> None:
        opened.ensure_connection()
        seen.append(opened.connection)
        if number == 2:
            file.rename(file.with_suffix(".old"))

    for number in range(4):
        work(number)
    assert seen[0] is seen[1] is seen[2]
    assert seen[3] is not seen[2]
    opened.close()


def test_a_connection_that_failed_is_not_kept(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = _open(file)
    monkeypatch.setattr(database, "connection", opened)

    @database.keep_connection
    def work() -> None:
        opened.errors_occurred = True

    work()
    assert opened.connection is None


def test_what_others_write_makes_another_version(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, writes = _open(file), _open(file)
    monkeypatch.setattr(database, "connection", reads)
    with writes.cursor() as cursor:
        cursor.execute("CREATE TABLE one (a)")
        before = database.read_version()
        assert database.read_version() == before
        cursor.execute("INSERT INTO one VALUES (1)")
    assert database.read_version() != before
    reads.close()
    writes.close()
