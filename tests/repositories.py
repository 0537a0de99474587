"""Git repositories for tests and benches, independent of the machine's own git configuration."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.patience import PATIENCE

IDENTITY = {
    "GIT_AUTHOR_NAME": "Test",
    "GIT_AUTHOR_EMAIL": "test@example.org",
    "GIT_COMMITTER_NAME": "Test",
    "GIT_COMMITTER_EMAIL": "test@example.org",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
}


def git(folder: Path, *argv: str) -> str:
    """git in a test's own repository."""
    done = subprocess.run(
        ["git", "-C", str(folder), *argv],
        env={**os.environ, **IDENTITY},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    return done.stdout.strip()


def a_checkout(folder: Path, origin: Path | None = None) -> Path:
    """A repository with one commit on main, cloned from a bare origin when one is given."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "hello.txt").write_text("hello\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "chore: begin")
    if origin is not None:
        origin.mkdir(parents=True)
        git(origin, "init", "-q", "--bare", "-b", "main")
        git(folder, "remote", "add", "origin", str(origin))
        git(folder, "push", "-q", "origin", "main")
    return folder
