"""git hangs or cannot read its repository: the start fails with git's words, everybody else goes on."""

from __future__ import annotations

import contextlib
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connections

from runs import tick
from runs.dispatch import start_requests
from runs.lifecycle import launch
from runs.models import Project, Run
from tests.patience import PATIENCE
from tests.real import git
from tests.world.stories import look, press_start, ready, start

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def silent_server() -> Iterator[str]:
    """An address on loopback that takes every connection and never answers."""
    with _silence() as url:
        yield url


@contextlib.contextmanager
def _silence() -> Iterator[str]:
    """As long as it lasts; then whoever still waits is cut off."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen(64)
        yield f"http://127.0.0.1:{door.getsockname()[1]}/demo.git"


def _processes_of(folder: Path) -> list[str]:
    """Command lines of programs that still work in a world's folder on git's behalf."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            if "git" in line.split(" ")[0] and str(folder) in line:
                found.append(line)
    return found


def test_a_fetch_that_hangs_fails_the_start_in_time_and_leaves_no_process(day, silent_server):
    day.run("7")
    Project.objects.filter(pk=day.project.pk).update(url=silent_server)
    ready(day.real, "8")
    day.real.git_timeout = 5.0  # also of the commands before it, which do not hang
    began = time.monotonic()
    asked = press_start(day.real, day.project)
    assert time.monotonic() - began < 100
    assert asked.answer == "start_failed"
    assert "git fetch" in asked.text
    assert "gave no answer within 5 seconds" in asked.text
    assert day.real.repos.claims(day.project.repo(day.real.paths)) == {"7"}
    assert _processes_of(day.real.folder) == []
    Project.objects.filter(pk=day.project.pk).update(url=str(day.real.folder / "demo-origin.git"))
    day.real.git_timeout = PATIENCE
    assert press_start(day.real, day.project).answer == "started"


def test_ticks_and_other_starts_go_on_while_a_fetch_hangs(day):
    run = day.run("7")
    shop = day.real.project("shop")
    silence = contextlib.ExitStack()
    Project.objects.filter(pk=day.project.pk).update(url=silence.enter_context(_silence()))
    ready(day.real, "8")
    start_requests.request(day.real.lab, day.project, "anna")
    tick.tick(day.real.lab, project="demo")
    stuck = day.real.queue.launches.pop()

    def carry_out() -> None:
        launch.carry_out(day.real.lab, stuck)
        connections.close_all()

    thread = threading.Thread(target=carry_out)
    thread.start()
    try:
        day.real.until(lambda: Run.objects.get(pk=stuck).launcher)
        day.real.memory.add_pull("demo", "afk/7")
        look(day.real)
        assert day.again(run).outcome == "succeeded"
        assert start(day.real, shop, "1").is_active
        assert thread.is_alive()
        assert Run.objects.get(pk=stuck).state == "starting"
    finally:
        silence.close()
        thread.join()
    assert Run.objects.get(pk=stuck).outcome == "failed"


def test_a_git_that_cannot_list_the_claims_starts_nothing(day):
    day.run("7")
    ready(day.real, "8")
    stub = day.real.folder / "bin" / "git"
    stub.parent.mkdir()
    stub.write_text(
        f'#!/bin/sh\ncase "$*" in *for-each-ref*) echo never seen >&2; exit 128;; esac\n'
        f'exec {shutil.which("git")} "$@"\n'
    )
    stub.chmod(0o755)
    path = day.real.repos._git._env["PATH"]
    day.real.repos._git._env["PATH"] = f"{stub.parent}:{path}"
    try:
        asked = press_start(day.real, day.project)
    finally:
        day.real.repos._git._env["PATH"] = path
    assert asked.answer == "seam_failed"
    assert "never seen" in asked.text
    assert press_start(day.real, day.project).answer == "started"


def _break(repo: Path) -> Path:
    """Every object of a repository becomes unreadable; the answer is where they are kept."""
    kept = repo.with_name("objects-kept")
    (repo / "objects").rename(kept)
    shutil.copytree(kept, repo / "objects")
    for file in (repo / "objects").rglob("*"):
        if file.is_file():
            file.chmod(0o600)
            file.write_bytes(b"rubbish")
    return kept


def test_a_corrupted_repository_fails_its_own_starts_with_gits_words_and_no_others(day):
    run, shop = day.run("7"), day.real.project("shop")
    repo = day.project.repo(day.real.paths)
    kept = _break(repo)
    ready(day.real, "8")
    asked = press_start(day.real, day.project)
    assert asked.answer == "start_failed"
    assert "git" in asked.text
    assert start(day.real, shop, "1").is_active
    day.real.memory.add_pull("demo", "afk/7")
    look(day.real)
    assert day.again(run).outcome == "succeeded"
    assert day.again(run).worktree_fate == "kept"
    assert "so it was kept" in day.again(run).warning
    shutil.rmtree(repo / "objects")
    kept.rename(repo / "objects")
    assert press_start(day.real, day.project).answer == "started"


def test_a_lock_that_a_killed_git_left_behind_keeps_no_reap_waiting(day):
    """`index.lock` in the worktree of a success: its commit is on the branch, so the tree may go."""
    run = day.run("7")
    tree = Path(run.worktree)
    (tree / "unsaved-7.txt").unlink()
    day.work = type(day.work).of(day.real.paths)
    lock = Path(git(tree, "rev-parse", "--absolute-git-dir")) / "index.lock"
    lock.touch()
    day.real.memory.add_pull("demo", "afk/7")
    look(day.real)
    run = day.again(run)
    assert run.outcome == "succeeded"
    assert run.settled_at is not None
    assert run.worktree_fate == "removed"
    assert day.real.session_names() == []


def test_a_worktree_that_was_replaced_by_a_link_costs_nobody_a_file(day):
    """The link leads to a person's own folder."""
    run = day.run("7")
    tree, precious = Path(run.worktree), day.real.folder / "precious"
    tree.rename(day.real.paths.worktrees / "elsewhere")
    shutil.copytree(day.real.folder / "demo-checkout", precious)
    (precious / "diary.txt").write_text("mine")
    tree.symlink_to(precious)
    day.real.memory.add_pull("demo", "afk/7")
    look(day.real)
    run = day.again(run)
    assert run.outcome == "succeeded"
    assert (precious / "diary.txt").read_text() == "mine"
    assert (precious / "hello.txt").exists()
    tree.unlink()
    (day.real.paths.worktrees / "elsewhere").rename(tree)


def test_a_run_folder_whose_place_is_taken_by_a_file_fails_the_start(day):
    folder = day.real.paths.run_folders
    folder.write_text("in the way")
    ready(day.real, "7")
    asked = press_start(day.real, day.project)
    assert asked.answer == "start_failed"
    assert "could not be written" in asked.text
    assert day.real.repos.claims(day.project.repo(day.real.paths)) == frozenset()
    folder.unlink()
    assert press_start(day.real, day.project).answer == "started"
