"""Rescue refs on the fake and on real git: what they hold, and what they never touch."""

from __future__ import annotations

import os

import pytest

from runs.core.kept_ports import RESCUES
from runs.core.ports import SeamError, Taken
from tests.fakes import FakeRepos
from tests.linked import LinkedWorktrees, cut
from tests.real import a_checkout, git

pytestmark = [pytest.mark.real, pytest.mark.quick("contract of the fake and the real git")]

REF = f"{RESCUES}20261121T120000-ab12-afk-7"


@pytest.fixture(params=["fake", "real", "linked"])
def shelf(request, tmp_path):
    """(repos, repo, tree, tip): issue 7 claimed, its worktree clean."""
    repo, tree = tmp_path / "repo.git", tmp_path / "tree"
    if request.param == "fake":
        repos = FakeRepos()
        repos.create(repo, "/origin")
        repo.mkdir()
    else:
        real = request.getfixturevalue("real")
        a_checkout(tmp_path / "checkout", tmp_path / "origin.git")
        repos = real.repos
        if request.param == "linked":
            repos = LinkedWorktrees(repos._git)
        repos.create(repo, str(tmp_path / "origin.git"))
        repos.fetch(repo)
    tip = repos.upstream(repo, "main")
    repos.add_worktree(repo, tree, "afk/7", tip)
    return repos, repo, tree, tip


@pytest.fixture(params=["own", "linked"])
def dirty(real, tmp_path, request):
    """(repo, tree, tip): a worktree with something of every kind in it.

    Of both kinds: those of today, and those that the version before left.
    """
    if request.param == "linked":
        real.repos = LinkedWorktrees(real.repos._git)
    repo, tree = tmp_path / "repo.git", tmp_path / "tree"
    a_checkout(tmp_path / "checkout", tmp_path / "origin.git")
    real.repos.create(repo, str(tmp_path / "origin.git"))
    real.repos.fetch(repo)
    real.repos.add_worktree(repo, tree, "afk/7", real.repos.upstream(repo, "main"))
    (tree / "kept.txt").write_text("committed\n")
    (tree / "gone.txt").write_text("to be deleted\n")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "feat: kept")
    (tree / "staged.txt").write_text("staged\n")
    git(tree, "add", "staged.txt")
    (tree / "staged.txt").write_text("staged, then changed\n")
    (tree / "kept.txt").write_text("changed\n")
    (tree / "gone.txt").unlink()
    (tree / "new dir").mkdir()
    (tree / "new dir" / "ünt\trácked").write_bytes(b"\x00\xff\r\nraw")
    (tree / "run.sh").write_text("#!/bin/sh\n")
    (tree / "run.sh").chmod(0o755)
    (tree / "link").symlink_to("nowhere")
    (tree / ".gitignore").write_text("build/\n")
    (tree / "build").mkdir()
    (tree / "build" / "big.o").write_text("ignored")
    return repo, tree, real.repos.tip(repo, "refs/heads/afk/7")


def test_managed_branches_are_listed_with_tip_and_worktree(shelf):
    repos, repo, tree, tip = shelf
    (found,) = repos.branches(repo, ("afk/", "lab/"))
    assert (found.name, found.tip, found.worktree) == ("afk/7", tip, str(tree))
    assert repos.branches(repo, ("lab/",)) == []


def test_a_state_is_kept_listed_restored_and_dropped(shelf, tmp_path):
    repos, repo, tree, tip = shelf
    state = repos.snapshot(repo, tip, tree)
    assert (state.head, state.tip, state.is_dirty, state.has_worktree) == (tip, tip, False, True)
    commit = repos.keep(repo, REF, state, {"branch": "afk/7", "why": "a test"})
    assert repos.rescues(repo)[REF]["branch"] == "afk/7"
    assert repos.tip(repo, REF) == commit
    with pytest.raises(Taken):
        repos.put_back(repo, REF, "afk/7", None)
    repos.force_remove(repo, tree)
    repos.delete_branch(repo, "afk/7", tip)
    assert repos.claims(repo) == frozenset()
    repos.put_back(repo, REF, "afk/7", tmp_path / "again")
    assert repos.claims(repo) == {"7"}
    assert repos.is_dirty(tmp_path / "again") is False
    repos.drop(repo, REF)
    repos.drop(repo, REF)
    assert repos.rescues(repo) == {}
    with pytest.raises(SeamError, match="gone"):
        repos.put_back(repo, REF, "afk/8", None)


