"""Django's engine for PostgreSQL, which remembers the columns of a model."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from django.db import OperationalError
from django.db.backends.postgresql import base, operations
from django.db.utils import DatabaseErrorWrapper
from django.utils.functional import cached_property
from psycopg.errors import ReadOnlySqlTransaction

from labsite.engines.columns import RememberedColumns


class Errors(DatabaseErrorWrapper):
    """Django's, but a server that takes no changes for a while cannot be used, as with SQLite.

    psycopg counts that among the internal errors, which elsewhere are mistakes of ours.
    """

    wrapper: Any

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(exc_value, ReadOnlySqlTransaction):
            self.wrapper.errors_occurred = True
            raise OperationalError(*exc_value.args).with_traceback(traceback) from exc_value
        super().__exit__(exc_type, exc_value, traceback)


class DatabaseOperations(RememberedColumns, operations.DatabaseOperations):
    pass


class DatabaseWrapper(base.DatabaseWrapper):
    ops_class = DatabaseOperations

    @cached_property
    def wrap_database_errors(self) -> Errors:
        return Errors(self)
