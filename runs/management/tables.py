"""The tables of the database, brought up to date."""

from __future__ import annotations

from django.core.management import call_command
from django.core.management.sql import emit_post_migrate_signal
from django.db import DEFAULT_DB_ALIAS, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from runs.core.upgrading import Gap, gap


class TooNew(Exception):
    """A newer version has changed these tables; this one would read and write them wrongly."""


class TooOld(Exception):
    """An older version stopped where this one has no migrations any more."""


def in_the_way(loader: MigrationLoader) -> Gap:
    """The migrations in the database that keep this version from it."""
    replaced = {old for step in loader.disk_migrations.values() for old in step.replaces}
    return gap(loader.applied_migrations, {*loader.disk_migrations, *replaced})


def bring_up_to_date() -> None:
    """Migrate what is behind. Raises TooNew or TooOld, and nothing was changed.

    Where nothing is behind, Django's command would still build all models.
    """
    executor = MigrationExecutor(connection)
    found = in_the_way(executor.loader)
    if found.newer:
        raise TooNew(", ".join(found.newer))
    if found.older:
        raise TooOld(", ".join(found.older))
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", interactive=False, verbosity=0)
    else:
        # Permissions come after the tables, and an earlier start may have ended between the two.
        emit_post_migrate_signal(verbosity=0, interactive=False, db=DEFAULT_DB_ALIAS)
