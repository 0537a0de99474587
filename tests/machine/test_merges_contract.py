"""Merges without a worktree: the fake and real git answer alike; hostile settings on real git."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest

from runs.core.ports import Moved, Rejected, SeamError
from runs.pulls.rules import MergeCommit, Way
from tests.fake_history import AT
from tests.fakes import FakeRepos
from tests.pulls.test_comparing_contract import RealHistory
from tests.real import git

pytestmark = [pytest.mark.real, pytest.mark.quick("contract of the fake and the real git")]

PRIDE = {"app.py": "one\ntwo\nthree\n", "old.txt": "gone\n"}


class RealHouse(RealHistory):
    """Real git with an origin beside it."""

    def __init__(self, repos, folder: Path) -> None:
        super().__init__(repos, folder)
        self.origin = folder.with_name("origin.git")
        self.origin.mkdir()
        git(self.origin, "init", "-q", "--bare", "-b", "main")

    def begin(self, branch: str, commit: str) -> None:
        git(self.folder, "push", "-q", "-f", str(self.origin), f"{commit}:refs/heads/{branch}")
        self.name(f"refs/remotes/origin/{branch}", commit)

    def at_origin(self, branch: str) -> str:
        return git(self.origin, "rev-parse", f"refs/heads/{branch}")

    def push(self, commit: str, seen: str) -> None:
        self.repos.push_commit(self.repo, "main", commit, seen, "", str(self.origin))

    def delete(self, branch: str, seen: str) -> None:
        self.repos.delete_pushed(self.repo, branch, seen, "", str(self.origin))


class FakeHouse:
    def __init__(self) -> None:
        self.repos, self.repo = FakeRepos(), Path("/repo.git")
        self.commit = self.repos.commit

    def begin(self, branch: str, commit: str) -> None:
        self.repos.refs[f"refs/remotes/origin/{branch}"] = commit

    def at_origin(self, branch: str) -> str:
        return self.repos.refs[f"refs/remotes/origin/{branch}"]

    def push(self, commit: str, seen: str) -> None:
        self.repos.push_commit(self.repo, "main", commit, seen, "", "/origin.git")

    def delete(self, branch: str, seen: str) -> None:
        self.repos.delete_pushed(self.repo, branch, seen, "", "/origin.git")


@pytest.fixture(params=["fake", pytest.param("real", id="git")])
def house(request, tmp_path):
    if request.param == "fake":
        return FakeHouse()
    return RealHouse(request.getfixturevalue("real").repos, tmp_path / "checkout")


@pytest.fixture
def own(real, tmp_path) -> RealHouse:
    return RealHouse(real.repos, tmp_path / "checkout")


def test_the_five_ways_in_which_two_commits_come_together(house) -> None:
    root = house.commit(PRIDE)
    ahead = house.commit({**PRIDE, "new.txt": "n\n"}, root, subject="feat: new")
    other = house.commit({**PRIDE, "app.py": "ONE\ntwo\nthree\n"}, root, subject="feat: ONE")
    clash = house.commit({**PRIDE, "app.py": "uno\ntwo\nthree\n"}, root, subject="feat: uno")
    alone = house.commit({"x.txt": "x\n"}, subject="chore: alone")
    join = house.repos.join

    assert join(house.repo, root, ahead).way is Way.FORWARD
    assert join(house.repo, ahead, root).way is Way.HELD
    assert join(house.repo, ahead, ahead).way is Way.HELD
    clean = join(house.repo, ahead, other)
    assert (clean.way, bool(clean.tree), clean.files) == (Way.CLEAN, True, ())
    conflict = join(house.repo, clash, other)
    assert (conflict.way, conflict.files) == (Way.CONFLICT, ("app.py",))
    assert join(house.repo, alone, root).way is Way.STRANGERS


def test_commits_that_are_not_there_are_no_answer(house) -> None:
    root = house.commit(PRIDE)
    for pair in ((root, "0" * 39 + "1"), ("0" * 39 + "1", root)):
        with pytest.raises(SeamError):
            house.repos.join(house.repo, *pair)


def test_a_merge_commit_holds_both_sides_and_origin_takes_it_once(house) -> None:
    root = house.commit(PRIDE)
    base = house.commit({**PRIDE, "new.txt": "n\n"}, root, subject="feat: new")
    head = house.commit({**PRIDE, "app.py": "ONE\ntwo\nthree\n"}, root, subject="feat: ONE")
    house.begin("main", base)
    tree = house.repos.join(house.repo, base, head).tree
    made = house.repos.make_merge(
        house.repo, MergeCommit(tree, (base, head), "Merge it", "anna", AT)
    )

    house.push(made, base)
    assert house.at_origin("main") == made
    assert house.repos.tip(house.repo, "refs/remotes/origin/main") == made
    assert house.repos.join(house.repo, made, head).way is Way.HELD
    found = house.repos.commits(house.repo, base, made, 5)
    assert found[0].id == made
    assert found[0].parents == (base, head)

    with pytest.raises(Moved):
        house.push(head, base)
    assert house.at_origin("main") == made


def test_a_branch_is_deleted_on_origin_only_where_it_was_seen(house) -> None:
    root = house.commit(PRIDE)
    other = house.commit({**PRIDE, "new.txt": "n\n"}, root)
    house.begin("afk/7", other)
    with pytest.raises(Moved):
        house.delete("afk/7", root)
    assert house.at_origin("afk/7") == other
    house.delete("afk/7", other)
    assert house.repos.tip(house.repo, "refs/remotes/origin/afk/7") is None


def test_the_merge_is_signed_by_who_asked_and_by_the_product(own: RealHouse) -> None:
    root = own.commit(PRIDE)
    tree = git(own.folder, "rev-parse", f"{root}^{{tree}}")
    for author, shown in (("anna", "anna"), ("...", "labsite"), ("-", "labsite")):
        made = own.repos.make_merge(own.repo, MergeCommit(tree, (root, root), "m", author, AT))
        who = git(own.folder, "show", "-s", "--format=%an|%cn|%ct", made)
        assert who == f"{shown}|labsite|{int(AT.timestamp())}"


def test_a_branch_that_origin_protects_says_why_and_stays(own: RealHouse) -> None:
    root = own.commit(PRIDE)
    own.begin("main", root)
    hook = own.origin / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho 'main is protected: ask bert' >&2\nexit 1\n")
    hook.chmod(0o755)
    ahead = own.commit({"a": "b"}, root)
    with pytest.raises(Rejected, match="main is protected: ask bert"):
        own.push(ahead, root)
    assert own.at_origin("main") == root


def test_an_origin_that_is_away_is_no_answer(own: RealHouse) -> None:
    root = own.commit(PRIDE)
    own.begin("main", root)
    own.origin.rename(own.origin.with_name("away"))
    with pytest.raises(SeamError) as error:
        own.push(own.commit({"a": "b"}, root), root)
    assert not isinstance(error.value, Moved | Rejected)


@pytest.mark.row("X-14", level="real")
def test_what_an_agent_wrote_into_the_repository_runs_no_program(
    own: RealHouse, tmp_path: Path
) -> None:
    proof = tmp_path / "ran"
    root = own.commit({**PRIDE, ".gitattributes": "* merge=evil\n"})
    base = own.commit({"app.py": "1\ntwo\nthree\n"}, root)
    head = own.commit({"app.py": "one\ntwo\n3\n"}, root)
    own.begin("main", base)
    hook = own.repo / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {proof}\n")
    hook.chmod(0o755)
    for name, value in (
        ("merge.evil.driver", f"touch {proof} #"),
        ("merge.default", "evil"),
        (f"url.{tmp_path}/elsewhere.git.insteadOf", str(own.origin)),
        ("gpg.program", f"touch {proof} #"),
        ("commit.gpgsign", "true"),
    ):
        git(own.folder, "config", name, value)
    (own.repo / "info").mkdir(exist_ok=True)
    (own.repo / "info" / "attributes").write_text("* merge=evil\n")

    own.repos.join(own.repo, base, head)
    tree = git(own.folder, "rev-parse", f"{head}^{{tree}}")
    made = own.repos.make_merge(own.repo, MergeCommit(tree, (base, head), "m", "anna", AT))
    own.push(made, base)

    assert own.at_origin("main") == made
    assert not proof.exists()


def test_nothing_is_left_in_the_temporary_folder(own: RealHouse, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "t"))
    (tmp_path / "t").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", None)
    root = own.commit(PRIDE)
    own.repos.join(own.repo, root, root)
    assert list((tmp_path / "t").iterdir()) == []


def test_a_repository_of_long_ids_can_be_merged(real, tmp_path: Path) -> None:
    folder = tmp_path / "long"
    folder.mkdir()
    done = subprocess.run(
        ["git", "init", "-q", "--object-format=sha256", "-b", "main", str(folder)], check=False
    )
    if done.returncode:
        pytest.skip("this git knows no long ids")
    (folder / "a").write_text("a\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "chore: begin")
    root = git(folder, "rev-parse", "HEAD")
    git(folder, "commit", "-q", "--allow-empty", "-m", "feat: more")
    assert (
        real.repos.join(folder / ".git", root, git(folder, "rev-parse", "HEAD")).way is Way.FORWARD
    )


def test_a_folder_that_is_no_repository_is_no_answer(real, tmp_path: Path) -> None:
    with pytest.raises(SeamError):
        real.repos.join(tmp_path, "0" * 40, "0" * 40)
