"""Folders whose modes or owner stand in the way of their removal: on real files and real git."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runs.core.ports import SeamError, UnremovableError
from runs.machine import files
from runs.machine.git import Git
from runs.machine.worktrees import GitWorktrees
from tests.linked import LinkedWorktrees
from tests.real import a_checkout, git

pytestmark = [pytest.mark.real, pytest.mark.quick("permissions are the system's own")]

NOBODY = 65534
IS_ROOT = os.geteuid() == 0
ROOT = "root alone can make files of another user"


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of the user that the test acts as: another one than root, whom no mode stops."""
    made = Path(tempfile.mkdtemp(prefix="labsite-removal-"))
    monkeypatch.setenv("HOME", str(made))
    a_checkout(made / "checkout", made / "origin.git")
    if IS_ROOT:
        for one in (made, *made.rglob("*")):
            os.chown(one, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield made
    finally:
        if IS_ROOT:
            os.setresuid(0, 0, 0)
        files.open_folders(made)
        shutil.rmtree(made, ignore_errors=True)


def _as_root(act: Callable[[], object]) -> None:
    """Do something as root in the middle of a test."""
    if not IS_ROOT:
        pytest.skip(ROOT)
    os.setresuid(0, 0, 0)
    try:
        act()
    finally:
        os.setresuid(NOBODY, NOBODY, 0)


def _cache(folder: Path) -> None:
    """Lay down what Go's module cache is: folders and files without the right to write."""
    inner = folder / "pkg" / "mod" / "example.org@v1"
    inner.mkdir(parents=True)
    (inner / "go.mod").write_text("module example.org\n")
    (inner / "go.mod").chmod(0o444)
    for one in (inner, inner.parent):
        one.chmod(0o555)


def _foreign(folder: Path) -> Path:
    """A folder of root's with a file in it, as a container leaves it."""
    made = folder / "made-by-a-container"

    def make() -> None:
        made.mkdir(mode=0o755)
        (made / "data").write_text("theirs")

    _as_root(make)
    return made


def test_the_modes_that_go_gives_its_cache_do_stop_a_plain_removal(place: Path) -> None:
    tree = place / "tree"
    tree.mkdir()
    _cache(tree)
    shutil.rmtree(tree, ignore_errors=True)
    assert tree.exists()


def test_read_only_and_closed_folders_go(place: Path) -> None:
    tree = place / "tree"
    tree.mkdir()
    _cache(tree)
    (tree / "closed" / "inner").mkdir(parents=True)
    (tree / "closed").chmod(0)
    files.remove_tree(tree)
    assert not tree.exists()


def test_one_that_is_not_there_is_fine(place: Path) -> None:
    files.remove_tree(place / "nothing")


def test_nothing_that_a_link_leads_to_is_touched(place: Path) -> None:
    tree, beside = place / "tree", place / "beside"
    beside.mkdir()
    (beside / "file").write_text("kept")
    (beside / "file").chmod(0o400)
    beside.chmod(0o500)
    tree.mkdir()
    (tree / "folder").symlink_to(beside)
    os.link(beside / "file", tree / "linked")
    _cache(tree)
    files.remove_tree(tree)
    assert not tree.exists()
    assert (beside / "file").read_text() == "kept"
    assert stat.S_IMODE((beside / "file").stat().st_mode) == 0o400
    assert stat.S_IMODE(beside.stat().st_mode) == 0o500
    beside.chmod(0o700)


def test_a_link_in_the_place_of_the_folder_stays_and_is_told(place: Path) -> None:
    (place / "beside").mkdir(mode=0o500)
    (place / "tree").symlink_to(place / "beside")
    with pytest.raises(UnremovableError):
        files.remove_tree(place / "tree")
    assert (place / "beside").is_dir()


def test_a_folder_of_another_user_is_named_with_the_command_that_removes_it(place: Path) -> None:
    tree = place / "a tree"
    tree.mkdir()
    _cache(tree)
    theirs = _foreign(tree)
    with pytest.raises(UnremovableError) as told:
        files.remove_tree(tree)
    assert str(told.value) == (
        f"{tree} could not be removed whole: {theirs} belongs to root. "
        f"Remove the rest with: sudo rm -rf -- '{tree}'"
    )
    assert list(tree.iterdir()) == [theirs]
    assert (theirs / "data").read_text() == "theirs"


class Stand:
    """A worktree of a claimed issue, made as the user of the test."""

    def __init__(self, place: Path, kind: type[GitWorktrees]) -> None:
        self.repo, self.tree = place / "repo.git", place / "tree"
        self.repos = kind(Git(os.environ, place, lambda: 20.0))
        self.repos.create(self.repo, str(place / "origin.git"))
        self.repos.fetch(self.repo)
        self.fork = self.repos.upstream(self.repo, "main")
        self.repos.add_worktree(self.repo, self.tree, "afk/7", self.fork)

    def ignore(self, name: str) -> Path:
        """A folder that the project ignores."""
        (self.tree / ".gitignore").write_text(f"{name}/\n")
        git(self.tree, "add", "-A")
        git(self.tree, *("-c", "user.name=a", "-c", "user.email=a@b"), "commit", "-q", "-m", "x")
        made = self.tree / name
        made.mkdir()
        return made


@pytest.fixture(params=[GitWorktrees, LinkedWorktrees])
def stand(request: pytest.FixtureRequest, place: Path) -> Stand:
    return Stand(place, request.param)


@pytest.mark.parametrize("act", ["remove_worktree", "force_remove", "add_detached"])
def test_a_worktree_with_gos_module_cache_goes(stand: Stand, act: str) -> None:
    _cache(stand.ignore("go"))
    more = (stand.fork,) if act == "add_detached" else ()
    getattr(stand.repos, act)(stand.repo, stand.tree, *more)
    assert (stand.tree / "go").exists() is False
    assert stand.tree.exists() == bool(more)
    assert (stand.tree in stand.repos.registered(stand.repo)) == bool(more)


def test_a_start_that_left_such_a_cache_is_rolled_back(stand: Stand) -> None:
    (stand.tree / "empty" / "inner").mkdir(parents=True)  # git names no folder without files
    (stand.tree / "empty").chmod(0o555)
    assert stand.repos.roll_back(stand.repo, stand.tree, "afk/7", stand.fork)
    assert not stand.tree.exists()


def test_one_that_holds_work_is_refused_and_keeps_its_modes(stand: Stand) -> None:
    cache = stand.ignore("go")
    _cache(cache)
    (stand.tree / "work.txt").write_text("work")
    with pytest.raises(SeamError, match="modified or untracked"):
        stand.repos.remove_worktree(stand.repo, stand.tree)
    assert stat.S_IMODE((cache / "pkg" / "mod").stat().st_mode) == 0o555


def test_what_a_closed_folder_holds_counts_as_work_and_is_rescued(stand: Stand) -> None:
    closed = stand.tree / "closed"
    closed.mkdir()
    (closed / "work.txt").write_text("nobody saw it")
    closed.chmod(0)
    assert stand.repos.is_dirty(stand.tree)
    tip = stand.repos.tip(stand.repo, "refs/heads/afk/7")
    assert tip is not None
    state = stand.repos.snapshot(stand.repo, tip, stand.tree)
    assert state.is_dirty
    assert git(stand.repo, "show", f"{state.files}:closed/work.txt") == "nobody saw it"


def test_a_closed_folder_of_another_user_is_named_before_anything_goes(stand: Stand) -> None:
    closed = _foreign(stand.tree)
    _as_root(lambda: closed.chmod(0o700))
    tip = stand.repos.tip(stand.repo, "refs/heads/afk/7")
    assert tip is not None
    with pytest.raises(UnremovableError) as told:
        stand.repos.snapshot(stand.repo, tip, stand.tree)
    assert str(told.value) == (
        f"{closed} belongs to root and cannot be kept, since it may not be read. "
        f"Remove it with: sudo rm -rf -- {closed}"
    )


def test_a_worktree_with_files_of_another_user_is_told_and_harms_nothing_else(
    stand: Stand,
) -> None:
    theirs = _foreign(stand.ignore("data"))
    with pytest.raises(UnremovableError, match="belongs to root"):
        stand.repos.remove_worktree(stand.repo, stand.tree)
    assert (theirs / "data").read_text() == "theirs"
    assert stand.repos.tip(stand.repo, "refs/heads/afk/7") is not None
    # What is left is no worktree of git any more, and holds nothing that git would remove again.
    assert not stand.repos.standing(stand.repo, stand.tree).is_linked
    _as_root(lambda: shutil.rmtree(theirs))
    stand.repos.force_remove(stand.repo, stand.tree)
    assert not stand.tree.exists()
