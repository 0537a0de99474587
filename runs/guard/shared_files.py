"""Reads and mends the small files of the repository that runs share, without any program.

Agents may write there at any time: links are not followed, and nothing large is read.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from runs.core.kept_ports import SharedState
from runs.core.ports import SeamError
from runs.guard.rules import FILES, HOOKS, clean_name
from runs.machine import worktree_links
from runs.machine.files import open_folders, read_piece, read_small, remove_tree

ACCEPTED = "labsite-accepted"  # a file of the shared repository: how its small files have to be
ASIDE = "labsite-put-aside"  # a folder of it, with hooks that labsite took away
_BYTES = 1_000_000
_SAMPLE = ".sample"
_WHOLE = "."  # stands for the folder of hooks where that is a link, or may not be read
_CODING = ("utf-8", "surrogateescape")


class SharedFiles:
    """`Guarding` (core/kept_ports.py)."""

    def read_shared(self, repo: Path) -> SharedState | None:
        try:
            if not (repo / "objects").is_dir():
                return None
            texts = {name: _text(repo / name) for name in FILES if os.path.lexists(repo / name)}
            marks = _marks(repo / HOOKS)
            unread = {name for name, text in texts.items() if text is None}
            if marks is None:
                unread.add(HOOKS)
            files = {name: text for name, text in texts.items() if text is not None}
            return SharedState(files, marks or {}, frozenset(unread))
        except OSError:
            return None

    def accepted_shared(self, repo: Path) -> SharedState | None:
        try:
            told = json.loads(read_small(repo / ACCEPTED, 2 * _BYTES) or "")
            files, hooks = dict(told["files"]), dict(told["hooks"])
            for one in (*files, *files.values(), *hooks, *hooks.values()):
                one.encode(*_CODING)
        except (ValueError, TypeError, KeyError, AttributeError):
            return None
        return SharedState(files, hooks)

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
            for path in _find_hooks(repo / HOOKS, frozenset(hooks)):
                _put_aside(repo, path)
        except OSError as error:
            raise SeamError(f"{repo} cannot be written: {error.strerror}") from error

    def own_settings(self, path: Path) -> str | None:
        own = worktree_links.own_git(path)
        return _text(own / "config") if own is not None else None


def _text(file: Path) -> str | None:
    """Return the text of a small file, whatever its bytes; None where it cannot be read whole."""
    found = read_piece(file, 0, _BYTES + 1)
    if found is None or len(found.data) > _BYTES:
        return None
    return found.data.decode(*_CODING)


def _marks(folder: Path) -> dict[str, str] | None:
    """Return what tells each hook from another one of its name; None where nobody may look.

    Raises OSError.
    """
    if folder.is_symlink():
        return {_WHOLE: str(folder.readlink())}
    if not folder.is_dir():
        return {}
    if not os.access(folder, os.R_OK | os.X_OK):
        return None
    names = (one for one in sorted(folder.iterdir()) if not one.name.endswith(_SAMPLE))
    return {clean_name(one.name): _mark(one) for one in names}


def _mark(hook: Path) -> str:
    if hook.is_symlink():
        return f"link {hook.readlink()}"
    found = read_piece(hook, 0, _BYTES)
    digest = hashlib.sha256(found.data).hexdigest() if found is not None else ""
    return f"{hook.lstat().st_mode:o} {hook.lstat().st_size} {digest}"


def _find_hooks(folder: Path, names: frozenset[str]) -> Sequence[Path]:
    """Return the hooks of these names, which are cleaned; or the folder of all. Raises OSError."""
    if _WHOLE in names:
        return [folder]
    return [one for one in folder.iterdir() if clean_name(one.name) in names] if names else []


def _put_aside(repo: Path, path: Path) -> None:
    """Move what is there out of git's sight; what was put aside before under its name goes.

    An agent may have made folders that can be neither moved nor removed, here and there.
    """
    if not os.path.lexists(path):
        return
    aside = repo / ASIDE / path.name
    if aside.parent.is_symlink() or not aside.parent.is_dir():
        aside.parent.unlink(missing_ok=True)
        aside.parent.mkdir()
    open_folders(aside.parent)
    if aside.is_dir() and not aside.is_symlink():
        remove_tree(aside)
    aside.unlink(missing_ok=True)
    open_folders(path)
    path.replace(aside)


def _write(file: Path, text: str) -> None:
    """Write it in one step. Raises SeamError."""
    fresh = file.with_name(f".{file.name}-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(text.encode(*_CODING))
        fresh.replace(file)
    except OSError as error:
        raise SeamError(f"{file} cannot be written: {error.strerror}") from error
