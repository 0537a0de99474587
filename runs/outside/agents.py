"""What has to be right on the machine before an agent starts: its trust file, its login."""

from __future__ import annotations

import glob
import json
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runs.domain import linking
from runs.domain.ports import SeamError
from runs.outside import files, shell

LOGIN_TIMEOUT = 10.0
SESSION_FILES, SESSION_BYTES = 200, 256_000
_KEY_TAIL = 20  # what Claude Code itself remembers of a key that was approved


class AgentFiles:
    """`Trust`: writes into the agents' own config files, keeping everything that it does not know."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._one_writer = threading.Lock()

    def approve(self, kind: str, worktree: Path, env: Mapping[str, str]) -> None:
        if kind == "claude":
            with self._one_writer:
                _approve_claude(worktree, {**self._environ, **env})


def _approve_claude(worktree: Path, env: Mapping[str, str]) -> None:
    """Every question that Claude Code would ask a person first, answered in advance (LAB-70)."""
    folder = env.get("CLAUDE_CONFIG_DIR")
    path = Path(folder or env.get("HOME", "~")).expanduser() / ".claude.json"
    content = _read(path)
    entry = _object(_object(content, "projects", path), str(worktree), path)
    entry.update(
        hasTrustDialogAccepted=True,
        hasCompletedProjectOnboarding=True,
        enableAllProjectMcpServers=True,
    )
    content.setdefault("hasCompletedOnboarding", True)
    content["bypassPermissionsModeAccepted"] = True
    key = env.get("ANTHROPIC_API_KEY", "")
    if key:
        answers = _object(content, "customApiKeyResponses", path)
        approved = answers.setdefault("approved", [])
        if key[-_KEY_TAIL:] not in approved:
            approved.append(key[-_KEY_TAIL:])
    _replace(path, content)


def _object(content: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
    """The object under a name, made when missing or null. Raises SeamError when it is something else."""
    if content.get(name) is None:
        content[name] = {}
    found = content[name]
    if not isinstance(found, dict):
        raise SeamError(f'{path} is not what was expected: its "{name}" is no object')
    return found


class AgentLogin:
    """`Login`: asks the agent's own check command."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._env = shell.scrubbed(environ)

    def check(self, command: Sequence[str], env: Mapping[str, str]) -> bool | None:
        try:
            return shell.run(command, timeout=LOGIN_TIMEOUT, env={**self._env, **env}).status == 0
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
    """Write beside, then rename: a reader sees the old file or the new one.

    Through a link, as people have whose dotfiles lie elsewhere: the link stays.
    """
    path = path.resolve()
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
