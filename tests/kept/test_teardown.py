"""The guarded teardown on real git: one cell of the rule each, and what goes wrong on bad days."""

from __future__ import annotations

from pathlib import Path

import pytest

from runs.kept import rescue, teardown
from runs.models import Notice, Rescue
from tests.linked import cut, refuse_removal
from tests.real import a_checkout, git

pytestmark = pytest.mark.django_db(transaction=True)


def _piece(real, project, branch="lab/try", *, dirty=False, work=False, merged=False):
    """A worktree on a managed branch; `merged` brings its work into origin's default branch."""
    repo = project.repo(real.paths)
    path = real.paths.worktrees / f"{project.slug}-{branch.replace('/', '-')}"
    fork = real.repos.upstream(repo, "main")
    real.repos.add_worktree(repo, path, branch, fork)
    if work or merged:
        (path / "work.txt").write_text("work\n")
        git(path, "add", "-A")
        git(path, "commit", "-q", "-m", "feat: work")
    if merged:
        git(path, "push", "-q", "origin", f"{branch}:main")
        real.repos.fetch(repo, url=project.url)
    if dirty:
        (path / "new.txt").write_text("untracked")
    return teardown.Piece(branch, path, fork)


def _has_branch(real, project, branch="lab/try"):
    return bool(git(project.repo(real.paths), "branch", "--list", branch))


@pytest.mark.row("LAB-106", "LAB-107", level="real")
@pytest.mark.parametrize(
    ("dirty", "merged", "tree_stays", "branch_stays"),
    [
        pytest.param(True, True, True, True, id="dirty, merged"),
        pytest.param(True, False, True, True, id="dirty, unmerged"),
        pytest.param(False, True, False, False, id="clean, merged"),
        pytest.param(False, False, False, True, id="clean, unmerged"),
    ],
)
def test_disk_and_refs_match_the_rule(real, dirty, merged, tree_stays, branch_stays):
    project = real.project()
    piece = _piece(real, project, dirty=dirty, work=True, merged=merged)
    done = teardown.tear_down(real.lab, project, piece, why="a test")
    assert piece.path.exists() is tree_stays
    assert _has_branch(real, project) is branch_stays
    assert done.removed_worktree is not tree_stays
    assert done.deleted_branch is not branch_stays
    assert bool(done.warning) is dirty
    again = teardown.tear_down(real.lab, project, piece, why="a test")
    assert not again.removed_worktree
    assert not Rescue.objects.exists()


@pytest.mark.row("LAB-138", level="real")
def test_a_claim_that_never_left_its_fork_point_is_not_merged(real):
    project = real.project()
    piece = _piece(real, project, "afk/7")
    teardown.tear_down(real.lab, project, piece, why="a test")
    assert _has_branch(real, project, "afk/7")


@pytest.mark.row("LAB-139", level="real")
def test_a_squashed_branch_goes_when_its_merged_request_ends_at_its_tip_and_is_rescued(real):
    project = real.project()
    piece = _piece(real, project, "afk/7", work=True)
    tip = git(piece.path, "rev-parse", "HEAD")
    squashed = teardown.Piece("afk/7", piece.path, piece.fork_point, frozenset([tip]))
    done = teardown.tear_down(real.lab, project, squashed, why="its pull request was merged")
    assert done.deleted_branch
    assert done.rescue.tip == tip
    assert Notice.objects.get(kind="work.rescued").issue_key == "7"


@pytest.mark.row("LAB-108", level="real")
def test_a_broken_default_branch_keeps_the_branch_and_warns(real):
    project = real.project()
    piece = _piece(real, project, work=True, merged=True)
    git(project.repo(real.paths), "update-ref", "-d", "refs/remotes/origin/main")
    done = teardown.tear_down(real.lab, project, piece, why="a test")
    assert _has_branch(real, project)
    assert "could not say whether the branch is merged" in done.warning


@pytest.mark.row("LAB-109", level="real")
def test_a_status_that_fails_keeps_everything_and_nobody_s_action_fails(real):
    project = real.project()
    piece = _piece(real, project, work=True, merged=True)
    cut(piece.path)
    (piece.path / ".git").write_text("gitdir: /nowhere\n")
    done = teardown.tear_down(real.lab, project, piece, why="a test")
    assert piece.path.exists()
    assert _has_branch(real, project)
    assert done.warning


@pytest.mark.row("LAB-109", level="real")
def test_a_worktree_that_cannot_be_removed_keeps_its_branch_too(real, monkeypatch):
    project = real.project()
    piece = _piece(real, project, work=True, merged=True)
    monkeypatch.setattr(real.repos, "remove_worktree", refuse_removal)
    done = teardown.tear_down(real.lab, project, piece, why="a test")
    assert piece.path.exists()
    assert _has_branch(real, project)
    assert "could not be removed" in done.warning


