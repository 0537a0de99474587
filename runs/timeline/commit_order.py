"""The order in which timeline entries became visible to others, which ids alone do not tell.

PostgreSQL gives an id when a row is written, but others see the row when its transaction commits:
whoever follows ids loses what commits late. There each entry also keeps its transaction's number
in `xid`, a column that only that database has (migration 0052), and is told once no older
transaction of this database can still commit; the server's other databases keep nothing back. SQLite has one writer, so ids are in order (docs/decisions/0009).
"""

from __future__ import annotations

from typing import Any, TypeVar

from django.db import connection
from django.db.models import BigIntegerField, BooleanField, F, Func, Q, QuerySet, TextField
from django.db.models.expressions import RawSQL

_HIGHEST = 'SELECT max("id") FROM "runs_notice"'
# The oldest transaction that this statement does not see and that may write here. One that was
# under way and is known to be of another database does not count; one that has just ended does.
_HORIZON = """COALESCE(
    (SELECT going FROM pg_snapshot_xip(pg_current_snapshot()) AS going
     WHERE going::xid NOT IN (
         SELECT held.transactionid FROM pg_locks held JOIN pg_stat_activity who USING (pid)
         WHERE held.locktype = 'transactionid' AND held.granted
           AND who.datname <> current_database())
     ORDER BY going LIMIT 1),
    pg_snapshot_xmax(pg_current_snapshot()))"""
_SETTLED = f'({{t}}."xid" < {_HORIZON} OR {{t}}."xid" = pg_current_xact_id_if_assigned())'
_LAST_SETTLED = (
    f'SELECT n."id" FROM "runs_notice" n WHERE {_SETTLED.format(t="n")} '  # noqa: S608
    'ORDER BY n."xid" DESC, n."id" DESC LIMIT 1'
)

Rows = TypeVar("Rows", bound=QuerySet[Any])

# Ids this far below a removed entry are told again: they may have become visible after it.
SLACK = 50


def is_needed() -> bool:
    """Whether ids of this database are out of order."""
    return connection.vendor == "postgresql"


class _OfEntry(Func):
    """SQL on columns of the entry's table, by whatever name the query calls that table."""

    sql = ""

    def __init__(self, *values: int, output_field: Any = None) -> None:
        self.values = values
        super().__init__(F("pk"), output_field=output_field or BooleanField())

    def as_sql(self, compiler: Any, connection: Any, **_: Any) -> tuple[str, list[Any]]:  # type: ignore[override]
        column, params = compiler.compile(self.source_expressions[0])
        return self.sql.format(t=column.rpartition(".")[0]), [*params, *self.values]


class _Transaction(_OfEntry):
    """The number of the transaction that wrote the entry."""

    sql = '{t}."xid"'

    def __init__(self) -> None:
        super().__init__(output_field=TextField())


class _IsSettled(_OfEntry):
    """No transaction that began before the entry's can still commit. Our own entries count."""

    sql = _SETTLED


class _IsAfter(_OfEntry):
    """The entry comes after another one, named by its id; a removed one stands before its time."""

    sql = """({t}."xid", {t}."id") > (
        COALESCE(
            (SELECT "xid" FROM "runs_notice" WHERE "id" = %s),
            (SELECT "xid" FROM "runs_notice" WHERE "id" >= %s ORDER BY "xid" LIMIT 1)
        ),
        COALESCE((SELECT "id" FROM "runs_notice" WHERE "id" = %s), 0)
    )"""

    def __init__(self, entry: int) -> None:
        super().__init__(entry, entry - SLACK, entry)


def last_id() -> RawSQL:
    """The id of the last entry that is settled, to be part of another query; NULL without one."""
    return RawSQL(_LAST_SETTLED if is_needed() else _HIGHEST, [], BigIntegerField())  # noqa: S611


def following(rows: Rows, entry: int) -> Rows:
    """Entries after one, oldest first, each with `is_settled`; those that are not come last."""
    if not is_needed():
        return rows.filter(pk__gt=entry).order_by("pk")
    after = _IsAfter(entry) if entry else Q()
    return rows.filter(after).annotate(is_settled=_IsSettled()).order_by(_Transaction(), "pk")