def test_only_a_rescue_ref_can_be_dropped(shelf):
    repos, repo, _, _ = shelf
    with pytest.raises(SeamError):
        repos.drop(repo, "refs/heads/afk/7")
    assert repos.claims(repo) == {"7"}


def test_a_branch_that_moved_is_not_deleted(shelf):
    repos, repo, _, _ = shelf
    with pytest.raises(SeamError):
        repos.delete_branch(repo, "afk/7", "1" * 40)
    assert repos.claims(repo) == {"7"}


def _picture(tree):
    """Every file that is not ignored, with bytes, links and modes; and what git says of them."""
    files = {
        str(path.relative_to(tree)): (
            str(path.readlink()) if path.is_symlink() else path.read_bytes(),
            path.lstat().st_mode,
        )
        for path in sorted(tree.rglob("*"))
        if not path.is_dir() and not {".git", "build"} & set(path.parts)
    }
    return files, git(tree, "status", "--porcelain"), git(tree, "diff", "--cached", "--raw")


def test_what_was_staged_changed_deleted_and_untracked_comes_back_as_it_was(real, dirty, tmp_path):
    repo, tree, tip = dirty
    before = _picture(tree)
    state = real.repos.snapshot(repo, tip, tree)
    assert state.is_dirty
    assert _picture(tree) == before
    real.repos.keep(repo, REF, state, {"branch": "afk/7"})
    real.repos.force_remove(repo, tree)
    real.repos.delete_branch(repo, "afk/7", tip)
    git(repo, "reflog", "expire", "--expire=now", "--all")
    git(repo, "gc", "-q", "--prune=now")
    real.repos.put_back(repo, REF, "afk/7", tree)
    assert _picture(tree) == before
    assert git(tree, "rev-parse", "HEAD") == tip
    assert git(tree, "symbolic-ref", "HEAD") == "refs/heads/afk/7"
    assert not (tree / "build").exists()


def test_a_worktree_that_stands_elsewhere_is_kept_with_both_commits(real, dirty):
    repo, tree, tip = dirty
    git(tree, "checkout", "-q", "--detach")
    git(tree, "commit", "-q", "--allow-empty", "-m", "feat: elsewhere")
    head = git(tree, "rev-parse", "HEAD")
    real.repos.keep(repo, REF, real.repos.snapshot(repo, tip, tree), {"branch": "afk/7"})
    real.repos.force_remove(repo, tree)
    real.repos.delete_branch(repo, "afk/7", tip)
    git(repo, "gc", "-q", "--prune=now")
    real.repos.put_back(repo, REF, "afk/7", tree)
    assert git(tree, "rev-parse", "HEAD") == head
    assert git(repo, "rev-parse", "refs/heads/afk/7") == tip


def test_what_an_index_calls_unchanged_is_looked_at_nevertheless(real, dirty):
    repo, tree, tip = dirty
    git(tree, "update-index", "--assume-unchanged", "hello.txt")
    (tree / "hello.txt").write_text("hidden from git status\n")
    assert "hello.txt" not in git(tree, "status", "--porcelain")
    state = real.repos.snapshot(repo, tip, tree)
    assert git(repo, "show", f"{state.files}:hello.txt") == "hidden from git status"


def test_a_change_in_the_second_of_the_last_index_write_is_kept(real, dirty):
    repo, tree, tip = dirty
    git(tree, "config", "core.trustctime", "false")
    file, index = tree / "hello.txt", git(tree, "rev-parse", "--absolute-git-dir") + "/index"
    then = (10**9, 10**9)
    os.utime(file, then)
    git(tree, "add", "hello.txt")
    os.utime(index, then)
    changed = file.read_text().upper()
    file.write_text(changed)
    os.utime(file, then)
    state = real.repos.snapshot(repo, tip, tree)
    assert git(repo, "show", f"{state.files}:hello.txt") == changed.strip()


def test_no_filter_that_a_repository_names_runs(real, dirty, tmp_path):
    repo, tree, tip = dirty
    git(repo, "config", "filter.evil.clean", f"touch {tmp_path}/ran; cat")
    git(repo, "config", "filter.evil.smudge", f"touch {tmp_path}/ran; cat")
    git(repo, "config", "filter.evil.required", "true")
    (tree / ".gitattributes").write_text("* filter=evil\n")
    real.repos.keep(repo, REF, real.repos.snapshot(repo, tip, tree), {"branch": "afk/7"})
    real.repos.put_back(repo, REF, "afk/7-again", tmp_path / "again")
    assert (tmp_path / "again" / "kept.txt").read_text() == "changed\n"
    assert not (tmp_path / "ran").exists()


