"""Submodules: a worktree with some is removed when nothing in them would be lost by it."""

from __future__ import annotations

import shutil

import pytest

from runs.core.ports import SeamError
from tests.linked import LinkedWorktrees
from tests.real import a_checkout, git

pytestmark = [pytest.mark.real, pytest.mark.quick("decides whether work is deleted")]

ALLOW = ("-c", "protocol.file.allow=always")


@pytest.fixture(params=["own", "linked"])
def stand(real, tmp_path, request):
    """(repos, repo, tree): a claimed worktree whose project has a submodule `lib`, checked out.

    That has one of its own, `deep`.
    """
    checkout = _a_project(tmp_path)
    git(checkout, "push", "-q", "origin", "HEAD:main")
    return _claim(real, tmp_path, request.param)


def _a_project(tmp_path):
    """A checkout whose last commit has the submodules."""
    a_checkout(tmp_path / "deep", tmp_path / "deep.git")
    library = a_checkout(tmp_path / "library", tmp_path / "library.git")
    git(library, *ALLOW, "submodule", "--quiet", "add", str(tmp_path / "deep.git"), "deep")
    git(library, "commit", "-q", "-m", "feat: what is deeper")
    git(library, "push", "-q", "origin", "HEAD:main")
    checkout = a_checkout(tmp_path / "checkout", tmp_path / "origin.git")
    git(checkout, *ALLOW, "submodule", "--quiet", "add", str(tmp_path / "library.git"), "lib")
    git(checkout, "commit", "-q", "-m", "feat: a library")
    return checkout


def _claim(real, tmp_path, kind):
    repos = LinkedWorktrees(real.repos._git) if kind == "linked" else real.repos
    repo, tree = tmp_path / "repo.git", tmp_path / "tree"
    repos.create(repo, str(tmp_path / "origin.git"))
    repos.fetch(repo)
    repos.add_worktree(repo, tree, "afk/7", repos.upstream(repo, "main"))
    assert list((tree / "lib").iterdir()) == []
    git(tree, *ALLOW, "submodule", "--quiet", "update", "--init", "--recursive")
    assert (tree / "lib" / "deep" / "hello.txt").exists()
    return repos, repo, tree


def _commit(folder, *, on=""):
    if on:
        git(folder, "checkout", "-q", "-b", on)
    (folder / "hello.txt").write_text("changed")
    git(folder, "commit", "-q", "-a", "-m", "feat: of its own")


def _record(tree):
    git(tree, "add", "lib")
    git(tree, "commit", "-q", "-m", "feat: the library of now")


def _add_a_file(tree):
    (tree / "lib" / "new.txt").write_text("new")


def _add_a_file_deeper(tree):
    (tree / "lib" / "deep" / "new.txt").write_text("new")


def _commit_and_record(tree):
    _commit(tree / "lib")
    _record(tree)


def _record_and_push_that_alone(tree):
    _commit_and_record(tree)
    git(tree, "push", "-q", "origin", "HEAD:refs/heads/afk/7")


def _commit_on_another_branch(tree):
    before = git(tree / "lib", "rev-parse", "HEAD")
    _commit(tree / "lib", on="other")
    git(tree / "lib", "checkout", "-q", before)


def _stash(tree):
    (tree / "lib" / "hello.txt").write_text("changed")
    git(tree / "lib", "stash", "-q")


def _remove_the_folder(tree):
    _commit(tree / "lib")
    git(tree, "submodule", "--quiet", "deinit", "--force", "lib")


def _embed(tree):
    shutil.rmtree(tree / "lib")
    inner = a_checkout(tree / "inner")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "feat: a repository inside")
    assert (inner / ".git").is_dir()


@pytest.mark.parametrize(
    "work",
    [
        *(_add_a_file, _commit_and_record, _commit_on_another_branch),
        *(_stash, _remove_the_folder, _embed),
        *(_add_a_file_deeper, _record_and_push_that_alone),
    ],
)
def test_work_in_a_submodule_that_is_nowhere_else_keeps_its_worktree(stand, work):
    repos, repo, tree = stand
    work(tree)
    assert repos.holds_submodule_work(repo, tree)
    with pytest.raises(SeamError):
        repos.remove_worktree(repo, tree)
    assert tree.is_dir()


@pytest.mark.parametrize("work", ["nothing", "pushed"])
def test_a_worktree_goes_whose_submodules_hold_nothing_of_their_own(stand, work):
    repos, repo, tree = stand
    if work == "pushed":
        _commit_and_record(tree)
        git(tree / "lib", "push", "-q", "origin", "HEAD:refs/heads/more")
    assert not repos.holds_submodule_work(repo, tree)
    repos.remove_worktree(repo, tree)
    assert not tree.exists()
    assert repos.registered(repo) == []


def test_changes_beside_a_submodule_keep_a_worktree_too(stand):
    repos, repo, tree = stand
    (tree / "new.txt").write_text("new")
    assert not repos.holds_submodule_work(repo, tree)
    with pytest.raises(SeamError, match="modified or untracked"):
        repos.remove_worktree(repo, tree)
    assert (tree / "new.txt").exists()


def test_a_submodule_that_cannot_be_read_counts_as_work(stand):
    repos, repo, tree = stand
    shutil.rmtree(next(tree.parent.rglob("modules/lib")) / "refs")
    assert repos.holds_submodule_work(repo, tree)


@pytest.mark.parametrize("kind", ["own", "linked"])
def test_a_commit_that_origin_has_under_a_tag_alone_is_no_work_and_one_upon_it_is(
    real, tmp_path, kind
):
    checkout = _a_project(tmp_path)
    library = checkout / "lib"
    git(library, "checkout", "-q", "--detach")
    _commit(library)
    git(library, "tag", "v1")
    git(library, "push", "-q", "origin", "v1")
    _record(checkout)
    git(checkout, "push", "-q", "origin", "HEAD:main")
    repos, repo, tree = _claim(real, tmp_path, kind)
    assert git(tree / "lib", "branch", "--remotes", "--contains", "HEAD") == ""
    assert not repos.holds_submodule_work(repo, tree)
    git(tree / "lib", "commit", "-q", "--allow-empty", "-m", "feat: of its own")
    _record(tree)
    assert repos.holds_submodule_work(repo, tree)


def test_what_submodules_have_pushed_is_not_stored(stand):
    repos, repo, tree = stand
    tip = git(tree, "rev-parse", "HEAD")
    state = repos.snapshot(repo, tip, tree)
    assert (state.is_dirty, state.beside) == (False, ())
    assert state.files == git(tree, "rev-parse", "HEAD^{tree}")
    _commit(tree / "lib")
    git(tree / "lib", "push", "-q", "origin", "HEAD:refs/heads/more")
    state = repos.snapshot(repo, tip, tree)
    assert state.is_dirty
    assert git(repo, "rev-parse", f"{state.files}:lib") == git(tree / "lib", "rev-parse", "HEAD")


def test_of_submodules_with_work_everything_is_stored(stand):
    repos, repo, tree = stand
    _add_a_file_deeper(tree)
    state = repos.snapshot(repo, git(tree, "rev-parse", "HEAD"), tree)
    assert git(repo, "show", f"{state.files}:lib/deep/new.txt") == "new"
    assert git(repo, "show", f"{state.files}:lib/hello.txt")
    assert git(tree / "lib", "rev-parse", "HEAD") in state.beside
