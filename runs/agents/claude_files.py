"""Claude Code's own file of what a person has agreed to, filled in before an unattended start.

The program rewrites that file itself, under a lock: a folder beside it, which counts as left behind
once it is ten seconds old. The same lock is taken here. One that finds it taken writes all the same,
so what was written is looked at once more afterwards; and what is there already is not written.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from runs.core.ports import SeamError

STALE = 10.0
PATIENCE = 12.0  # longer than any lock that was left behind counts
PAUSE = 0.02
TRIES = 5
KEY_TAIL = 20  # what the program remembers of a key that was approved
LINK_BYTES = 4096
_AGREED = {
    "hasTrustDialogAccepted": True,
    "hasCompletedProjectOnboarding": True,
    "hasClaudeMdExternalIncludesApproved": True,
    "hasClaudeMdExternalIncludesWarningShown": True,
}


def approve(worktree: Path, env: Mapping[str, str]) -> None:
    """Every question that Claude Code would ask a person first, answered in advance.

    Raises SeamError when the file is not understood, which is then left alone, or not written.
    """
    path = Path(env.get("CLAUDE_CONFIG_DIR") or env.get("HOME", "~")).expanduser() / ".claude.json"
    folders = [str(worktree), *([own] if (own := repository(worktree)) else [])]
    for _ in range(TRIES):
        if not _is_lacking(path, folders, env):
            return
        with _locked(path):
            content = _read(path)
            _fill(content, path, folders, env)
            _replace(path, content)
    raise SeamError(f"{path} is changed by other programs again and again")


def repository(worktree: Path) -> str:
    """The folder under which Claude Code knows the repository of a worktree: its common git folder.

    Empty when the worktree is none; then the program knows it by its own path.
    """
    try:
        with (worktree / ".git").open(encoding="utf-8") as file:
            link = file.read(LINK_BYTES)
        if not link.startswith("gitdir:"):
            return ""
        own = Path(os.path.normpath(worktree / link.removeprefix("gitdir:").strip()))
        with (own / "commondir").open(encoding="utf-8") as file:
            common = Path(os.path.normpath(own / file.read(LINK_BYTES).strip()))
    except (OSError, ValueError):
        return ""
    return str(common.parent if common.name == ".git" else common)


def _is_lacking(path: Path, folders: list[str], env: Mapping[str, str]) -> bool:
    content = _read(path)
    before = json.dumps(content)
    _fill(content, path, folders, env)
    return json.dumps(content) != before


def _fill(content: dict[str, Any], path: Path, folders: list[str], env: Mapping[str, str]) -> None:
    """Add what is missing; everything else stays as it is."""
    projects = _object(content, "projects", path)
    for folder in folders:
        _object(projects, folder, path).update(_AGREED)
    content.setdefault("hasCompletedOnboarding", True)
    content.setdefault("bypassPermissionsModeAccepted", True)
    key = env.get("ANTHROPIC_API_KEY", "")
    if key:
        answers = _object(content, "customApiKeyResponses", path)
        approved = answers.setdefault("approved", [])
        if isinstance(approved, list) and key[-KEY_TAIL:] not in approved:
            approved.append(key[-KEY_TAIL:])


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the program's own lock. Raises SeamError when it cannot be had."""
    lock = path.with_name(f"{path.name}.lock")
    limit = time.monotonic() + PATIENCE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        while not _take(lock):
            if time.monotonic() > limit:
                raise SeamError(f"{path} is locked by another program: {lock}")
            time.sleep(PAUSE)
    except OSError as error:
        raise SeamError(f"{path} could not be written: {error.strerror}") from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            lock.rmdir()


def _take(lock: Path) -> bool:
    """Take the lock, or a step towards it: one that was left behind goes away. Raises OSError."""
    try:
        lock.mkdir()
    except FileExistsError:
        with contextlib.suppress(FileNotFoundError):
            if time.time() - lock.stat().st_mtime > STALE:
                lock.rmdir()
        return False
    return True


def _object(content: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
    """The object under a name, made when missing or null. Raises SeamError when it is something else."""
    if content.get(name) is None:
        content[name] = {}
    found = content[name]
    if not isinstance(found, dict):
        raise SeamError(f'{path} is not what was expected: its "{name}" is no object')
    return found


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