def _kept_for_good(real, repo, tree, tip):
    """Rescue a worktree, remove it, and have git throw away whatever no ref leads to."""
    state = real.repos.snapshot(repo, tip, tree)
    real.repos.keep(repo, REF, state, {"branch": "afk/7"})
    real.repos.force_remove(repo, tree)
    real.repos.delete_branch(repo, "afk/7", tip)
    git(repo, "gc", "-q", "--prune=now")
    git(repo, "fsck", "--connectivity-only")
    return state


@pytest.mark.parametrize("has_commit", [True, False])
def test_a_repository_inside_a_worktree_is_kept_with_its_files_and_commits(real, dirty, has_commit):
    repo, tree, tip = dirty
    inner = tree / "vendor" / "in ner"
    inner.mkdir(parents=True)
    git(inner, "init", "-q")
    (inner / "work.txt").write_text("first")
    (inner / "deeper").mkdir()
    git(inner / "deeper", "init", "-q")
    (inner / "deeper" / "more.txt").write_text("more")
    commit = ""
    if has_commit:
        git(inner, "add", "work.txt")
        git(inner, "commit", "-q", "-m", "feat: inner")
        commit = git(inner, "rev-parse", "HEAD")
    (inner / "work.txt").write_text("second")
    _kept_for_good(real, repo, tree, tip)
    assert git(repo, "show", f"{REF}:vendor/in ner/work.txt") == "second"
    assert git(repo, "show", f"{REF}:vendor/in ner/deeper/more.txt") == "more"
    if has_commit:
        assert git(repo, "show", f"{commit}:work.txt") == "first"
    real.repos.put_back(repo, REF, "afk/7", tree)
    assert (inner / "work.txt").read_text() == "second"
    assert (tree / "kept.txt").read_text() == "changed\n"


def test_a_submodule_is_kept_with_its_files_and_commits(real, dirty, tmp_path):
    repo, tree, tip = dirty
    a_checkout(tmp_path / "library")
    allow = ("-c", "protocol.file.allow=always")
    git(tree, *allow, "submodule", "--quiet", "add", str(tmp_path / "library"), "lib")
    git(tree / "lib", "commit", "-q", "--allow-empty", "-m", "feat: of its own")
    commit = git(tree / "lib", "rev-parse", "HEAD")
    before = real.repos.weight(repo, tree)
    packed = next(
        one
        for where in ("worktrees/*/modules", "../tree/.git/modules")
        for one in repo.glob(f"{where}/lib/objects")
    )
    (packed / "heavy").write_bytes(bytes(1_000_000))
    assert real.repos.weight(repo, tree) >= before + 1_000_000
    _kept_for_good(real, repo, tree, tip)
    assert git(repo, "show", f"{REF}:lib/hello.txt")
    assert git(repo, "cat-file", "-t", commit) == "commit"


def test_a_shallow_clone_inside_a_worktree_is_refused_in_words(real, dirty, tmp_path):
    repo, tree, tip = dirty
    a_checkout(tmp_path / "library")
    git(tmp_path / "library", "commit", "-q", "--allow-empty", "-m", "feat: two")
    git(tree, "clone", "-q", "--depth=1", f"file://{tmp_path}/library", "lib")
    with pytest.raises(SeamError, match="lib is a repository of its own without its whole history"):
        real.repos.snapshot(repo, tip, tree)


@pytest.mark.parametrize("is_linked", [False, True])
def test_a_repository_inside_that_git_refuses_is_refused_in_words(real, dirty, tmp_path, is_linked):
    repo, tree, tip = dirty
    place = ("--separate-git-dir", str(tmp_path / "inner.git")) if is_linked else ()
    git(tree, "init", "-q", *place, "lib")
    git(tree / "lib", "commit", "-q", "--allow-empty", "-m", "feat: inner")
    git(tree / "lib", "config", "core.repositoryFormatVersion", "99")
    with pytest.raises(SeamError, match="lib is a repository of its own that git cannot read"):
        real.repos.snapshot(repo, tip, tree)


