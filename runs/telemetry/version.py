"""Which version of labsite this is: the commit of its checkout, read without a process."""

from __future__ import annotations

import functools
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SHOWN = 12
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


@functools.cache
def running() -> str:
    """The commit from which this process was started; empty where there is no checkout."""
    return commit_of(ROOT)[:SHOWN]


def commit_of(root: Path) -> str:
    """The commit that a checkout's HEAD names; empty when it cannot be told."""
    try:
        folder = root / ".git"
        if folder.is_file():  # a worktree
            folder = root / folder.read_text().removeprefix("gitdir:").strip()
        head = (folder / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return _checked(head)
        return _of_ref(folder, head.removeprefix("ref: "))
    except (OSError, ValueError):
        return ""


def _of_ref(folder: Path, ref: str) -> str:
    shared = folder / "commondir"
    common = folder / shared.read_text().strip() if shared.exists() else folder
    if (common / ref).is_file():
        return _checked((common / ref).read_text().strip())
    for line in (common / "packed-refs").read_text().splitlines():
        commit, _, name = line.partition(" ")
        if name == ref:
            return _checked(commit)
    return ""


def _checked(found: str) -> str:
    return found if _COMMIT.fullmatch(found) else ""
