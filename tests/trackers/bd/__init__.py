"""A folder of beads for tests, on the double of `bd` that lies beside this file."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def environ(base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """An environment in which `bd` is the double, and its Python this one.

    The first Python of a path may be a shell script that looks for one, which takes five times as long.
    """
    mine = str(Path(sys.executable).parent)
    return {**base, "PATH": os.pathsep.join([str(HERE), mine, base.get("PATH", os.defpath)])}


class Beads:
    """One folder with `.beads`, and what happens in it without labsite."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._dot = folder / ".beads"
        self._dot.mkdir(parents=True)
        self._write({"issues": [], "blocks": {}})

    @property
    def root(self) -> str:
        return str(self.folder)

    def issue(self, key: str, title: str, **more: Any) -> str:
        """Write an issue as bd keeps it; created in the order of writing unless told otherwise."""
        state = self._read()
        made = len(state["issues"])
        at = f"2026-03-01T{made // 60:02}:{made % 60:02}:00Z"
        told = {"status": "open", "priority": 2, "issue_type": "task", "created_at": at}
        state["issues"].append({"id": key, "title": title, **told, **more})
        self._write(state)
        return key

    def blocks(self, blocker: str, key: str) -> None:
        """Let an issue wait for another one."""
        state = self._read()
        state["blocks"].setdefault(key, []).append(blocker)
        self._write(state)

    def shown(self, key: str) -> dict[str, Any]:
        """An issue as it is kept."""
        return next(dict(one) for one in self._read()["issues"] if one.get("id") == key)

    def spoil(self) -> None:
        """Put in entries that are no issues."""
        state = self._read()
        state["issues"][:0] = [{"title": "no key"}, {"id": "bd-x", "title": 7, "status": "open"}]
        self._write(state)

    def style(self, name: str) -> None:
        """Answer as another version does."""
        (self._dot / "style").write_text(name)

    def fault(self, *faults: Mapping[str, Any]) -> None:
        """Let the next calls go wrong."""
        (self._dot / "faults.json").write_text(json.dumps(list(faults)))

    def lose(self) -> None:
        """Take the issues away."""
        (self._dot / "state.json").unlink()

    def calls(self) -> Sequence[dict[str, Any]]:
        """Every call so far."""
        book = self._dot / "calls.jsonl"
        return [json.loads(line) for line in book.read_text().splitlines()] if book.exists() else []

    @property
    def has_daemon(self) -> bool:
        return (self._dot / "daemon-started").exists()

    def _read(self) -> Any:
        return json.loads((self._dot / "state.json").read_text())

    def _write(self, state: object) -> None:
        (self._dot / "state.json").write_text(json.dumps(state))