def test_a_folder_inside_whose_link_leads_nowhere_is_kept_with_its_files(real, dirty):
    repo, tree, tip = dirty
    (tree / "lib").mkdir()
    (tree / "lib" / ".git").write_text("gitdir: /nowhere/at/all\n")
    (tree / "lib" / "work.txt").write_text("work")
    _kept_for_good(real, repo, tree, tip)
    assert git(repo, "show", f"{REF}:lib/work.txt") == "work"


def test_no_program_runs_that_a_repository_inside_names_for_what_it_lacks(real, dirty, tmp_path):
    repo, tree, tip = dirty
    inner = tree / "lib"
    a_checkout(tmp_path / "library")
    git(tree, "clone", "-q", str(tmp_path / "library"), "lib")
    blob = git(inner, "rev-parse", "HEAD:hello.txt")
    (inner / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for name, value in (
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.uploadpack", f"touch {tmp_path}/ran; git-upload-pack"),
    ):
        git(inner, "config", name, value)
    with pytest.raises(SeamError, match="lib is a repository of its own that git cannot read"):
        real.repos.snapshot(repo, tip, tree)
    assert not (tmp_path / "ran").exists()


def test_one_more_worktree_inside_a_worktree_is_kept(real, dirty):
    repo, tree, tip = dirty
    git(tree, "worktree", "add", "-q", "--detach", "side")
    (tree / "side" / "work.txt").write_text("work")
    git(tree / "side", "add", "-A")
    git(tree / "side", "commit", "-q", "-m", "feat: beside")
    commit = git(tree / "side", "rev-parse", "HEAD")
    _kept_for_good(real, repo, tree, tip)
    assert git(repo, "show", f"{commit}:work.txt") == "work"


def test_a_branch_without_a_commit_is_kept_with_its_files(real, dirty):
    repo, tree, tip = dirty
    git(tree, "checkout", "-q", "--orphan", "elsewhere")
    _kept_for_good(real, repo, tree, tip)
    real.repos.put_back(repo, REF, "afk/7", tree)
    assert (tree / "kept.txt").read_text() == "changed\n"
    assert (tree / "new dir" / "ünt\trácked").exists()


def test_a_sparse_checkout_is_kept_with_what_it_left_out(real, dirty):
    repo, tree, tip = dirty
    git(tree, "add", "-A")
    (tree / "one").mkdir()
    (tree / "two").mkdir()
    for name in ("one", "two"):
        (tree / name / "file.txt").write_text(name)
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "feat: folders")
    tip = git(tree, "rev-parse", "HEAD")
    git(tree, "sparse-checkout", "set", "one")
    (tree / "two").mkdir(exist_ok=True)
    (tree / "two" / "new.txt").write_text("outside of the cone")
    (tree / "one" / "file.txt").write_text("changed")
    state = _kept_for_good(real, repo, tree, tip)
    assert state.is_dirty
    assert git(repo, "show", f"{REF}:two/new.txt") == "outside of the cone"
    assert git(repo, "show", f"{REF}:two/file.txt") == "two"
    assert git(repo, "show", f"{REF}:one/file.txt") == "changed"


def test_a_storing_that_fails_leaves_nothing_of_itself(real, dirty):
    repo, tree, tip = dirty
    before = sorted(repo.rglob("*"))
    (tree / "big.bin").write_bytes(os.urandom(20_000_000))
    real.git_timeout = 0.05
    with pytest.raises(SeamError, match="no answer within"):
        real.repos.snapshot(repo, tip, tree)
    assert sorted(repo.rglob("*")) == before


def test_what_a_killed_storing_left_goes_with_the_next(real, dirty):
    repo, tree, tip = dirty
    old = repo / "objects" / "tmp_objdir-labsite-dead"
    old.mkdir()
    (old / "tmp_obj_1").write_text("half of it")
    long_ago, now = (
        repo / "objects" / "pack" / "tmp_pack_1",
        repo / "objects" / "pack" / "tmp_pack_2",
    )
    for file in (long_ago, now):
        file.write_text("half of it")
    os.utime(long_ago, (1e9, 1e9))
    real.repos.snapshot(repo, tip, tree)
    assert not list((repo / "objects").glob("tmp_*"))
    assert (long_ago.exists(), now.exists()) == (False, True)


