"""What differs between two commits: the fake and real git answer alike; hostile content on real git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from runs.core.history_ports import EMPTY_TREE
from runs.core.ports import SeamError
from runs.pulls import patches
from tests.fakes import FakeRepos
from tests.patience import PATIENCE
from tests.real import a_checkout, git

pytestmark = [pytest.mark.real, pytest.mark.quick("contract of the fake and the real git")]

LIMIT = 100_000
PRIDE = {"app.py": "one\ntwo\nthree\n", "old.txt": "gone\n", "same.txt": "same\n"}


class RealHistory:
    """Real git with the fake's way to make commits."""

    def __init__(self, repos, folder: Path) -> None:
        self.repos, self.folder, self.repo = repos, folder, folder / ".git"
        a_checkout(folder)

    def commit(self, files, *parents, subject="feat: x", body="") -> str:
        git(self.folder, "read-tree", "--empty")
        for path in self.folder.iterdir():
            if path.is_file():
                path.unlink()
        for name, text in files.items():
            (self.folder / name).write_text(text)
        git(self.folder, "add", "-A")
        tree = git(self.folder, "write-tree")
        above = [word for one in parents for word in ("-p", one)]
        return git(self.folder, "commit-tree", tree, *above, "-m", subject, "-m", body or " ")

    def name(self, ref: str, commit: str) -> None:
        git(self.folder, "update-ref", ref, commit)


class FakeHouse:
    def __init__(self) -> None:
        self.repos, self.repo = FakeRepos(), Path("/repo.git")
        self.commit = self.repos.commit

    def name(self, ref: str, commit: str) -> None:
        self.repos.refs[ref] = commit


@pytest.fixture(params=["fake", pytest.param("real", id="git")])
def house(request, tmp_path):
    if request.param == "fake":
        return FakeHouse()
    return RealHistory(request.getfixturevalue("real").repos, tmp_path / "checkout")


@pytest.fixture
def forked(house):
    """(house, base, head): two commits on a branch while main went on."""
    root = house.commit(PRIDE, subject="chore: begin")
    base = house.commit({**PRIDE, "main.txt": "later\n"}, root, subject="chore: main goes on")
    first = house.commit(
        {**PRIDE, "app.py": "one\n2\nthree\n"}, root, subject="feat: first", body="Because.\n\nSo."
    )
    files = {"app.py": "one\n2\nthree\nfour\n", "same.txt": "same\n", "new.bin": "a\0b"}
    return house, base, house.commit(files, first, subject="feat: second")


def test_what_a_branch_changed_since_it_left_the_base(forked):
    house, base, head = forked
    found = house.repos.changes(house.repo, base, head)
    assert [(c.path, c.kind, c.added, c.removed) for c in found] == [
        ("app.py", "M", 2, 1),
        ("new.bin", "A", None, None),
        ("old.txt", "D", 0, 1),
    ]
    assert [(c.old_mode, c.new_mode) for c in found] == [
        ("100644", "100644"),
        ("000000", "100644"),
        ("100644", "000000"),
    ]
    assert all(len(c.old_id) == len(c.new_id) == 40 for c in found)
    assert house.repos.changes(house.repo, head, head) == []
    assert [c.kind for c in house.repos.changes(house.repo, EMPTY_TREE, base)] == ["A"] * 4


def test_the_patch_holds_whole_files_up_to_a_limit(forked):
    house, base, head = forked
    patch = house.repos.patch(house.repo, base, LIMIT, head)
    assert "-two\n+2\n" in patch
    assert "main.txt" not in patch
    assert patch.count("diff --git ") == 3
    cut = house.repos.patch(house.repo, base, len(patch) - 10, head)
    assert patch.startswith(cut)
    assert cut.count("diff --git ") == 2


