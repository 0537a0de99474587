"""The order of the timeline on PostgreSQL, which no field of a model says."""

from __future__ import annotations


def keep_order(apps, schema_editor):
    """On PostgreSQL each timeline entry keeps the number of its transaction (runs/timeline/commit_order.py)."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            'ALTER TABLE "runs_notice" ADD COLUMN "xid" xid8 NOT NULL DEFAULT pg_current_xact_id()'
        )
        schema_editor.execute('CREATE INDEX "notice_in_order" ON "runs_notice" ("xid", "id")')
