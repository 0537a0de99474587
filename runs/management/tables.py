"""The tables of the database, brought up to date."""

from __future__ import annotations

from django.core.management import call_command
from django.core.management.sql import emit_post_migrate_signal
from django.db import DEFAULT_DB_ALIAS, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader


class TooNew(Exception):
    """A newer version has changed these tables; this one would read and write them wrongly."""


def newer_steps(loader: MigrationLoader) -> list[str]:
    """The migrations in the database that this version does not know, as "app.name"."""
    known, applied = set(loader.disk_migrations), set(loader.applied_migrations)
    labels = {label for label, _ in known}
    replaced = {old for step in loader.disk_migrations.values() for old in step.replaces}
    found = {step for step in applied - known - replaced if step[0] in labels}
    return sorted(".".join(step) for step in found)


def bring_up_to_date() -> None:
    """Migrate what is behind. Raises TooNew, and nothing was changed.

    Where nothing is behind, Django's command would still build all models.
    """
    executor = MigrationExecutor(connection)
    newer = newer_steps(executor.loader)
    if newer:
        raise TooNew(", ".join(newer))
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", interactive=False, verbosity=0)
    else:
        # Permissions come after the tables, and an earlier start may have ended between the two.
        emit_post_migrate_signal(verbosity=0, interactive=False, db=DEFAULT_DB_ALIAS)
