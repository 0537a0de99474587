"""A state folder with every kind of work in it, saved and restored elsewhere, on real git."""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import sqlite3
import subprocess
from pathlib import Path

import pytest

from labsite.backup import load, places, save, worktree
from labsite.backup.form import Unfit
from labsite.doctor import places as checked
from labsite.doctor.lines import Status
from runs.core.paths import Paths
from runs.machine.git import Git
from runs.machine.worktrees import GitWorktrees
from tests.repositories import git

pytestmark = pytest.mark.real


class House:
    """A state folder made by hand: one project, one worktree with work in every state."""

    def __init__(self, folder: Path) -> None:
        self.paths = Paths(folder / "old")
        for part in (self.paths.state, self.paths.repos, self.paths.origins, self.paths.worktrees):
            part.mkdir(mode=0o700)
        self.repo, self.origin = self.paths.repos / "demo.git", self.paths.origins / "demo.git"
        self.tree = self.paths.worktrees / "demo-7"
        self._database()
        (self.paths.state / "secret.key").write_text("k" * 60)
        (self.paths.state / "secret.key").chmod(0o600)
        self._runs()
        git(folder, "init", "-q", "--bare", "-b", "main", str(self.origin))
        git(folder, "init", "-q", "--bare", "-b", "none", str(self.repo))
        git(self.repo, "config", "remote.origin.url", str(self.origin))
        self._first_commit(folder)
        git(self.repo, "fetch", "-q", str(self.origin), "+refs/heads/*:refs/remotes/origin/*")
        git(
            self.repo,
            "worktree",
            "add",
            "-q",
            "-b",
            "afk/7",
            str(self.tree),
            "refs/remotes/origin/main",
        )

    def _database(self) -> None:
        holder = sqlite3.connect(self.paths.database)
        holder.executescript(
            "create table django_migrations (app, name);"
            "insert into django_migrations values ('runs', '0052_start_waits');"
            "create table runs_run (worktree); create table runs_project (url, source);"
            "pragma journal_mode=wal;"
        )
        holder.execute("insert into runs_run values (?)", (str(self.tree),))
        holder.execute("insert into runs_run values (?)", (f"{self.paths.state}-other/x",))
        holder.execute("insert into runs_project values (?, ?)", (str(self.origin), "/elsewhere"))
        holder.commit()
        holder.close()

    def _runs(self) -> None:
        folder = self.paths.run_folder(1)
        folder.mkdir(parents=True)
        (folder / "exit").write_text('{"status": 0, "at": 1}')
        (folder / "token").write_text("a-secret-token")

    def _first_commit(self, folder: Path) -> None:
        work = folder / "work"
        git(folder, "clone", "-q", str(self.origin), str(work))
        git(work, "checkout", "-q", "-b", "main")
        for name in ("kept", "changed", "deleted", "staged", "renamed", "becomes-folder"):
            (work / name).write_text(f"{name} as committed\n")
        (work / "program").write_text("#!/bin/sh\n")
        (work / "program").chmod(0o755)
        (work / "link").symlink_to("kept")
        (work / ".gitignore").write_text("ignored\n")
        git(work, "add", "-A")
        git(work, "commit", "-q", "-m", "one")
        git(work, "push", "-q", "origin", "main")

    def dirty(self) -> None:
        """Work in every state that git knows."""
        tree = self.tree
        (tree / "stashed").write_text("older stash\n")
        git(tree, "stash", "push", "-q", "-u", "-m", "older")
        (tree / "stashed").write_text("newer stash\n")
        git(tree, "stash", "push", "-q", "-u", "-m", "newer")
        (tree / "mine").write_text("committed by the agent\n")
        git(tree, "add", "mine")
        git(tree, "commit", "-q", "-m", "two")
        (tree / "changed").write_text("changed\r\nnot committed\n")
        (tree / "deleted").unlink()
        (tree / "staged").write_text("staged\n")
        git(tree, "add", "staged")
        (tree / "staged").write_text("staged, then changed\n")
        git(tree, "mv", "renamed", "other-name")
        (tree / "becomes-folder").unlink()
        (tree / "becomes-folder").mkdir()
        (tree / "becomes-folder" / "inner").write_text("inner\n")
        (tree / "link").unlink()
        (tree / "link").symlink_to("/nowhere/at all")
        (tree / "new file ünïcode\n.txt").write_text("untracked\n")
        (tree / "new program").write_text("#!/bin/sh\n")
        (tree / "new program").chmod(0o755)
        (tree / "about.json").write_text("a file of the project that is called like our lists\n")
        (tree / "ignored").write_text("build output\n")
        inner = tree / "inner-repo"
        inner.mkdir()
        git(inner, "init", "-q", "-b", "main")
        (inner / "f").write_text("inner repository\n")
        git(inner, "add", "f")
        git(inner, "commit", "-q", "-m", "inner")

    def other_refs(self) -> str:
        """Refs of every kind; the answer is a commit that only a detached worktree holds."""
        head = git(self.repo, "rev-parse", "refs/remotes/origin/main")
        blob = git(self.repo, "hash-object", "-w", str(self.paths.secret_key))
        git(self.repo, "update-ref", "refs/rescue/7/parked", head)
        git(self.repo, "update-ref", "refs/odd/blob", blob)
        git(self.repo, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
        git(self.repo, "tag", "-a", "v1", "-m", "tagged", head)
        loose = self.paths.worktrees / "demo-8"
        git(self.repo, "worktree", "add", "-q", "--detach", str(loose), head)
        (loose / "only-here").write_text("on no branch\n")
        git(loose, "add", "-A")
        git(loose, "commit", "-q", "-m", "detached")
        return git(loose, "rev-parse", "HEAD")

    def conflict(self) -> None:
        """A merge half done in a worktree of its own."""
        main = "refs/remotes/origin/main"
        tree = self.paths.worktrees / "demo-9"
        git(self.repo, "worktree", "add", "-q", "-b", "afk/9", str(tree), main)
        git(tree, "branch", "-q", "side", main)
        (tree / "kept").write_text("ours\n")
        git(tree, "commit", "-q", "-am", "ours")
        git(tree, "checkout", "-q", "side")
        (tree / "kept").write_text("theirs\n")
        git(tree, "commit", "-q", "-am", "theirs")
        git(tree, "checkout", "-q", "afk/9")
        subprocess.run(["git", "-C", tree, "merge", "-q", "side"], capture_output=True, check=False)
        assert "kept" in git(tree, "diff", "--name-only", "--diff-filter=U")


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    for name in [name for name in os.environ if name.startswith("LAB_")]:
        monkeypatch.delenv(name)
    return House(tmp_path)


def _round(house: House, tmp_path: Path) -> Paths:
    """Save, move the old folder away, restore elsewhere."""
    save.backup(house.paths, tmp_path / "a.backup", force=False)
    house.paths.state.rename(tmp_path / "moved-away")
    new = Paths(tmp_path / "deeper" / "new")
    new.state.parent.mkdir()
    load.restore(new, tmp_path / "a.backup")
    (tmp_path / "moved-away").rename(house.paths.state)
    return new


def _refs(repo: Path) -> str:
    return git(repo, "for-each-ref", "--format=%(objectname) %(refname) %(symref)")


def _state(tree: Path) -> tuple[str, ...]:
    """What git and the disk say of a worktree."""
    files = {
        str(path.relative_to(tree)): (
            str(path.readlink()) if path.is_symlink() else path.read_bytes(),
            0 if path.is_symlink() else path.stat().st_mode & 0o777,
        )
        for path in sorted(tree.rglob("*"))
        if (path.is_symlink() or path.is_file())
        and path.name not in ("ignored", ".git")
        and "/.git/" not in str(path)
    }
    return (
        git(tree, "status", "--porcelain=v2", "-z", "--untracked-files=all"),
        git(tree, "ls-files", "--stage", "-z"),
        git(tree, "rev-parse", "HEAD"),
        git(tree, "stash", "list", "--format=%H %gd %s"),
        repr(files),
    )


def test_work_in_every_state_comes_back_as_it_was(house: House, tmp_path: Path) -> None:
    house.dirty()
    detached = house.other_refs()
    house.conflict()
    before = {tree.name: _state(tree) for tree in house.paths.worktrees.iterdir()}
    refs = (_refs(house.repo), _refs(house.origin))
    new = _round(house, tmp_path)
    assert {tree.name: _state(tree) for tree in new.worktrees.iterdir()} == before
    assert (_refs(new.repos / "demo.git"), _refs(new.origins / "demo.git")) == refs
    assert git(new.worktrees / "demo-8", "rev-parse", "HEAD") == detached
    assert "kept" in git(new.worktrees / "demo-9", "diff", "--name-only", "--diff-filter=U")
    assert git(new.worktrees / "demo-7" / "inner-repo", "log", "--format=%s") == "inner"
    for repo in (new.repos / "demo.git", new.origins / "demo.git"):
        assert "missing" not in git(repo, "fsck", "--connectivity-only")
    assert not (new.worktrees / "demo-7" / "ignored").exists()
    trees = git(new.repos / "demo.git", "worktree", "list", "--porcelain")
    assert "prunable" not in trees
    assert str(house.paths.state) not in trees
    git(new.worktrees / "demo-9", "merge", "--abort")


def test_everything_names_the_new_folder_and_nothing_else_is_changed(
    house: House, tmp_path: Path
) -> None:
    new = _round(house, tmp_path)
    holder = sqlite3.connect(new.database)
    assert holder.execute("select worktree from runs_run").fetchall() == [
        (str(new.worktrees / "demo-7"),),
        (f"{house.paths.state}-other/x",),
    ]
    assert holder.execute("select * from runs_project").fetchall() == [
        (str(new.origins / "demo.git"), "/elsewhere")
    ]
    holder.close()
    assert git(new.repos / "demo.git", "config", "remote.origin.url") == str(
        new.origins / "demo.git"
    )
    git(new.worktrees / "demo-7", "push", "-q", "origin", "HEAD:refs/heads/afk/7")
    assert new.secret_key.read_text() == "k" * 60
    assert new.state.stat().st_mode & 0o777 == 0o700
    assert new.secret_key.stat().st_mode & 0o777 == 0o600
    assert (new.run_folder(1) / "exit").exists()
    assert not (new.run_folder(1) / "token").exists()
    assert not any(path.name.startswith(".new") for path in new.state.parent.iterdir())


def test_the_file_is_private_and_is_not_overwritten_unasked(house: House, tmp_path: Path) -> None:
    file = tmp_path / "a.backup"
    said = save.backup(house.paths, file, force=False)
    assert file.stat().st_mode & 0o777 == 0o600
    assert any("gitignore" in line for line in said)
    content = file.read_bytes()
    with pytest.raises(Unfit, match="is there already"):
        save.backup(house.paths, file, force=False)
    assert file.read_bytes() == content
    (house.paths.state / "more").write_text("more")
    save.backup(house.paths, file, force=True)
    assert file.read_bytes() != content
    assert not [path for path in tmp_path.iterdir() if "saving" in path.name]
    assert b"a-secret-token" not in gzip.decompress(file.read_bytes())


@pytest.mark.parametrize(
    ("target", "said"),
    [
        pytest.param("old/inside", "in the state folder", id="inside the state folder"),
        pytest.param("missing/a", "There is no folder", id="no such folder"),
        pytest.param(".", "is a folder", id="a folder"),
    ],
)
def test_places_that_a_backup_cannot_have(
    house: House, tmp_path: Path, target: str, said: str
) -> None:
    with pytest.raises(Unfit, match=said):
        save.backup(house.paths, tmp_path / target, force=False)


def _damage(repo: Path, commit: str) -> None:
    for pack in (repo / "objects" / "pack").glob("*"):
        pack.unlink()
    for loose in (repo / "objects").glob("??/*"):
        if loose.parent.name + loose.name == commit:
            loose.unlink()


def test_a_backup_of_a_damaged_repository_is_not_called_good(
    house: House,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    house.dirty()
    good = tmp_path / "a"
    save.backup(house.paths, good, force=False)
    before = good.read_bytes()
    _damage(house.repo, git(house.repo, "rev-parse", "refs/remotes/origin/main"))
    monkeypatch.setenv("LAB_STATE_DIR", str(house.paths.state))
    assert save.main([str(good), "--force"]) == 1
    said = capsys.readouterr().err
    assert "The backup is not whole" in said
    assert "repos/demo.git" in said
    assert good.read_bytes() == before
    house.paths.state.rename(tmp_path / "away")
    new = Paths(tmp_path / "new")
    load.restore(new, tmp_path / "a.not-whole")
    assert (new.worktrees / "demo-7" / "changed").read_bytes() == b"changed\r\nnot committed\n"
    assert (new.worktrees / "demo-7" / "kept").exists()
    assert str(new.repos) in (new.worktrees / "demo-7" / ".git").read_text()


def test_a_worktree_that_is_a_repository_of_its_own_is_saved_as_one(
    house: House, tmp_path: Path
) -> None:
    house.dirty()
    tip = git(house.repo, "rev-parse", "refs/heads/afk/7")
    (house.tree / ".git").unlink()
    git(house.tree, "init", "-q", "-b", "afk/7")
    git(house.tree, "add", "kept")
    git(house.tree, "commit", "-q", "-m", "of its own")
    git(house.tree, "add", "changed")
    said = save.backup(house.paths, tmp_path / "said", force=False)
    assert any("demo-7 is no worktree of git" in line for line in said)
    assert not any("as it lies there" in line for line in said)
    new = _round(house, tmp_path)
    tree, repo = new.worktrees / "demo-7", new.repos / "demo.git"
    assert git(repo, "rev-parse", "refs/heads/afk/7") == tip
    assert git(tree, "log", "--format=%s") == "of its own"
    assert git(tree, "status", "--porcelain") == git(house.tree, "status", "--porcelain")
    assert git(tree, "rev-parse", "HEAD") == git(house.tree, "rev-parse", "HEAD")
    for one in (repo, tree, tree / "inner-repo"):
        git(one, "fsck", "--connectivity-only")


def test_the_doctor_names_a_worktree_that_git_no_longer_sees(house: House) -> None:
    runs = {"worktrees": [str(house.tree)]}
    assert [line.status for line in checked.worktrees(house.paths, runs)] == [Status.OK]
    (house.tree / ".git").unlink()
    assert [line.status for line in checked.worktrees(house.paths, runs)] == [
        Status.OK,
        Status.WARNING,
    ]
    git(house.tree, "init", "-q", "-b", "afk/7")
    assert "demo-7" in [*checked.worktrees(house.paths, runs)][1].seen


def test_notes_of_a_worktree_that_are_no_text_stop_neither_the_doctor_nor_a_backup(
    house: House,
) -> None:
    known = worktree.places(house.repo, house.paths.worktrees)
    bytes_, pipe = (house.repo / "worktrees" / name for name in ("bytes", "pipe"))
    bytes_.mkdir(), pipe.mkdir()
    (bytes_ / "gitdir").write_bytes(b"/tmp/\xff/.git\n")
    os.mkfifo(pipe / "gitdir")
    assert worktree.places(house.repo, house.paths.worktrees) == known
    assert len(known) == 1
    runs = {"worktrees": [str(house.tree)]}
    assert [line.status for line in checked.worktrees(house.paths, runs)] == [Status.OK]


def test_somebody_who_commits_all_the_time_in_a_repository_inside_breaks_no_backup(
    house: House, tmp_path: Path
) -> None:
    (house.tree / ".git").unlink()
    git(house.tree, "init", "-q", "-b", "afk/7")
    busy = subprocess.Popen(
        ["sh", "-c", "while :; do date +%N > f; git add f; git commit -qm more; git gc -q; done"],
        cwd=house.tree,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        for number in range(3):
            save.backup(house.paths, tmp_path / str(number), force=False)
    finally:
        os.killpg(busy.pid, signal.SIGKILL)
        busy.wait()
    house.paths.state.rename(tmp_path / "away")
    for number in range(3):
        new = Paths(tmp_path / f"new-{number}")
        load.restore(new, tmp_path / str(number))
        git(new.worktrees / "demo-7", "fsck", "--connectivity-only")


def test_a_repository_that_git_could_not_read_in_one_moment_is_not_copied_file_by_file(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while somebody repacks it: what is copied then is half of before."""
    real, tools = shutil.which("git"), tmp_path / "tools"
    tools.mkdir()
    once = tmp_path / "once"
    once.touch()
    script = f"""#!/bin/sh
case "$*" in *for-each-ref*) if rm {once} 2>/dev/null; then exit 128; fi;; esac
exec {real} "$@"
"""
    (tools / "git").write_text(script)
    (tools / "git").chmod(0o700)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    save.backup(house.paths, tmp_path / "saved", force=False)
    assert not once.exists()


def test_a_broken_repository_inside_is_named_and_the_rest_is_saved(
    house: House, tmp_path: Path
) -> None:
    house.dirty()
    inner = house.tree / "inner-repo"
    _damage(inner / ".git", git(inner, "rev-parse", "HEAD"))
    with pytest.raises(save.NotWhole, match=r"worktrees/demo-7/inner-repo/\.git"):
        save.backup(house.paths, tmp_path / "a", force=False)
    house.paths.state.rename(tmp_path / "away")
    new = Paths(tmp_path / "new")
    load.restore(new, tmp_path / "a.not-whole")
    assert (new.worktrees / "demo-7" / "inner-repo" / "f").read_text() == "inner repository\n"
    git(new.repos / "demo.git", "fsck", "--connectivity-only")


def test_what_only_the_notes_of_a_lost_worktree_name_is_saved(house: House, tmp_path: Path) -> None:
    git(house.tree, "checkout", "-q", "--detach")
    (house.tree / "only-here").write_text("on no branch")
    git(house.tree, "add", "-A")
    git(house.tree, "commit", "-q", "-m", "detached")
    commit = git(house.tree, "rev-parse", "HEAD")
    (house.tree / ".git").unlink()
    new = _round(house, tmp_path)
    assert git(new.repos / "demo.git", "show", f"{commit}:only-here") == "on no branch"


def test_a_folder_that_is_no_worktree_comes_along(house: House, tmp_path: Path) -> None:
    stray = house.paths.worktrees / "stray"
    (stray / "empty").mkdir(parents=True)
    (stray / "f").write_text("f")
    (stray / "l").symlink_to("f")
    new = _round(house, tmp_path)
    assert (new.worktrees / "stray" / "f").read_text() == "f"
    assert (new.worktrees / "stray" / "l").readlink() == Path("f")
    assert (new.worktrees / "stray" / "empty").is_dir()


def test_no_filter_that_an_agent_named_runs_at_a_backup_or_a_restore(
    house: House, tmp_path: Path
) -> None:
    house.dirty()
    proof = tmp_path / "proof"
    for verb in ("clean", "smudge"):
        git(house.repo, "config", f"filter.evil.{verb}", f"touch {proof}; cat")
    (house.repo / "info").mkdir(exist_ok=True)
    (house.repo / "info" / "attributes").write_text("* filter=evil\n")
    new = _round(house, tmp_path)
    assert (new.worktrees / "demo-7" / "kept").exists()
    assert not proof.exists()


def test_what_lies_behind_a_link_is_told_to_be_missing(house: House, tmp_path: Path) -> None:
    """Whoever moved a big repository to another disk must not find out at the restore."""
    other = tmp_path / "other-disk"
    other.mkdir()
    house.repo.rename(other / "repo")
    house.repo.symlink_to(other / "repo")
    (other / "more").mkdir()
    (house.paths.state / "more").symlink_to(other / "more")
    said = save.backup(house.paths, tmp_path / "a", force=False)
    for name in (f"repos/{house.repo.name}", "more"):
        assert [line for line in said if f"{name} is a link" in line and "not in it" in line]


def test_an_unknown_file_is_saved_and_what_is_made_again_is_not(
    house: House, tmp_path: Path
) -> None:
    (house.paths.state / "later").mkdir()
    (house.paths.state / "later" / "thing").write_text("of a later version")
    (house.paths.state / "later" / "about.json").write_text("not a list of ours")
    (house.paths.state / "state.json").write_text("nor is this")
    (house.paths.state / "queue.sqlite3").write_text("queue")
    new = _round(house, tmp_path)
    assert (new.state / "later" / "thing").exists()
    assert (new.state / "later" / "about.json").read_text() == "not a list of ours"
    assert (new.state / "state.json").read_text() == "nor is this"
    assert not new.queue.exists()


def test_every_path_of_a_state_folder_is_either_saved_or_made_again() -> None:
    paths = Paths(Path("/s"))
    names = {
        getattr(paths, name).relative_to("/s").parts[0]
        for name, value in vars(Paths).items()
        if isinstance(value, property) and name not in ("socket_folder", "shared_place")
    }
    saved = {"secret.key", "demo", "runs", "validations", "gates"}
    assert {name for name in names if not places.is_left_out(name)} == saved
    assert names - saved <= places.ELSEWHERE | places.MADE_AGAIN


def test_a_run_s_own_repository_comes_back_and_borrows_its_objects_anew(
    house: House, tmp_path: Path
) -> None:
    repos = GitWorktrees(Git(os.environ, Path(os.devnull), lambda: 60.0))
    tree, main = house.paths.worktrees / "demo-5", git(house.repo, "rev-parse", "origin/main")
    repos.add_worktree(house.repo, tree, "afk/5", main)
    (tree / "new.txt").write_text("committed")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "feat: new")
    (tree / "new.txt").write_text("stashed")
    git(tree, "stash", "-q")
    (tree / "staged.txt").write_text("staged")
    git(tree, "add", "-A")
    before = git(tree, "status", "--porcelain"), git(tree, "rev-parse", "HEAD", "refs/stash")
    new = _round(house, tmp_path)
    tree, repo = new.worktrees / "demo-5", new.repos / "demo.git"
    assert (
        git(tree, "status", "--porcelain"),
        git(tree, "rev-parse", "HEAD", "refs/stash"),
    ) == before
    assert "+stashed" in git(tree, "stash", "show", "-p")
    assert repos.standing(repo, tree).branch == "afk/5"
    git(tree, "commit", "-q", "-m", "feat: staged")
    assert repos.tip(repo, "refs/heads/afk/5") == git(tree, "rev-parse", "HEAD")
    git(repo, "fsck", "--connectivity-only")
