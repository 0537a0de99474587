"""What has to be right on the machine before an agent starts: its trust file, its login."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runs.domain.ports import SeamError
from runs.outside import shell

LOGIN_TIMEOUT = 10.0


class AgentFiles:
    """`Trust`: writes into the agents' own config files, keeping everything that it does not know."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._one_writer = threading.Lock()

    def approve(self, kind: str, worktree: Path) -> None:
        if kind == "claude":
            with self._one_writer:
                self._approve_claude(worktree)

    def _approve_claude(self, worktree: Path) -> None:
        """Trust dialog, onboarding and project servers answered in advance (LAB-70)."""
        home = Path(self._environ.get("HOME", "~")).expanduser()
        folder = self._environ.get("CLAUDE_CONFIG_DIR")
        path = Path(folder) / ".claude.json" if folder else home / ".claude.json"
        content = _read(path)
        projects = content.setdefault("projects", {})
        if not isinstance(projects, dict):
            raise SeamError(f'{path} is not what was expected: its "projects" is no object')
        entry = projects.setdefault(str(worktree), {})
        entry.update(
            hasTrustDialogAccepted=True,
            hasCompletedProjectOnboarding=True,
            enableAllProjectMcpServers=True,
        )
        content.setdefault("hasCompletedOnboarding", True)
        content["bypassPermissionsModeAccepted"] = True
        _replace(path, content)


class AgentLogin:
    """`Login`: asks the agent's own check command."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._env = shell.scrubbed(environ)

    def check(self, command: Sequence[str]) -> bool | None:
        try:
            return shell.run(command, timeout=LOGIN_TIMEOUT, env=self._env).status == 0
        except SeamError:
            return None


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SeamError(
            f"{path} could not be read as JSON, so it was left alone: {error}"
        ) from error
    if not isinstance(content, dict):
        raise SeamError(f"{path} is not what was expected: no JSON object; it was left alone")
    return content


def _replace(path: Path, content: dict[str, Any]) -> None:
    """Write beside, then rename: a reader sees the old file or the new one."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(content, indent=2), encoding="utf-8")
        part.chmod(mode)
        part.rename(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise SeamError(f"{path} could not be written: {error.strerror}") from error
