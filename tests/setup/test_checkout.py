"""Large files and submodules in new worktrees, with the token for their own server alone."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from runs.core.kept_ports import RESCUES
from runs.core.ports import SeamError
from runs.dispatch import start_requests
from runs.machine import git as machine
from runs.machine.git import Git
from runs.machine.worktrees import GitWorktrees
from runs.models import Notice, Project, Run
from runs.projects.checkout_fields import SUBMODULES
from runs.setup import checkout
from tests import make, programs
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
    assert repos.lacks_large_files(tree)
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


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
BY_LFS = "*.bin filter=lfs diff=lfs merge=lfs -text\n"
STUB = """#!/bin/sh
echo "$@" >>{log}
case $1 in
ls-files) git grep -l --cached '^version https://git-lfs';;
pull) [ ! -e {log}.broken ];;
esac
"""


class Large:
    """A shared repository with some files in its commit, and a `git lfs` that only notes what it is asked."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, texts: dict[str, str]
    ) -> None:
        self.log = folder / "asked"
        stub = folder / "bin/git-lfs"
        stub.parent.mkdir()
        stub.write_text(STUB.format(log=self.log))
        stub.chmod(0o700)
        monkeypatch.setenv("PATH", f"{stub.parent}{os.pathsep}{os.environ['PATH']}")
        self.repos = GitWorktrees(Git({**os.environ, **IDENTITY}, folder, lambda: 15.0))
        source = a_checkout(folder / "checkout", folder / "origin.git")
        for name, text in texts.items():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_text(text)
        git(source, "add", "-A")
        git(source, "commit", "-q", "--allow-empty", "-m", "files")
        git(source, "push", "-q", "origin", "HEAD:main")
        self.repo, self.tree = folder / "repo.git", folder / "tree"
        self.repos.create(self.repo, str(folder / "origin.git"))
        self.repos.fetch(self.repo)
        self.commit = self.repos.upstream(self.repo, "main")

    def claim(self, folders: tuple[str, ...] = ()) -> Path:
        self.repos.add_worktree(self.repo, self.tree, "afk/7", self.commit, folders)
        return self.tree

    def asked(self) -> list[str]:
        return self.log.read_text().splitlines()


@pytest.mark.real
@pytest.mark.parametrize(
    ("texts", "is_lacking", "asked"),
    [
        pytest.param({"lib/a.bin": "x"}, False, [], id="no attributes at all"),
        pytest.param({".gitattributes": BY_LFS}, True, ["git grep"], id="at the top"),
        pytest.param({"a/b/.gitattributes": BY_LFS}, True, ["git grep"], id="in a folder"),
        pytest.param(
            {".gitattributes": "# long\n" * 20_000 + BY_LFS}, True, ["git grep"], id="a long one"
        ),
        pytest.param(
            {".gitattributes": f"[attr]big {BY_LFS[5:]}"}, True, ["git grep"], id="a macro"
        ),
        pytest.param({".gitattributes": "a#b filter=lfs\r\n"}, True, ["git grep"], id="no comment"),
        pytest.param({".gitattributes": f" # {BY_LFS}"}, False, ["git grep"], id="a comment"),
        pytest.param({"a/.gitattributes": "* filter=lfsx\n"}, False, ["git grep"], id="another"),
        pytest.param({"a/b.gitattributes": BY_LFS}, False, ["git grep"], id="another name"),
    ],
)
def test_large_files_are_found_by_any_attributes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    texts: dict[str, str],
    is_lacking: bool,
    asked: list[str],
) -> None:
    large = Large(tmp_path, monkeypatch, texts)
    tree = large.claim()
    with programs.started() as started:
        assert large.repos.lacks_large_files(tree) is is_lacking
    assert started == asked
    with programs.started() as started:
        assert large.repos.lacks_large_files(tree) is is_lacking
    assert bool(started) is is_lacking  # nobody looks twice where there are none


@pytest.mark.real
def test_large_files_are_found_in_an_index_without_full_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = Large(tmp_path, monkeypatch, {"a/.gitattributes": BY_LFS, "a/.gita": ""})
    tree = large.claim()
    git(tree, "update-index", "--index-version", "4")
    assert b".gitattributes\0" not in (tree / ".git/index").read_bytes()
    assert large.repos.lacks_large_files(tree)


@pytest.mark.real
def test_large_files_are_lacking_until_they_were_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = Large(tmp_path, monkeypatch, {"lib/.gitattributes": BY_LFS, "lib/a.bin": POINTER})
    repos, repo, tree = large.repos, large.repo, large.claim()
    broken = Path(f"{large.log}.broken")
    broken.touch()
    with pytest.raises(SeamError):
        repos.fetch_large_files(tree, ())
    assert not repos.add_again(repo, tree, "afk/7")
    assert repos.lacks_large_files(tree)
    broken.unlink()
    repos.fetch_large_files(tree, ())
    assert not repos.lacks_large_files(tree)
    assert git(tree, "status", "--porcelain") == ""
    ref = f"{RESCUES}20261121T120000-ab12-afk-7"
    repos.keep(repo, ref, repos.snapshot(repo, large.commit, tree), {"branch": "afk/7"})
    repos.put_back(repo, ref, "afk/7-again", tmp_path / "again")
    assert repos.lacks_large_files(tmp_path / "again")


@pytest.mark.real
def test_large_files_that_others_pushed_are_fetched_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = Large(tmp_path, monkeypatch, {".gitattributes": BY_LFS})
    repos, repo, tree = large.repos, large.repo, large.claim()
    repos.fetch_large_files(tree, ())
    source = tmp_path / "checkout"
    (source / "a.bin").write_text(POINTER)
    git(source, "add", "-A")
    git(source, "commit", "-qm", "more")
    git(source, "push", "-q", "origin", "HEAD:afk/7")
    repos.fetch(repo)
    assert repos.forward(repo, tree, "afk/7")
    assert repos.lacks_large_files(tree)


@pytest.mark.real
@pytest.mark.parametrize(
    ("folders", "pulled"),
    [
        ((), ["pull"]),
        (("lib",), ["pull --include=lib/a.bin"]),
        (("docs",), []),  # with no name git-lfs would fetch everything
    ],
)
def test_only_large_files_that_are_checked_out_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folders: tuple[str, ...], pulled: list[str]
) -> None:
    texts = {".gitattributes": BY_LFS, "lib/a.bin": POINTER, "docs/a.txt": "x"}
    large = Large(tmp_path, monkeypatch, texts)
    tree = large.claim(folders)
    large.repos.fetch_large_files(tree, folders)
    assert [one for one in large.asked() if one.startswith("pull")] == pulled
    assert large.asked()[-1] == "update"
    assert not large.repos.lacks_large_files(tree)
