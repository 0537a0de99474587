"""Django's engine for SQLite, which remembers the columns of a model and which file it opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.db.backends.sqlite3 import base, operations

from labsite.engines.columns import RememberedColumns


class DatabaseOperations(RememberedColumns, operations.DatabaseOperations):
    pass


class DatabaseWrapper(base.DatabaseWrapper):
    ops_class = DatabaseOperations
    _opened: tuple[int, int] | None = None

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        made = super().get_new_connection(conn_params)
        self._opened = self._file()
        return made

    @property
    def is_replaced(self) -> bool:
        """Whether another file lies where the one is that was opened, or none."""
        return self.connection is not None and self._file() != self._opened

    def _file(self) -> tuple[int, int] | None:
        try:
            found = Path(self.settings_dict["NAME"]).stat()
        except OSError:  # a database in memory is no file either
            return None
        return found.st_dev, found.st_ino
