"""What a test stored in transactions of its own goes away after it, cheaper than by Django's flush.

The flush truncates on PostgreSQL, which makes new files for some fifty tables and their indexes
(0.1 s), and it writes anew the permissions that it threw away (0.03 s on either database). Here
rows are deleted, of which a test leaves few, and permissions stay as the migrations made them.
"""

from __future__ import annotations

import functools
from typing import Any

from django.db import connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

# Only migrations write them.
KEPT = frozenset({"django_content_type", "auth_permission", "django_migrations"})


def after_test(case: Any) -> None:
    """In place of `TransactionTestCase._fixture_teardown`, for the one database that there is."""
    assert not (case.reset_sequences or case.serialized_rollback or case.available_apps)
    empty(connection)


def empty(database: BaseDatabaseWrapper) -> None:
    """Delete all rows of all tables; like a truncation it waits for whoever still writes."""
    names = _tables(database)
    with transaction.atomic(database.alias), database.cursor() as cursor:
        if database.vendor == "postgresql":  # many statements in one message
            statements = [f"DELETE FROM {name}" for name in names]  # noqa: S608
            locked = f"LOCK TABLE {', '.join(names)} IN EXCLUSIVE MODE"
            cursor.execute("; ".join([locked, *statements]))
            return
        # Its transactions write from their first statement on. Few tables hold anything, and one
        # question finds them in a third of the time that deleting from all of them takes.
        cursor.execute(_question(names))
        for name, is_full in zip(names, cursor.fetchone(), strict=True):
            if is_full:
                cursor.execute(f"DELETE FROM {name}")  # noqa: S608


def _tables(database: BaseDatabaseWrapper) -> tuple[str, ...]:
    """All but the kept ones, quoted. Tests make and drop none."""
    key = (database.vendor, str(database.settings_dict["NAME"]))
    if key not in _known:
        found = database.introspection.django_table_names(only_existing=True, include_views=False)
        _known[key] = tuple(database.ops.quote_name(name) for name in sorted({*found} - KEPT))
    return _known[key]


@functools.cache
def _question(names: tuple[str, ...]) -> str:
    return "SELECT " + ", ".join(f"EXISTS(SELECT 1 FROM {name})" for name in names)  # noqa: S608


_known: dict[tuple[str, str], tuple[str, ...]] = {}
