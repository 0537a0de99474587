"""Reads the timeline in the order in which entries became visible. The feed and the API ask here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.db import connection
from django.db.models.expressions import RawSQL

from runs.models import Notice, Project
from runs.timeline import commit_order

PAGE = 200


@dataclass(frozen=True, slots=True)
class Stretch:
    """Entries in order. `is_waiting`: more are there, but an older transaction may still come first."""

    entries: list[Notice]
    is_waiting: bool = False


def last_id() -> RawSQL:
    """`newest` as a part of another query; NULL when there is no entry."""
    return commit_order.last_id()


def newest() -> int:
    """The id of the last entry, 0 when there is none: where to begin to follow."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT ({commit_order.last_id().sql})")
        row = cursor.fetchone()
    return int(row[0] or 0) if row else 0


def highest() -> int:
    """The highest id there is: unless it has changed there is nothing new. One read of an index."""
    with connection.cursor() as cursor:
        cursor.execute('SELECT max("id") FROM "runs_notice"')
        row = cursor.fetchone()
    return int(row[0] or 0) if row else 0


def after(entry: int, limit: int, project: Project | None = None) -> list[Notice]:
    """At most `limit` entries after one, oldest first; nothing can appear before these later.

    `entry` is an id, 0 for the beginning. Ids need not grow from one entry to the next. After an
    entry that was removed meanwhile some earlier ones may come once more, and none is lost.
    """
    return read(entry, limit, project).entries


def all_after(entry: int, project: Project) -> Iterator[Notice]:
    """All of a project's entries after one, however many; read as they are taken."""
    while found := after(entry, PAGE, project):
        yield from found
        entry = found[-1].pk
        if len(found) < PAGE:
            return


def read(entry: int, limit: int, project: Project | None = None) -> Stretch:
    """`after`, and whether there is more that cannot be told yet."""
    # Never the run: its task and last words weigh more than thousands of entries.
    told = Notice.objects.select_related("project").defer("project__token")
    rows = commit_order.following(told, entry)
    if project is not None:
        rows = rows.filter(project=project)
    found = list(rows[:limit])
    settled = [notice for notice in found if getattr(notice, "is_settled", True)]
    return Stretch(settled, is_waiting=len(settled) < len(found))


def mend_order() -> bool:
    """Put entries that came from another server's dump before all that follow; True when it did.

    Their transaction numbers count another server's transactions: while they are ahead of this
    server's, they would be held back and everything new would be told before them.
    """
    if not commit_order.is_needed():
        return False
    with connection.cursor() as cursor:
        cursor.execute(
            """UPDATE "runs_notice" SET "xid" = '0' WHERE EXISTS (
                SELECT 1 FROM "runs_notice" WHERE "xid" >= pg_snapshot_xmax(pg_current_snapshot())
            )"""
        )
        return bool(cursor.rowcount > 0)
