"""Files of a project's set-up in worktrees of both kinds: ignored, no work, and in no rescue."""

from __future__ import annotations

import contextlib
import os
import resource

import pytest

from runs.core.kept_ports import RESCUES
from runs.core.ports import SeamError, UnfitFileError
from runs.machine import worktree_links
from tests.linked import LinkedWorktrees, cut
from tests.real import a_checkout, git

pytestmark = [
    pytest.mark.real,
    pytest.mark.quick("contract of what real git makes of placed files"),
]

SECRET = "API_KEY=s3cret-of-the-operator\n"
REF = f"{RESCUES}20261121T120000-ab12-afk-7"


class Stand:
    """A shared repository with one claimed worktree; `claim` makes more."""

    def __init__(self, repos, folder, tracked):
        self.repos, self.folder, self.repo = repos, folder, folder / "repo.git"
        checkout = a_checkout(folder / "checkout", folder / "origin.git")
        for name, text in tracked.items():
            (checkout / name).parent.mkdir(exist_ok=True)
            (checkout / name).write_text(text)
        (checkout / "link").symlink_to(folder)
        git(checkout, "add", "-A")
        git(checkout, "commit", "-q", "-m", "feat: files")
        git(checkout, "push", "-q", "origin", "main")
        repos.create(self.repo, str(folder / "origin.git"))
        repos.fetch(self.repo)
        self.fork = repos.upstream(self.repo, "main")
        self.tree = self.claim("7")

    def claim(self, key):
        tree = self.folder / f"tree-{key}"
        self.repos.add_worktree(self.repo, tree, f"afk/{key}", self.fork)
        return tree

    def place(self, contents, tree=None):
        self.repos.place_files(self.repo, tree or self.tree, contents)

    def rescued(self, tree):
        """The names of all files in a rescue of a worktree, of any commit that it holds."""
        state = self.repos.snapshot(self.repo, self.fork, tree)
        self.repos.keep(self.repo, REF, state, {})
        commits = git(self.repo, "rev-list", REF).split()
        listed = [git(self.repo, "ls-tree", "-r", "--name-only", one) for one in commits]
        return {name for text in listed for name in text.splitlines()}


@pytest.fixture(params=["linked", "own"])
def stand(real, tmp_path, request):
    repos = LinkedWorktrees(real.repos._git) if request.param == "linked" else real.repos
    return Stand(repos, tmp_path, {"tracked.env": "A=1\n", "folder/file.txt": "x\n"})


def _exclude(stand, tree):
    return (worktree_links.own_git(tree) or stand.repo) / "info/exclude"