def test_the_patch_of_one_file_comes_from_the_contents_that_its_change_names(forked):
    house, base, head = forked
    app, _, old = house.repos.changes(house.repo, base, head)
    text = house.repos.patch_of(house.repo, app, LIMIT)
    assert "@@ -1,3 +1,4 @@" in text
    assert "-two\n+2\n three\n+four\n" in text
    assert "@@ -1" in house.repos.patch_of(house.repo, old, LIMIT)
    assert "\n-gone\n" in house.repos.patch_of(house.repo, old, LIMIT)
    parts = patches.sections(house.repos.patch(house.repo, base, LIMIT, head))
    for change in (app, old):
        shown = [(one.kind, one.text) for one in patches.lines(parts[change.path])]
        alone = patches.lines(house.repos.patch_of(house.repo, change, LIMIT))
        assert [(one.kind, one.text) for one in alone][1:] == shown[1:]
        assert len(shown) > 1


def test_the_commits_of_a_branch_newest_first_with_their_text(forked):
    house, base, head = forked
    second, first = house.repos.commits(house.repo, base, head, 10)
    assert (second.id, second.subject, second.parents) == (head, "feat: second", (first.id,))
    assert (first.subject, first.body, first.author) == ("feat: first", "Because.\n\nSo.", "Test")
    assert [c.id for c in house.repos.commits(house.repo, base, head, 1)] == [head]
    assert house.repos.commits(house.repo, head, head, 10) == []


@pytest.mark.parametrize("text", ["s" * 3_000_000, f"feat: x\n\n{'b' * 3_000_000}"])
def test_a_message_of_three_megabytes_is_shown_in_part(real, tmp_path, text):
    history = RealHistory(real.repos, tmp_path / "checkout")
    base = history.commit({"a.txt": "a"}, subject="chore: begin")
    message = tmp_path / "message"
    message.write_text(text)
    tree = f"{base}^{{tree}}"
    big = git(history.folder, "commit-tree", "-p", base, "-F", str(message), tree)
    found = real.repos.commits(history.repo, base, big, 10)
    assert [one.id for one in found] == [big]
    assert len(found[0].subject) <= 500
    assert len(real.repos.subject(history.repo, big)) <= 500
    said = "… 2,980,000 more characters are not shown here"
    assert len(found[0].body) <= 20_000 + 1 + len(said)
    assert found[0].body.endswith(said if "\n" in text else "")


def test_the_tips_of_several_refs_in_one_look(forked):
    house, base, head = forked
    house.name("refs/remotes/origin/main", base)
    house.name("refs/remotes/origin/afk/7", head)
    house.name("refs/remotes/origin/afk/7x", base)
    asked = ["refs/remotes/origin/main", "refs/remotes/origin/afk/7", "refs/remotes/origin/afk"]
    assert house.repos.tips(house.repo, asked) == {asked[0]: base, asked[1]: head}


def test_a_commit_that_is_gone_and_histories_that_never_met_are_errors(forked):
    house, base, head = forked
    alone = house.commit({"x.txt": "x\n"}, subject="chore: alone")
    for one, other in ((base, "0" * 39 + "1"), ("0" * 39 + "1", head), (base, alone)):
        with pytest.raises(SeamError):
            house.repos.changes(house.repo, one, other)
    with pytest.raises(SeamError):
        house.repos.commits(house.repo, base, "0" * 39 + "1", 10)


# What only real git can show.


@pytest.fixture
def tree(real, tmp_path):
    """(repos, folder, first commit): a checkout with a bit of everything."""
    folder = a_checkout(tmp_path / "checkout")
    (folder / "run.sh").write_text("#!/bin/sh\necho hello\n")
    (folder / "long name.txt").write_text("".join(f"line {n}\n" for n in range(40)))
    (folder / "kind").write_text("a file\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "chore: more")
    return real.repos, folder, git(folder, "rev-parse", "HEAD")


def _committed(folder: Path) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "feat: all of it")
    return git(folder, "rev-parse", "HEAD")