def test_what_git_calls_clean_and_is_not_is_rescued_before_it_goes(real):
    project = real.project()
    piece = _piece(real, project, work=True)
    git(piece.path, "update-index", "--assume-unchanged", "hello.txt")
    (piece.path / "hello.txt").write_text("hidden from git status\n")
    done = teardown.tear_down(real.lab, project, piece, why="a test")
    assert done.removed_worktree
    repo = project.repo(real.paths)
    assert git(repo, "show", f"{done.rescue.ref}:hello.txt") == "hidden from git status"


def _with_a_submodule(real, project, tmp_path):
    piece = _piece(real, project, work=True)
    a_checkout(tmp_path / "library")
    allow = ("-c", "protocol.file.allow=always")
    git(piece.path, *allow, "submodule", "--quiet", "add", str(tmp_path / "library"), "lib")
    return piece


def test_a_worktree_with_work_in_a_submodule_is_kept_in_words_and_not_packed(real, tmp_path):
    project = real.project()
    piece = _with_a_submodule(real, project, tmp_path)
    git(piece.path / "lib", "commit", "-q", "--allow-empty", "-m", "feat: not pushed")
    git(piece.path, "add", "lib")
    git(piece.path, "commit", "-q", "-m", "feat: a library")
    done = teardown.tear_down(real.lab, project, piece, why="a test")
    assert "a submodule in it has changes or commits that were not pushed" in done.warning
    assert piece.path.exists()
    assert not Rescue.objects.exists()
    assert not Notice.objects.filter(kind="work.rescued").exists()


def test_a_clean_worktree_with_a_submodule_goes_without_a_rescue(real, tmp_path):
    project = real.project()
    piece = _with_a_submodule(real, project, tmp_path)
    git(piece.path, "commit", "-q", "-m", "feat: a library")
    done = teardown.tear_down(real.lab, project, piece, why="a test")
    assert (done.removed_worktree, done.rescue) == (True, None)
    assert not piece.path.exists()
    assert not Notice.objects.filter(kind="work.rescued").exists()


def test_an_older_rescue_never_passes_for_commits_of_a_repository_inside(real):
    project = real.project()
    piece = _piece(real, project)
    git(piece.path, "init", "-q", "lib")
    lib = piece.path / "lib"
    repo = project.repo(real.paths)
    tip = real.repos.tip(repo, f"refs/heads/{piece.branch}")
    kept = []
    for text in ("one", "two", None):
        if text:
            git(lib, "commit", "-q", "--allow-empty", "-m", text)
        kept.append(rescue.keep(real.lab, project, piece.branch, tip, piece.path, why="a test").ref)
    assert kept[0] != kept[1] == kept[2]
    assert git(lib, "rev-parse", "HEAD") in real.repos.parents(repo, real.repos.tip(repo, kept[1]))


def test_nothing_is_removed_when_the_rescue_ref_cannot_be_written(real):
    project = real.project()
    piece = _piece(real, project, "afk/7", work=True)
    tip = git(piece.path, "rev-parse", "HEAD")
    squashed = teardown.Piece("afk/7", piece.path, piece.fork_point, frozenset([tip]))
    blocked = project.repo(real.paths) / "refs" / "labsite"
    blocked.write_text("a file where git needs a folder")
    done = teardown.tear_down(real.lab, project, squashed, why="a test")
    assert "nothing was removed" in done.warning
    assert piece.path.exists()
    assert _has_branch(real, project, "afk/7")
    assert not Rescue.objects.exists()


@pytest.mark.row("LAB-115", level="real")
def test_a_worktree_that_somebody_made_elsewhere_is_left_alone(real, tmp_path):
    project = real.project()
    repo = project.repo(real.paths)
    real.repos.add_worktree(repo, tmp_path / "mine", "lab/try", real.repos.upstream(repo, "main"))
    piece = teardown.Piece("lab/try", tmp_path / "mine")
    done = teardown.tear_down(real.lab, project, piece, why="a test")
    assert Path(tmp_path / "mine").exists()
    assert "left alone" in done.warning


def test_the_teardown_holds_on_the_fake_too(world):
    from tests import make

    project = make.a_project()
    repo, path = project.repo(world.lab.paths), world.lab.paths.worktrees / "demo-7"
    world.repos.add_worktree(repo, path, "lab/x", "a" * 40)
    world.repos.trees[path].is_dirty = None
    done = teardown.tear_down(world.lab, project, teardown.Piece("lab/x", path), why="a test")
    assert done.warning
    assert path.exists()
