"""Which tests run on PostgreSQL: the fewest that together ask all that is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import DatabaseError, connection, transaction

from runs.models import Project, Settings
from runs.timeline import queries
from tests.statements import Asked, Recorder, cover, form, read


def asked(forms: str, statements: int = 1, connections: int = 1, *, is_kept: bool = False) -> Asked:
    return Asked(is_kept, {*forms}, {*range(connections)}, statements)


@pytest.mark.parametrize(
    "tests, chosen",
    [
        ({"one": asked("ab"), "more": asked("abc")}, ["more"]),
        ({"long": asked("abc", 900), "a": asked("ab"), "b": asked("bc")}, ["a", "b"]),
        ({"marked": asked("a", is_kept=True), "more": asked("ab")}, ["marked", "more"]),
        ({"race": asked("a", connections=2), "more": asked("ab")}, ["race", "more"]),
        ({"unseen": asked("", 0), "more": asked("ab")}, ["unseen", "more"]),
        ({"of makers alone": asked(""), "more": asked("a")}, ["more"]),
        ({"twin": asked("a"), "other twin": asked("a")}, ["other twin"]),
        ({"wide": asked("abcd"), "a": asked("abe", 9), "b": asked("cdf", 9)}, ["a", "b"]),
    ],
)
def test_a_test_is_left_out_when_others_ask_all_that_it_asks(
    tests: dict[str, Asked], chosen: list[str]
) -> None:
    assert cover(tests) == chosen


@pytest.mark.parametrize(
    "one, other",
    [
        ("SELECT a WHERE b IN (%s, %s)", "SELECT a WHERE b IN (%s)"),
        ("INSERT INTO a (b, c) VALUES (%s, %s), (%s, %s)", "INSERT INTO a (b, c) VALUES (%s, %s)"),
        ('SAVEPOINT "s1_x2"', 'SAVEPOINT "s3_x4"'),
        ("SELECT a LIMIT 21", "SELECT a LIMIT 3"),
    ],
)
def test_statements_that_differ_in_values_alone_have_one_form(one: str, other: str) -> None:
    assert form(one) == form(other)


@pytest.mark.django_db
def test_a_record_names_the_line_of_the_product_that_asks_and_what_the_database_refused(
    tmp_path: Path,
) -> None:
    recorder = Recorder()
    connection.execute_wrappers.append(recorder._execute)
    try:
        with recorder.recording("one", is_kept=False):
            queries.newest()
            list(Project.objects.all())
        with (
            recorder.recording("refused", is_kept=True),
            pytest.raises(DatabaseError),
            # PostgreSQL answers nothing more in a transaction one statement of which failed.
            transaction.atomic(),
        ):
            connection.cursor().execute("SELECT nothing")
        queries.newest()
        Settings.objects.all().delete()
        with recorder.recording("kept whole", is_kept=False):
            Settings.current()
    finally:
        connection.execute_wrappers.remove(recorder._execute)
    recorder.write(tmp_path)
    whole, one, refused = (read(tmp_path)[name] for name in ("kept whole", "one", "refused"))
    (said,) = one.forms
    assert said.startswith("/runs/timeline/queries.py:")
    assert 'FROM "runs_notice"' in said
    assert (one.statements, len(one.connections), one.is_kept) == (2, 1, False)
    (said,) = refused.forms
    assert "nothing" in said
    assert refused.is_kept
    assert any("INSERT" in form for form in whole.forms)
    assert not any("SAVEPOINT" in form for form in whole.forms)
