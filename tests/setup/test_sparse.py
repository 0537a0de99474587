"""Worktrees that hold some folders of a repository alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from django.test import Client

from runs.machine.run_repositories import cone_of
from runs.models import Project
from runs.setup import folder_rules
from tests import make
from tests.fakes import World
from tests.real import RealWorld
from tests.repositories import a_checkout, git
from tests.web.people import text_of
from tests.world.stories import start

FOLDERS = ("services/shop", "lib")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ()),
        ("\n lib/ \r\n/services/shop\nlib\n", ("lib", "services/shop")),
        ("a folder/ä.b", ("a folder/ä.b",)),
    ],
)
def test_folders_are_read_one_a_line(text: str, found: tuple[str, ...]) -> None:
    assert folder_rules.read_folders(text) == found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("/", "leave it empty"),
        ("src/*", "patterns are not possible"),
        ("!src", "patterns are not possible"),
        ("a\\b", "patterns are not possible"),
        ("../x", "leads out"),
        ("a//b", "leads out"),
        (".git/hooks", "leads out"),
        ("x" * 301, "too long"),
        ("\n".join(str(n) for n in range(101)), "At most 100 folders"),
    ],
)
def test_what_git_could_not_take_for_a_folder_is_said(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        folder_rules.read_folders(text)


@pytest.mark.real
@pytest.mark.parametrize("folders", [("a",), FOLDERS, ("a/b/c", "a/b", "z"), ("a b/c", "d")])
def test_patterns_are_those_that_git_writes(tmp_path: Path, folders: tuple[str, ...]) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(
        ["git", "-C", tmp_path, "sparse-checkout", "set", "--cone", "--", *folders], check=True
    )
    written = (tmp_path / ".git/info/sparse-checkout").read_text()
    assert "\n".join([*cone_of(folders), ""]) == written


@pytest.mark.django_db(transaction=True)
def test_new_worktrees_hold_what_the_project_says(anna: Client, world: World) -> None:
    world.tracker.add_root("demo")
    project = make.a_project(agent=make.an_agent())
    at = f"/projects/{project.pk}/settings/setup/"
    names = ("setup", "setup_again", "setup_after", "setup_removal")
    form = {**dict.fromkeys(names, ""), "setup_minutes": "10", "branch_prefix": "afk/"}
    answer = anna.post(at, {**form, "sparse_folders": "../x"})
    assert answer.status_code == 422
    assert "it leads out of the repository" in text_of(answer)
    assert anna.post(at, {**form, "sparse_folders": "lib/\n"}).status_code == 303
    run = start(world, Project.objects.get())
    assert world.repos.sparse[Path(run.worktree)] == ("lib",)


@pytest.mark.real
def test_a_sparse_worktree_is_clean_and_its_rescue_holds_everything(
    real: RealWorld, tmp_path: Path
) -> None:
    source = a_checkout(tmp_path / "checkout", tmp_path / "origin.git")
    for name in (
        "lib/a.txt",
        "services/shop/b.txt",
        "services/other/c.txt",
        "big/d.txt",
        "top.txt",
    ):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(f"{name}\n")
    git(source, "add", "-A")
    git(source, "commit", "-qm", "files")
    git(source, "push", "-q", "origin", "HEAD")
    repo, tree = tmp_path / "repo.git", tmp_path / "tree"
    real.repos.create(repo, str(tmp_path / "origin.git"))
    real.repos.fetch(repo)
    commit = real.repos.upstream(repo, "main")
    real.repos.add_worktree(repo, tree, "afk/7", commit, FOLDERS)
    assert (tree / "lib/a.txt").exists()
    assert (tree / "services/shop/b.txt").exists()
    assert (tree / "top.txt").exists()
    assert not (tree / "services/other").exists()
    assert not (tree / "big").exists()
    assert git(tree, "status", "--porcelain") == ""
    assert git(tree, "sparse-checkout", "list").split() == ["lib", "services/shop"]
    assert not real.repos.is_dirty(tree)
    assert real.repos.worktree_tree(tree) == real.repos.tree_of(repo, commit)
    (tree / "lib/a.txt").write_text("changed\n")
    found = real.repos.snapshot(repo, commit, tree)
    assert git(repo, "diff", "--name-only", commit, found.files) == "lib/a.txt"
    git(tree, "commit", "-qam", "work")
    assert [
        one.path
        for one in real.repos.changes(repo, commit, real.repos.tip(repo, "refs/heads/afk/7"))
    ] == ["lib/a.txt"]
    again = tmp_path / "detached"
    real.repos.add_detached(repo, again, commit, ("big",))
    assert (again / "big/d.txt").exists()
    assert not (again / "lib").exists()
