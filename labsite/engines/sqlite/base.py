"""Django's engine for SQLite, which remembers the columns of a model."""

from __future__ import annotations

from django.db.backends.sqlite3 import base, operations

from labsite.engines.columns import RememberedColumns


class DatabaseOperations(RememberedColumns, operations.DatabaseOperations):
    pass


class DatabaseWrapper(base.DatabaseWrapper):
    ops_class = DatabaseOperations