def test_renames_modes_links_submodules_and_types_are_told_apart(tree):
    repos, folder, base = tree
    git(folder, "mv", "long name.txt", "other.txt")
    (folder / "run.sh").chmod(0o755)
    (folder / "kind").unlink()
    (folder / "kind").symlink_to("/etc/passwd")
    (folder / "link").symlink_to("hello.txt")
    git(folder, "add", "-A")
    git(folder, "update-index", "--add", "--cacheinfo", f"160000,{base},sub")
    git(folder, "commit", "-q", "-m", "feat: all")
    head = git(folder, "rev-parse", "HEAD")
    found = {c.path: c for c in repos.changes(folder, base, head)}
    assert (found["other.txt"].kind, found["other.txt"].old_path) == ("R", "long name.txt")
    assert (found["run.sh"].old_mode, found["run.sh"].new_mode) == ("100644", "100755")
    assert (found["kind"].kind, found["kind"].new_mode) == ("T", "120000")
    assert (found["link"].kind, found["link"].new_mode) == ("A", "120000")
    assert (found["sub"].kind, found["sub"].new_mode, found["sub"].new_id) == ("A", "160000", base)
    assert repos.patch_of(folder, found["sub"], LIMIT) == ""
    assert "+hello.txt\n\\ No newline" in repos.patch_of(folder, found["link"], LIMIT)


@pytest.mark.parametrize(
    "name", ["a\nb", 'say "hi".txt', "tab\tname", "\x1b[31mred", "‮gpj.exe", "-rf", ":(top)x", "*"]
)
def test_files_with_hostile_names_are_listed_and_their_contents_found(tree, name):
    repos, folder, base = tree
    (folder / name).write_text("content\n")
    head = _committed(folder)
    (change,) = repos.changes(folder, base, head)
    assert (change.path, change.added) == (name, 1)
    assert "+content" in repos.patch_of(folder, change, LIMIT)
    assert "+content" in repos.patch(folder, base, LIMIT, head)


def test_a_name_and_a_content_that_are_no_utf8_are_shown_escaped(tree):
    repos, folder, base = tree
    with open(bytes(folder) + b"/\xff.txt", "wb") as file:  # noqa: PTH123  (a name in bytes)
        file.write(b"caf\xe9\n")
    head = _committed(folder)
    (change,) = repos.changes(folder, base, head)
    assert change.path == "\\xff.txt"
    assert "+caf\\xe9" in repos.patch_of(folder, change, LIMIT)


def test_nothing_that_a_repository_names_runs_or_bends_the_diff(tree, tmp_path):
    repos, folder, base = tree
    evil = tmp_path / "evil"
    evil.write_text(f'#!/bin/sh\ntouch {tmp_path}/ran\ncat "$1"\n')
    evil.chmod(0o755)
    for name in ("diff.evil.textconv", "diff.evil.command", "diff.external", "gpg.program"):
        git(folder, "config", name, str(evil))
    for name, value in (
        *(("log.showSignature", "true"), ("diff.noprefix", "true"), ("diff.context", "0")),
        *(("color.ui", "always"), ("diff.submodule", "log"), ("diff.renames", "false")),
        *(
            ("diff.wsErrorHighlight", "all"),
            ("diff.colorMoved", "zebra"),
            ("core.pager", str(evil)),
        ),
        *(("diff.orderFile", "order"), ("diff.suppressBlankEmpty", "true")),
        ("diff.mnemonicPrefix", "true"),
    ):
        git(folder, "config", name, value)
    (folder / ".git" / "info" / "attributes").write_text("* diff=evil\n")
    (folder / ".gitattributes").write_text("* diff=evil\n")
    git(folder, "mv", "long name.txt", "other.txt")
    (folder / "hello.txt").write_text("changed\n")
    head = _signed(folder)
    found = {c.path: c for c in repos.changes(folder, base, head)}
    assert found["other.txt"].kind == "R"
    patch = repos.patch(folder, base, LIMIT, head)
    assert "--- a/hello.txt\n+++ b/hello.txt\n@@ -1 +1 @@\n-hello\n+changed\n" in patch
    assert "\x1b" not in patch
    assert "+changed" in repos.patch_of(folder, found["hello.txt"], LIMIT)
    assert [c.id for c in repos.commits(folder, base, head, 5)] == [head]
    assert repos.subject(folder, head) == "signed"
    assert not (tmp_path / "ran").exists()


