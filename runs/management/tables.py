"""The tables of the database, brought up to date."""

from __future__ import annotations

from django.core.management import call_command
from django.core.management.sql import emit_post_migrate_signal
from django.db import DEFAULT_DB_ALIAS, connection
from django.db.migrations.executor import MigrationExecutor


def bring_up_to_date() -> None:
    """Migrate what is behind. Where nothing is, Django's command would still build all models."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", interactive=False, verbosity=0)
    else:
        # Permissions come after the tables, and an earlier start may have ended between the two.
        emit_post_migrate_signal(verbosity=0, interactive=False, db=DEFAULT_DB_ALIAS)
