"""What this machine tells of itself: identity of its state folder, version, load, disk, clones."""

from __future__ import annotations

import os
import secrets
import shutil
from functools import cached_property
from pathlib import Path

from runs.hosts.ports import Vitals

BYTES_A_MB = 1024 * 1024


class ThisMachine:
    """`Machine` of the state folder `state`, whose clones lie in `repos`.

    `is_shared`: the database is a server that other state folders may use too.
    """

    def __init__(self, state: Path, repos: Path, version: str, *, is_shared: bool) -> None:
        self._state, self._repos, self.version = state, repos, version
        self._is_shared = is_shared
        self._file = state / "machine.id"

    @cached_property
    def identity(self) -> str:
        """Made on first use and kept in the state folder. Raises OSError when it cannot be."""
        return self.kept_identity() if self._is_shared else ""

    def is_other(self, identity: str) -> bool:
        """A folder that has no identity yet will get one of its own. Raises OSError as reading does."""
        if not self._is_shared or not identity:
            return False
        try:
            return identity != self._read_identity()
        except FileNotFoundError:
            return True

    def kept_identity(self) -> str:
        """Of two processes that make it at once both read the same."""
        try:
            return self._read_identity()
        except FileNotFoundError:
            fresh = self._file.with_suffix(f".{os.getpid()}.new")
            handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(secrets.token_hex(16))
            try:
                self._file.hardlink_to(fresh)
            except FileExistsError:
                pass
            finally:
                fresh.unlink()
            return self._read_identity()

    def _read_identity(self) -> str:
        return self._file.read_text("ascii").strip()[:64]

    def vitals(self) -> Vitals:
        try:
            load: float | None = os.getloadavg()[0]
        except OSError:
            load = None
        try:
            free: int | None = shutil.disk_usage(self._state).free // BYTES_A_MB
        except OSError:
            free = None
        return Vitals(load, os.cpu_count(), free)

    def warm(self) -> list[str]:
        try:
            names = [path.name for path in self._repos.iterdir()]
        except OSError:
            return []
        return sorted(name.removesuffix(".git") for name in names if name.endswith(".git"))