def _signed(folder: Path) -> str:
    """A commit with a signature, which git would have checked by a program of the repository's."""
    git(folder, "add", "-A")
    tree, parent = git(folder, "write-tree"), git(folder, "rev-parse", "HEAD")
    who = "Test <t@example.org> 1700000000 +0000"
    raw = (
        f"tree {tree}\nparent {parent}\nauthor {who}\ncommitter {who}\n"
        "gpgsig -----BEGIN PGP SIGNATURE-----\n \n aaaa\n -----END PGP SIGNATURE-----\n\nsigned\n"
    )
    done = subprocess.run(
        ["git", "-C", str(folder), "hash-object", "-t", "commit", "-w", "--stdin"],
        input=raw.encode(),
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    )
    return done.stdout.decode().strip()


def test_a_replaced_object_does_not_change_what_a_commit_shows(tree):
    repos, folder, base = tree
    (folder / "hello.txt").write_text("changed\n")
    head = _committed(folder)
    git(folder, "replace", head, base)
    assert [c.path for c in repos.changes(folder, base, head)] == ["hello.txt"]


def test_one_line_of_a_megabyte_is_cut_and_still_a_diff(tree):
    repos, folder, base = tree
    (folder / "hello.txt").write_text("x" * 1_000_000 + "\n")
    (folder / "long name.txt").write_text("".join(f"line {n}!\n" for n in range(4000)))
    head = _committed(folder)
    hello, other = repos.changes(folder, base, head)
    assert repos.patch_of(folder, hello, 10_000).endswith("@@ -1,1 +1,0 @@\n-hello\n")
    text = repos.patch_of(folder, other, 10_000)
    assert text.endswith("!\n")
    count = text.count("\n+") - 1  # the head of the diff has one too
    assert f"+1,{count} @@" in text


def test_a_branch_with_thousands_of_files_is_listed_and_more_is_refused_in_words(tree, monkeypatch):
    repos, folder, base = tree
    for n in range(5000):
        (folder / f"file-{n:04}.txt").write_text(f"{n}\n")
    head = _committed(folder)
    assert len(repos.changes(folder, base, head)) == 5000
    monkeypatch.setattr("runs.machine.worktrees.LIST_BYTES", 100_000)
    with pytest.raises(SeamError, match="too many files have changed"):
        repos.changes(folder, base, head)


def test_a_lock_file_of_a_hundred_thousand_lines_is_one_file_in_the_list(tree):
    repos, folder, base = tree
    (folder / "x.lock").write_text(
        "".join(f"package-{n} 1.2.3 sha512:{n:064}\n" for n in range(100_000))
    )
    head = _committed(folder)
    (change,) = repos.changes(folder, base, head)
    assert (change.path, change.added) == ("x.lock", 100_000)


def test_a_worktree_in_the_middle_of_a_conflict_is_told(tree):
    repos, folder, base = tree
    git(folder, "checkout", "-q", "-b", "other")
    (folder / "hello.txt").write_text("theirs\n")
    _committed(folder)
    git(folder, "checkout", "-q", "main")
    (folder / "hello.txt").write_text("ours\n")
    _committed(folder)
    subprocess.run(
        ["git", "-C", str(folder), "merge", "-q", "other"], capture_output=True, check=False
    )
    assert "hello.txt" in {c.path for c in repos.changes(folder, base)}
    assert "<<<<<<<" in repos.patch(folder, base, LIMIT)


def test_the_texts_of_files_at_the_top_of_a_commit(house):
    commit = house.commit({"pyproject.toml": "[tool.uv]\n", "uv.lock": "x" * 300, "app.py": "1\n"})
    found = house.repos.texts(house.repo, commit, ["pyproject.toml", "uv.lock", "go.mod"], 100)
    assert dict(found) == {"pyproject.toml": "[tool.uv]\n", "uv.lock": "x" * 100}
    with pytest.raises(SeamError):
        house.repos.texts(house.repo, "f" * 40, ["app.py"], 100)


def test_a_link_and_a_folder_are_no_files(real, tmp_path):
    folder = tmp_path / "checkout"
    a_checkout(folder)
    (folder / "Makefile").symlink_to("/etc/hostname")
    (folder / "go.mod").mkdir()
    (folder / "go.mod" / "x").write_text("x")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "chore: links")
    head = git(folder, "rev-parse", "HEAD")
    assert real.repos.texts(folder / ".git", head, ["Makefile", "go.mod"], 100) == {}
