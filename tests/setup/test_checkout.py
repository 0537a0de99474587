"""Large files and submodules in new worktrees, with the token for their own server alone."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from runs.core.ports import SeamError
from runs.dispatch import start_requests
from runs.machine import git as machine
from runs.machine.git import Git
from runs.machine.worktrees import GitWorktrees
from runs.models import Notice, Project, Run
from runs.projects.checkout_fields import SUBMODULES
from runs.setup import checkout
from tests import make
from tests.fakes import World
from tests.repositories import IDENTITY, a_checkout, git
from tests.world.stories import look, start, work

WEB = "https://forge.test"


@pytest.fixture
def project(world: World, db: None) -> Project:
    world.tracker.add_root("demo")
    return make.a_project(agent=make.an_agent(), url=f"{WEB}/a/b.git", token="s3cret")


@pytest.mark.django_db(transaction=True)
def test_large_files_come_with_the_projects_token(world: World, project: Project) -> None:
    Project.objects.update(sparse_folders="lib")
    world.repos.large_files = True
    run = start(world, Project.objects.get())
    assert world.repos.fetched_large == [(Path(run.worktree), ("lib",), "s3cret", WEB)]


@pytest.mark.django_db(transaction=True)
def test_a_run_says_that_large_files_are_not_there(world: World, project: Project) -> None:
    world.repos.large_files, world.repos.lfs = True, False
    run = start(world, project)
    assert world.repos.fetched_large == []
    assert Notice.objects.filter(run=run, text=checkout.NO_LFS).count() == 1


@pytest.mark.django_db(transaction=True)
def test_no_agent_starts_where_they_could_not_be_fetched(world: World, project: Project) -> None:
    world.repos.large_files, world.repos.broken_large_files = True, "batch response: 404"
    world.tracker.add_issue("demo", "Issue 7", "7", labels=[project.ready_label])
    start_requests.request(world.lab, project, "anna", "7")
    look(world)
    work(world)
    run = Run.objects.get()
    assert run.outcome == "failed"
    assert "large files could not be fetched: batch response: 404" in run.reason
    assert world.sessions.orders == {}


@pytest.mark.django_db
def test_only_the_command_for_submodules_gets_the_token(world: World, project: Project) -> None:
    given = checkout.environment_of(world.lab, project, SUBMODULES)
    assert (given["LAB_GIT_TOKEN"], given["LAB_GIT_PLACE"]) == ("s3cret", WEB)
    assert given["GIT_CONFIG_KEY_0"] == f"credential.{WEB}.helper"
    assert checkout.environment_of(world.lab, project, ["npm", "ci"]) == {}
    project.url = "git@forge.test:a/b.git"
    assert checkout.environment_of(world.lab, project, SUBMODULES) == {}


@pytest.mark.real
@pytest.mark.parametrize(
    ("prompt", "given"),
    [
        (f"Password for '{WEB}': ", "s3cret"),
        ("Password for 'https://bot@forge.test': ", "s3cret"),
        (f'Username for "{WEB}/a/b.git/info/lfs": ', "x-access-token"),
        ("Password for 'https://evil.test': ", ""),
        ("Password for 'http://forge.test': ", ""),
        ("Password for 'https://forge.test@evil.test': ", ""),
        ("Enter passphrase for key '/x':", ""),
    ],
)
def test_the_token_is_told_for_its_own_server_alone(
    tmp_path: Path, prompt: str, given: str
) -> None:
    helper = tmp_path / "git-askpass"
    helper.write_text(machine._ASKPASS)
    helper.chmod(0o700)
    env = {**os.environ, "LAB_GIT_TOKEN": "s3cret", "LAB_GIT_PLACE": WEB}
    said = subprocess.run([helper, prompt], env=env, capture_output=True, text=True, check=False)
    assert said.stdout.strip() == given
    assert (said.returncode == 0) == bool(given)


@pytest.mark.real
@pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs is not installed")
@pytest.mark.parametrize(
    ("folders", "there"),
    [((), {"top.bin", "lib/a.bin", "big/b.bin"}), (("lib",), {"top.bin", "lib/a.bin"})],
)
def test_large_files_are_in_the_worktree_and_no_change_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folders: tuple[str, ...], there: set[str]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / "gitconfig"))
    monkeypatch.setitem(IDENTITY, "GIT_CONFIG_GLOBAL", str(home / "gitconfig"))
    repos = GitWorktrees(Git(os.environ, tmp_path, lambda: 15.0))
    assert repos.has_lfs() is False
    git(tmp_path, "lfs", "install", "--skip-repo")
    assert repos.has_lfs() is True
    source = a_checkout(tmp_path / "checkout", tmp_path / "origin.git")
    git(source, "lfs", "track", "*.bin")
    for name in ("top.bin", "lib/a.bin", "big/b.bin"):
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_text(name * 1000)
    git(source, "add", "-A")
    git(source, "commit", "-qm", "files")
    git(source, "push", "-q", "origin", "HEAD")
    repo, tree = tmp_path / "repo.git", tmp_path / "tree"
    repos.create(repo, f"file://{tmp_path / 'origin.git'}")
    repos.fetch(repo)
    commit = repos.upstream(repo, "main")
    repos.add_worktree(repo, tree, "afk/7", commit, folders)
    assert repos.names_large_files(tree)
    assert (tree / "lib/a.bin").read_text().startswith("version https://git-lfs")
    repos.fetch_large_files(tree, folders, "s3cret", WEB)
    found = {str(one.relative_to(tree)): one.read_text() for one in tree.rglob("*.bin")}
    assert found == {name: name * 1000 for name in there}
    assert git(tree, "status", "--porcelain") == ""
    assert not repos.is_dirty(tree)
    assert repos.worktree_tree(tree) == repos.tree_of(repo, commit)
    assert (tree / ".git/hooks/pre-push").exists()


def test_an_app_that_sells_no_token_is_said(
    world: World, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> str:
        raise SeamError("GitHub App 12 may not see the files.")

    world.repos.large_files = True
    monkeypatch.setattr("runs.projects.git_credentials.of_git", fail)
    with pytest.raises(SeamError, match="may not see the files"):
        checkout.fetch_large_files(world.lab, project, Path("/x"))
