"""What a test stored in transactions of its own goes away after it, cheaper than by Django's flush.

The flush truncates on PostgreSQL, which makes new files for some fifty tables and their indexes
(0.1 s), and it writes anew the permissions that it threw away (0.03 s on either database). Here
rows are deleted, of which a test leaves few, and permissions stay as the migrations made them.
"""

from __future__ import annotations

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
    found = database.introspection.django_table_names(only_existing=True, include_views=False)
    names = [database.ops.quote_name(name) for name in sorted({*found} - KEPT)]
    statements = [f"DELETE FROM {name}" for name in names]  # noqa: S608
    if database.vendor == "postgresql":  # many statements in one message
        statements = ["; ".join([f"LOCK TABLE {', '.join(names)} IN EXCLUSIVE MODE", *statements])]
    with transaction.atomic(database.alias), database.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