@contextlib.contextmanager
def _no_file_over(size):
    """Let no file grow larger, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _mode(path):
    return path.stat().st_mode & 0o777


def test_they_are_there_private_and_ignored(stand):
    stand.place({".env": SECRET, "config/local [1].json": "{}"})
    assert (stand.tree / ".env").read_text() == SECRET
    assert _mode(stand.tree / ".env") == _mode(stand.tree / "config/local [1].json") == 0o600
    git(stand.tree, "add", "-A")
    assert git(stand.tree, "status", "--porcelain") == ""
    assert stand.repos.is_dirty(stand.tree) is False
    assert list(stand.repos.changes(stand.tree, stand.fork)) == []
    assert SECRET.strip() not in stand.repos.patch(stand.tree, stand.fork, 100_000)
    assert stand.repos.worktree_tree(stand.tree) == stand.repos.tree_of(stand.repo, stand.fork)


def test_a_worktree_with_nothing_else_is_removed_as_before(stand):
    stand.place({".env": SECRET, "config/deep/x": "y"})
    stand.repos.remove_worktree(stand.repo, stand.tree)
    assert not stand.tree.exists()
    assert stand.repos.add_again(stand.repo, stand.tree, "afk/7") is True
    assert worktree_links.placed_in(stand.repo, stand.tree).names == frozenset()
    # What an agent makes there now is its own work, though it has the same name.
    (stand.tree / ".env").write_text("agent's")
    assert stand.repos.is_dirty(stand.tree) is True
    assert ".env" in stand.rescued(stand.tree)


def test_a_start_that_came_to_nothing_takes_them_along(stand):
    stand.place({".env": SECRET})
    assert stand.repos.roll_back(stand.repo, stand.tree, "afk/7", stand.fork) is True
    assert not stand.tree.exists()


def test_what_an_agent_writes_beside_them_is_kept(stand):
    stand.place({".env": SECRET})
    (stand.tree / ".env.local").write_text("agent's")
    assert stand.repos.is_dirty(stand.tree) is True
    assert stand.repos.roll_back(stand.repo, stand.tree, "afk/7", stand.fork) is False


@pytest.mark.parametrize("how", ["as it is", "no list", "no link", "a rule that takes it out"])
def test_no_rescue_has_them_whatever_an_agent_did(stand, how):
    stand.place({".env": SECRET})
    (stand.tree / "work.txt").write_text("work")
    if how == "no list":
        own = worktree_links.own_git(stand.tree)
        ((own or stand.repo) / "info/exclude").write_text("")
    elif how == "no link":
        cut(stand.tree)
    elif how == "a rule that takes it out":
        (stand.tree / ".gitignore").write_text("!.env\n")
    found = stand.rescued(stand.tree)
    assert "work.txt" in found
    assert ".env" not in found
    for name in git(stand.repo, "cat-file", "--batch-all-objects", "--batch-check").splitlines():
        ident, kind, _ = name.split()
        if kind == "blob":
            assert "s3cret" not in git(stand.repo, "cat-file", "blob", ident)


def test_one_that_an_agent_committed_is_its_work(stand):
    stand.place({".env": "A=1\n"})
    git(stand.tree, "add", "-f", ".env")
    git(stand.tree, "commit", "-q", "-m", "feat: env")
    (stand.tree / ".env").write_text("A=2\n")
    assert stand.repos.is_dirty(stand.tree) is True
    assert ".env" in stand.rescued(stand.tree)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("tracked.env", "tracked.env is tracked by git; not overwritten"),
        ("folder", "folder cannot be written: folder is a folder; nothing was written"),
        ("tracked.env/x", "tracked.env is a file"),
        ("link/x", "link is a link, which may lead elsewhere"),
    ],
)
def test_what_is_in_the_way_is_said_and_nothing_is_written(stand, name, why):
    with pytest.raises(UnfitFileError, match=why):
        stand.place({"a.env": SECRET, name: "x"})
    assert not (stand.tree / "a.env").exists()
    assert (stand.tree / "tracked.env").read_text() == "A=1\n"
    assert stand.repos.roll_back(stand.repo, stand.tree, "afk/7", stand.fork) is True


def test_one_that_the_repository_takes_out_of_the_list_is_not_written(real, tmp_path):
    stand = Stand(real.repos, tmp_path, {".gitignore": "*.env\n!.env\n"})
    with pytest.raises(UnfitFileError, match=r"\.env is not ignored by git"):
        stand.place({".env": SECRET, "x.env": "y"})
    assert not (stand.tree / ".env").exists()
    assert not (stand.tree / "x.env").exists()


def test_one_that_is_there_stays_unless_its_writing_was_cut_short(stand):
    stand.place({".env": SECRET})
    (stand.tree / ".env").write_text("changed by the agent\n")
    stand.place({".env": SECRET, "b": "b"})
    assert (stand.tree / ".env").read_text() == "changed by the agent\n"
    assert (stand.tree / "b").read_text() == "b"
    note = worktree_links.placed_in(stand.repo, stand.tree)
    worktree_links.write_placed(
        stand.repo, worktree_links.Placed(note.path, note.names, is_done=False)
    )
    stand.place({".env": SECRET, "b": "b"})
    assert (stand.tree / ".env").read_text() == SECRET


def test_where_an_agent_has_worked_what_git_tracks_is_left_alone(stand):
    stand.place({".env": SECRET})
    (stand.tree / "made.env").write_text("agent's")
    git(stand.tree, "add", "-f", "made.env")
    git(stand.tree, "commit", "-q", "-m", "feat: env")
    (stand.tree / "made.env").unlink()
    ours = {".env": "2", "made.env": "2", "tracked.env": "2", "folder": "2", "b.env": "2"}
    with pytest.raises(UnfitFileError, match="nothing was written"):
        stand.place(ours)
    stand.repos.place_files(stand.repo, stand.tree, ours, is_again=True)
    assert (stand.tree / "b.env").read_text() == "2"
    assert (stand.tree / ".env").read_text() == SECRET
    assert (stand.tree / "tracked.env").read_text() == "A=1\n"
    assert not (stand.tree / "made.env").exists()
    with pytest.raises(UnfitFileError, match="link is a link"):
        stand.repos.place_files(stand.repo, stand.tree, {"link/x": "2"}, is_again=True)


def test_one_that_was_not_written_is_the_agents_own_once_it_makes_it(stand):
    (stand.tree / ".gitignore").write_text("!x.env\n")
    with pytest.raises(UnfitFileError, match=r"x\.env is not ignored by git"):
        stand.place({"x.env": SECRET, "y.env": SECRET})
    (stand.tree / ".gitignore").unlink()
    assert stand.repos.is_dirty(stand.tree) is False
    (stand.tree / "y.env").write_text("agent's")
    assert stand.repos.is_dirty(stand.tree) is True
    assert "y.env" in stand.rescued(stand.tree)


def test_a_full_disk_leaves_those_of_runs_beside_it_ignored_and_itself_without_any(stand):
    stand.place({".env": SECRET})
    other = stand.claim("8")
    exclude = _exclude(stand, other)
    exclude.parent.mkdir(exist_ok=True)
    before = exclude.read_text() if exclude.exists() else ""
    exclude.write_text("# a long list\n" * 1000 + before)
    before = exclude.read_text()
    with _no_file_over(8000), pytest.raises(SeamError, match="cannot be written"):
        stand.place({"other.env": SECRET}, other)
    assert exclude.read_text() == before
    assert not [one for one in exclude.parent.iterdir() if one.name.startswith(".")]
    git(stand.tree, "add", "-A")
    assert git(stand.tree, "status", "--porcelain") == ""
    (other / "other.env").write_text("agent's")
    assert stand.repos.is_dirty(other) is True
    assert "other.env" in stand.rescued(other)


def test_a_list_that_stays_as_it_is_is_not_written_again(real, tmp_path):
    stand = Stand(real.repos, tmp_path, {"tracked.env": "A=1\n"})
    stand.place({".env": SECRET})
    other, exclude = stand.claim("8"), _exclude(stand, stand.tree)
    os.utime(exclude, (1, 1))
    stand.place({".env": SECRET}, other)
    assert (other / ".env").read_text() == SECRET
    assert exclude.stat().st_mtime == 1


def test_runs_beside_each_other_ignore_their_own(stand):
    other = stand.claim("8")
    stand.place({".env": SECRET})
    stand.place({"other.env": SECRET}, other)
    for tree in (stand.tree, other):
        git(tree, "add", "-A")
        assert git(tree, "status", "--porcelain") == ""
    stand.repos.remove_worktree(stand.repo, stand.tree)
    third = stand.claim("9")
    stand.place({}, third)
    # Nobody brings .env along any more, so an agent may commit one.
    (third / ".env").write_text("agent's")
    git(third, "add", "-A")
    assert git(third, "status", "--porcelain") == "A  .env"


def test_a_clean_worktree_of_a_check_has_them_too(stand):
    room = stand.folder / "room"
    stand.repos.add_detached(stand.repo, room, stand.fork)
    stand.place({".env": SECRET}, room)
    assert stand.repos.is_dirty(room) is False
    stand.repos.add_detached(stand.repo, room, stand.fork)
    assert not (room / ".env").exists()
    stand.repos.force_remove(stand.repo, room)
    assert not room.exists()


def test_files_that_a_checkout_includes_are_those_that_git_ignores(real, tmp_path):
    checkout = a_checkout(tmp_path / "checkout", tmp_path / "origin.git")
    assert real.repos.included(checkout, 100) == {}
    (checkout / ".gitignore").write_text("*.env\nbuild/\n")
    (checkout / ".worktreeinclude").write_text("*.env\nnotes.txt\nconfig/*\n!no.env\n")
    (checkout / "config").mkdir()
    for name in ("a.env", "config/b.env", "no.env", "notes.txt", "tracked.env"):
        (checkout / name).write_text(name)
    (checkout / "large.env").write_text("x" * 101)
    (checkout / "link.env").symlink_to("/etc/passwd")
    git(checkout, "add", "-f", "tracked.env")
    assert real.repos.included(checkout, 100) == {
        "a.env": "a.env",
        "config/b.env": "config/b.env",
        "large.env": None,
        "link.env": None,
    }
