"""The tables of the database, brought up to date."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.apps import apps
from django.core.management import call_command
from django.core.management.sql import emit_post_migrate_signal
from django.db import DEFAULT_DB_ALIAS, connection
from django.db.migrations.recorder import MigrationRecorder

from runs.core.upgrading import Gap, gap
from runs.migrations import _commit_order, _seed

if TYPE_CHECKING:
    from django.db.migrations.executor import MigrationExecutor
    from django.db.migrations.loader import MigrationLoader

LOCK = 0x6C616273697465  # any number that no other program of this database uses


class TooNew(Exception):
    """A newer version has changed these tables; this one would read and write them wrongly."""


class TooOld(Exception):
    """An older version stopped where this one has no migrations any more."""


def in_the_way(loader: MigrationLoader) -> Gap:
    """The migrations in the database that keep this version from it."""
    return gap(loader.applied_migrations, loader.disk_migrations)


def bring_up_to_date() -> None:
    """Migrate what is behind. Raises TooNew or TooOld, and nothing was changed.

    Where nothing is behind, Django's command would still build all models. On a server the parts of
    the product may start at once on several machines: the second finds the work of the first.
    """
    with _alone():
        _bring_up_to_date()


@contextmanager
def _alone() -> Iterator[None]:
    """Hold a lock of the server for all who bring this database up to date; a file has its own."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = 0")
        cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
            cursor.execute("RESET lock_timeout")


def _bring_up_to_date() -> None:
    applied = {*MigrationRecorder(connection).applied_migrations()}
    if applied != _on_disk():
        _migrate()
    # Permissions come after the tables, and an earlier start may have ended between the two.
    emit_post_migrate_signal(verbosity=0, interactive=False, db=DEFAULT_DB_ALIAS)


def _on_disk() -> set[tuple[str, str]]:
    """Names of all migrations, none of which is loaded for that."""
    return {
        (app.label, found.name)
        for app in apps.get_app_configs()
        for found in pkgutil.iter_modules([f"{app.path}/migrations"])
        if found.name[0] not in "_~"
    }


def _migrate() -> None:
    from django.db.migrations.executor import MigrationExecutor

    executor = MigrationExecutor(connection)
    found = in_the_way(executor.loader)
    if found.newer:
        raise TooNew(", ".join(found.newer))
    if found.older:
        raise TooOld(", ".join(found.older))
    if not connection.introspection.table_names():
        create(executor)
    elif executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", interactive=False, verbosity=0)


def create(executor: MigrationExecutor) -> None:
    """Make all tables of an empty database from the models, in one transaction, as if migrated.

    Migrations would make and change them one after the other, and build all models anew each time.
    What a migration does to rows does nothing where there are none, but for the two named here.
    """
    plan = [step for step, _ in executor.migration_plan(executor.loader.graph.leaf_nodes())]
    with connection.schema_editor() as editor:
        for app in apps.get_app_configs():
            if app.label in executor.loader.migrated_apps:
                for model in app.get_models():
                    editor.create_model(model)
        _commit_order.keep_order(apps, editor)  # type: ignore[no-untyped-call]
        _seed.add(apps, editor)  # type: ignore[no-untyped-call]
        recorder = MigrationRecorder(connection)
        editor.create_model(recorder.Migration)
        recorder.migration_qs.bulk_create(
            recorder.Migration(app=step.app_label, name=step.name) for step in plan
        )