def test_an_unfinished_merge_is_kept_as_it_lies_on_disk(real, dirty):
    repo, tree, tip = dirty
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "feat: all")
    git(tree, "checkout", "-q", "-b", "other", "HEAD~1")
    (tree / "kept.txt").write_text("the other way\n")
    git(tree, "commit", "-q", "-am", "feat: other")
    with pytest.raises(Exception, match="merge"):
        git(tree, "merge", "afk/7")
    state = real.repos.snapshot(repo, tip, tree)
    assert "<<<<<<<" in git(repo, "show", f"{state.files}:kept.txt")


def test_a_restore_that_fails_leaves_nothing_half_made(real, dirty, tmp_path):
    repo, tree, tip = dirty
    real.repos.keep(repo, REF, real.repos.snapshot(repo, tip, tree), {"branch": "afk/7"})
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder should be")
    with pytest.raises(SeamError):
        real.repos.put_back(repo, REF, "afk/7-again", blocked / "tree")
    assert git(repo, "branch", "--list", "afk/7-again") == ""


@pytest.mark.parametrize("where", ["info/exclude", "core.excludesFile"])
def test_what_only_lists_of_the_whole_repository_ignore_is_kept_too(real, dirty, tmp_path, where):
    repo, tree, tip = dirty
    if where == "info/exclude":
        (repo / "info").mkdir(exist_ok=True)
        (repo / "info" / "exclude").write_text("hidden*\n")
    else:
        (tmp_path / "ignored").write_text("hidden*\n")
        git(repo, "config", "core.excludesFile", str(tmp_path / "ignored"))
    (tree / "hidden *.txt").write_text("work of another run")
    state = real.repos.snapshot(repo, tip, tree)
    real.repos.keep(repo, REF, state, {})
    assert git(repo, "show", f"{REF}:hidden *.txt") == "work of another run"
    assert "build/big.o" not in git(repo, "ls-tree", "-r", "--name-only", REF)


def test_a_worktree_whose_link_was_removed_is_kept_with_all_its_files(real, dirty):
    repo, tree, tip = dirty
    cut(tree)
    state = real.repos.snapshot(repo, tip, tree)
    assert (state.tip, state.head, state.is_dirty) == (tip, tip, True)
    real.repos.keep(repo, REF, state, {})
    assert git(repo, "show", f"{REF}:staged.txt") == "staged, then changed"
    assert git(repo, "show", f"{REF}:kept.txt") == "changed"
    assert "gone.txt" not in git(repo, "ls-tree", "-r", "--name-only", REF).split()


def test_a_worktree_that_was_made_a_repository_of_its_own_is_kept_with_its_commits(real, dirty):
    repo, tree, tip = dirty
    cut(tree)
    git(tree, "init", "-q", "-b", "afk/7")
    git(tree, "add", "kept.txt")
    git(tree, "commit", "-q", "-m", "feat: of its own")
    commit = git(tree, "rev-parse", "HEAD")
    git(tree, "commit", "-q", "--amend", "-m", "feat: the log alone names the first now")
    state = _kept_for_good(real, repo, tree, tip)
    assert (state.tip, state.is_dirty) == (tip, True)
    assert git(repo, "show", f"{REF}:staged.txt") == "staged, then changed"
    assert git(repo, "show", f"{commit}:kept.txt") == "changed"
    real.repos.put_back(repo, REF, "afk/7", tree)
    assert git(tree, "symbolic-ref", "HEAD") == "refs/heads/afk/7"
    assert (tree / "staged.txt").read_text() == "staged, then changed\n"


def test_a_worktree_whose_repository_of_its_own_is_broken_keeps_its_files(real, dirty):
    repo, tree, tip = dirty
    cut(tree)
    (tree / ".git").mkdir()
    (tree / ".git" / "HEAD").write_text("nonsense")
    _kept_for_good(real, repo, tree, tip)
    assert git(repo, "show", f"{REF}:kept.txt") == "changed"


def test_a_hidden_file_with_a_name_that_is_no_text_is_kept(real, dirty):
    repo, tree, tip = dirty
    (repo / "info").mkdir(exist_ok=True)
    (repo / "info" / "exclude").write_text("*.log\n")
    (tree / os.fsdecode(b"caf\xe9.log")).write_text("work")
    real.repos.keep(repo, REF, real.repos.snapshot(repo, tip, tree), {})
    assert b"caf\\351.log" in git(repo, "ls-tree", "-r", "--name-only", REF).encode()
