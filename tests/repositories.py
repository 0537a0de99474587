"""Git repositories for tests and benches, independent of the machine's own git configuration."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
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


_FETCH = "\tfetch = +refs/heads/*:refs/remotes/origin/*\n"


def a_checkout(folder: Path, origin: Path | None = None) -> Path:
    """A repository with one commit on main, cloned from a bare origin when one is given."""
    made = _made()
    shutil.copytree(made / "checkout", folder, dirs_exist_ok=True)
    if origin is None:
        shutil.rmtree(folder / ".git/refs/remotes")
    else:
        shutil.copytree(made / "origin", origin, dirs_exist_ok=True)
        with (folder / ".git/config").open("a") as file:
            file.write(f'[remote "origin"]\n\turl = {origin}\n{_FETCH}')
    return folder


@functools.cache
def _made() -> Path:
    """Both, made once a process: each test has a copy of its own."""
    made = Path(tempfile.mkdtemp(prefix="lab-test-git-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    folder, origin = made / "checkout", made / "origin"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "hello.txt").write_text("hello\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "chore: begin")
    git(made, "init", "-q", "--bare", "-b", "main", str(origin))
    git(folder, "push", "-q", str(origin), "main")
    git(folder, "update-ref", "refs/remotes/origin/main", "main")
    return made
