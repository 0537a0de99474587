"""What has to be right on the machine before an agent starts: its trust file, its login."""

from __future__ import annotations

import glob
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from runs.agents import claude_files, linking
from runs.core.ports import SeamError
from runs.machine import files, shell

LOGIN_TIMEOUT = 10.0
SESSION_FILES, SESSION_BYTES = 200, 256_000


class AgentFiles:
    """`Trust`: writes into the agents' own config files, keeping everything that it does not know."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._one_writer = threading.Lock()

    def approve(self, kind: str, worktree: Path, env: Mapping[str, str]) -> None:
        if kind == "claude":
            with self._one_writer:
                claude_files.approve(worktree, {**self._environ, **env})


class AgentLogin:
    """`Login`: asks the agent's own check command."""

    def __init__(self, environ: Mapping[str, str], timeout: float = LOGIN_TIMEOUT) -> None:
        self._env = shell.scrubbed(environ)
        self._timeout = timeout

    def check(self, command: Sequence[str], env: Mapping[str, str]) -> bool | None:
        try:
            return shell.run(command, timeout=self._timeout, env={**self._env, **env}).status == 0
        except SeamError:
            return None


class AgentRegistry:
    """`Registry`: reads the newest of the agent's own files; none of them can hold us up."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def find(self, pattern: str, field: str, worktree: str, env: Mapping[str, str]) -> str:
        home = env.get("HOME") or self._environ.get("HOME", "")
        if pattern == "~" or pattern.startswith("~/"):
            pattern = f"{glob.escape(home)}{pattern[1:]}"
        if not pattern.startswith("/") or not field:
            return ""
        found = sorted(map(Path, glob.iglob(pattern)), key=_changed, reverse=True)  # noqa: PTH207
        for path in found[:SESSION_FILES]:
            text = files.read_small(path, SESSION_BYTES)
            ident = linking.find_id(text, worktree, field) if text else ""
            if ident:
                return ident
        return ""


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
