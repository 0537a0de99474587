"""Looks at what lies in the state folder: sessions, worktrees, repositories. Never starts a server."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from labsite import plain
from labsite.doctor import product
from labsite.doctor.lines import Line, ok, wrong
from runs.core import naming
from runs.core.paths import Paths
from runs.core.ports import SeamError, Sighting
from runs.machine import shell, sightings, worktree_links
from runs.machine.git import Git
from runs.machine.worktrees import GitWorktrees
from runs.setup import proposal_rules
from runs.setup.proposal_rules import GitFacts
from runs.specs.proposals import MOST_BYTES

ASK_SECONDS = 5.0
AT_ONCE = 4
NO_SERVER = ("no server running", "error connecting to", "server exited unexpectedly")


def look(paths: Paths) -> Mapping[str, Sighting] | None:
    """Every session of the private server, None when there is no server. Raises SeamError.

    Asking a tmux server that is not there starts none.
    """
    if not paths.tmux_socket.exists():
        return None
    argv = ["tmux", "-u", "-f", os.devnull, "-S", str(paths.tmux_socket)]
    argv += ["list-panes", "-a", "-F", sightings.FORMAT]
    done = shell.run(argv, timeout=ASK_SECONDS, env=shell.scrubbed(os.environ))
    if done.status == 0:
        return sightings.read(done.stdout.splitlines())
    if any(text in done.stderr for text in NO_SERVER) and "Permission denied" not in done.stderr:
        return None
    raise SeamError(shell.words(["tmux", "list-panes"], done))


def tmux_server(paths: Paths) -> Iterator[Line]:
    """Whether the private tmux server answers; without sessions there is none, which is fine."""
    try:
        live = look(paths)
    except SeamError as error:
        advice = (
            f"tmux -S {paths.tmux_socket} ls shows what it says; sessions may still be at work."
        )
        yield wrong("tmux_server", str(error), advice)
        return
    seen = "none runs, as without sessions" if live is None else f"answers, {len(live)} sessions"
    yield ok("tmux_server", seen)


def sessions(paths: Paths, runs: Mapping[str, Sequence[str]]) -> Iterator[Line]:
    try:
        live = sorted(look(paths) or {})
    except SeamError:
        yield product.sessions(runs, None)
        return
    yield product.sessions(runs, live)


def worktrees(paths: Paths, runs: Mapping[str, Sequence[str]]) -> Iterator[Line]:
    folders = []
    if paths.worktrees.is_dir():
        folders = [str(path) for path in paths.worktrees.iterdir() if path.is_dir()]
    yield product.worktrees(runs["worktrees"], folders)
    yield from product.unlinked(_unlinked(paths))


def _unlinked(paths: Paths) -> list[str]:
    """Folders that a repository still lists as its worktree, and whose link is gone or another."""
    found = []
    for repo in sorted(paths.repos.glob("*")):
        for _, folder in worktree_links.registered(repo):
            if folder.is_dir() and worktree_links.admin_of(repo, folder) is None:
                found.append(folder.name)
    return found


def repositories(projects: Mapping[str, str]) -> Iterator[Line]:
    """Whether git can read each repository and the tips of all its branches."""
    git = Git(os.environ, Path(os.devnull), lambda: ASK_SECONDS)

    def why(path: str) -> str:
        if not Path(path).is_dir():
            return f"{path} is gone"
        try:
            # Naming the kind of each tip makes git open it.
            git.ask(Path(path), "for-each-ref", "--format=%(objecttype)")
        except SeamError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = dict(zip(projects, pool.map(why, projects.values()), strict=True))
    yield from product.repositories(
        {name: said for name, said in answers.items() if said}, len(answers)
    )


def signing() -> Iterator[Line]:
    """Whether git of this user signs commits without a person, and which hooks it runs for all."""
    repos = _repos()
    why, hooks = repos.why_unsigned(naming.COMMITTER_ENV), repos.hooks_path()
    yield from product.git_settings(GitFacts(hooks_path=hooks, why_unsigned=why))


def set_up(projects: Sequence[Mapping[str, Any]]) -> Iterator[Line]:
    """What new worktrees of each project will lack, by the files at the top of its repository."""
    repos = _repos()
    has_lfs = repos.has_lfs()

    def find_lacks(one: Mapping[str, Any]) -> list[str]:
        tip = f"refs/remotes/origin/{one['branch']}"
        try:
            texts = repos.texts(Path(one["repo"]), tip, proposal_rules.FILES, MOST_BYTES)
        except SeamError:
            return []  # another check says so
        facts = GitFacts(has_lfs, url=one["url"], has_submodules=one["has_submodules"])
        return product.describe_set_up(texts, facts)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = dict(
            zip([one["name"] for one in projects], pool.map(find_lacks, projects), strict=True)
        )
    yield from product.set_up(found)


def _repos() -> GitWorktrees:
    return GitWorktrees(Git(os.environ, Path(os.devnull), lambda: ASK_SECONDS))


def clock_set_by(paths: Paths) -> float | None:
    """How far the clock was set since `./lab up` took its lock, in seconds; None if unknown.

    The lock file's time was the clock's; the holder's start counts from the boot. A clock that
    was never set puts the first shortly after the second.
    """
    try:
        pid = int(plain.text_of(paths.up_lock))
        ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
        locked = paths.up_lock.stat().st_mtime
    except (OSError, ValueError, IndexError):
        return None
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return (time.time() - age) - locked
