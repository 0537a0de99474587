"""On PostgreSQL each timeline entry keeps the number of its transaction (runs/models/order.py)."""

from __future__ import annotations

from django.db import migrations


def add(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            'ALTER TABLE "runs_notice" ADD COLUMN "xid" xid8 NOT NULL DEFAULT pg_current_xact_id()'
        )
        schema_editor.execute('CREATE INDEX "notice_in_order" ON "runs_notice" ("xid", "id")')


def remove(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute('ALTER TABLE "runs_notice" DROP COLUMN "xid"')


class Migration(migrations.Migration):
    dependencies = [("runs", "0005_api_token")]
    operations = [migrations.RunPython(add, remove)]
