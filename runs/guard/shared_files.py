"""Reads and mends the small files of the repository that runs share, without any program.

Agents may write there at any time: links are not followed, and nothing large is read.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from runs.core.kept_ports import SharedState
from runs.core.ports import SeamError
from runs.guard.rules import FILES
from runs.machine import worktree_links
from runs.machine.files import read_small

ACCEPTED = "labsite-accepted"  # a file of the shared repository: how its small files have to be
ASIDE = "labsite-put-aside"  # a folder of it, with hooks that labsite took away
_BYTES = 1_000_000
_UNREADABLE = "\0"  # no text of a file that git could use
_SAMPLE = ".sample"
_LINKED = "."  # stands for the folder of hooks where that is a link


class SharedFiles:
    """`Guarding` (core/kept_ports.py)."""

    def read_shared(self, repo: Path) -> SharedState | None:
        try:
            if not (repo / "objects").is_dir():
                return None
            return SharedState(_texts(repo), _marks(repo / "hooks"))
        except OSError:
            return None

    def accepted_shared(self, repo: Path) -> SharedState | None:
        try:
            told = json.loads(read_small(repo / ACCEPTED, 2 * _BYTES) or "")
            files, hooks = dict(told["files"]), dict(told["hooks"])
        except (ValueError, TypeError, KeyError):
            return None
        texts = [*files, *files.values(), *hooks, *hooks.values()]
        is_fit = all(isinstance(one, str) for one in texts)
        return SharedState(files, hooks) if is_fit else None

    def accept_shared(self, repo: Path, state: SharedState) -> None:
        text = json.dumps({"files": dict(state.files), "hooks": dict(state.hooks)})
        _write(repo / ACCEPTED, text)

    def mend_shared(
        self, repo: Path, files: Mapping[str, str | None], hooks: Sequence[str]
    ) -> None:
        try:
            for name, text in files.items():
                if text is None or not (repo / name).is_file():
                    _put_aside(repo, repo / name)
                if text is not None:
                    _write(repo / name, text)
            for name in hooks:
                _put_aside(repo, repo / "hooks" / name if name != _LINKED else repo / "hooks")
        except OSError as error:
            raise SeamError(f"{repo} cannot be written: {error.strerror}") from error

    def own_settings(self, path: Path) -> str | None:
        own = worktree_links.own_git(path)
        return read_small(own / "config", _BYTES) if own is not None else None


def _texts(repo: Path) -> dict[str, str]:
    """Return the texts of the files that are there. Raises OSError."""
    found = {}
    for name in FILES:
        if os.path.lexists(repo / name):
            text = read_small(repo / name, _BYTES)
            found[name] = _UNREADABLE if text is None else text
    return found


def _marks(folder: Path) -> dict[str, str]:
    """Return what tells each hook from another one of its name. Raises OSError."""
    if folder.is_symlink():
        return {_LINKED: str(folder.readlink())}
    if not folder.is_dir():
        return {}
    names = (one for one in sorted(folder.iterdir()) if not one.name.endswith(_SAMPLE))
    return {one.name: _mark(one) for one in names}


def _mark(hook: Path) -> str:
    if hook.is_symlink():
        return f"link {hook.readlink()}"
    text = read_small(hook, _BYTES)
    digest = hashlib.sha256(text.encode()).hexdigest() if text is not None else ""
    return f"{hook.lstat().st_mode:o} {hook.lstat().st_size} {digest}"


def _put_aside(repo: Path, path: Path) -> None:
    """Move what is there out of git's sight; what was put aside before under its name goes."""
    if not os.path.lexists(path):
        return
    aside = repo / ASIDE / path.name
    aside.parent.mkdir(exist_ok=True)
    if aside.is_dir() and not aside.is_symlink():
        shutil.rmtree(aside)
    path.replace(aside)


def _write(file: Path, text: str) -> None:
    """Write it in one step. Raises SeamError."""
    fresh = file.with_name(f".{file.name}-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(text)
        fresh.replace(file)
    except OSError as error:
        raise SeamError(f"{file} cannot be written: {error.strerror}") from error
