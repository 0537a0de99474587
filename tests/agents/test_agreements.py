"""Claude Code's own file of agreements: filled in under its own lock, for the repository as well."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runs.agents import claude_files
from tests.agents.house import CLAUDE, environment
from tests.agents.script import Say
from tests.patience import PATIENCE
from tests.repositories import a_checkout, git


def _projects(home: Path) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = json.loads((home / ".claude.json").read_text())[
        "projects"
    ]
    return found


def _approve(home: Path, tree: str) -> None:
    claude_files.approve(Path(tree), {"HOME": str(home)})


@pytest.mark.real
def test_the_repository_of_a_worktree_is_trusted_as_the_program_knows_it(tmp_path):
    checkout = a_checkout(tmp_path / "checkout", tmp_path / "bare.git")
    for repo, place in ((checkout, "one"), (tmp_path / "bare.git", "two")):
        git(repo, "worktree", "add", "-q", "-b", place, str(tmp_path / place), "main")
        _approve(tmp_path, str(tmp_path / place))
    assert set(_projects(tmp_path)) == {
        *(str(tmp_path / "one"), str(checkout)),
        *(str(tmp_path / "two"), str(tmp_path / "bare.git")),
    }


@pytest.mark.parametrize("text", ["", "gitdir: /nowhere", "gitdir:", "x" * 9000, "gitdir: \0"])
def test_an_odd_git_file_names_no_repository(tmp_path, text):
    (tmp_path / ".git").write_text(text)
    assert claude_files.repository(tmp_path) == ""


def test_what_is_agreed_already_is_not_written_again(tmp_path):
    _approve(tmp_path, "/tree")
    before = (tmp_path / ".claude.json").stat()
    _approve(tmp_path, "/tree")
    after = (tmp_path / ".claude.json").stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)


def test_a_lock_that_was_left_behind_holds_up_nothing(tmp_path):
    lock = tmp_path / ".claude.json.lock"
    lock.mkdir()
    old = time.time() - claude_files.STALE - 1
    os.utime(lock, (old, old))
    _approve(tmp_path, "/tree")
    assert "/tree" in _projects(tmp_path)
    assert not lock.exists()


def test_a_lock_that_is_held_is_waited_for(tmp_path):
    lock = tmp_path / ".claude.json.lock"
    lock.mkdir()
    never_old = time.time() + 1000 * claude_files.STALE
    os.utime(lock, (never_old, never_old))
    (tmp_path / ".claude.json").write_text("{}")
    waiting = threading.Thread(target=_approve, args=(tmp_path, "/tree"))
    waiting.start()
    waiting.join(0.3)
    assert waiting.is_alive()
    assert (tmp_path / ".claude.json").read_text() == "{}"
    lock.rmdir()
    waiting.join(PATIENCE)
    assert "/tree" in _projects(tmp_path)


def test_no_entry_is_lost_beside_the_real_program(on_path, model, tmp_path):
    """Three of it write the same file at their start and end, while forty worktrees are trusted."""
    model.forget()
    model.script(Say("Done."))
    home = tmp_path / "home"
    home.mkdir()
    env = {**os.environ, "HOME": str(home), **environment(CLAUDE, model.url, tmp_path)}
    argv = ["claude", "-p", "Work.", "--permission-mode", "bypassPermissions"]
    programs = [
        subprocess.Popen(
            argv,
            env=env,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(3)
    ]
    trees = [f"/tree-{number}" for number in range(40)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda tree: _approve(home, tree), trees))
    assert [program.wait(PATIENCE) for program in programs] == [0, 0, 0]
    assert set(trees) <= set(_projects(home))
    assert not (home / ".claude.json.lock").exists()
