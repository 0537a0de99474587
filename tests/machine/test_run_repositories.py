"""A run's own repository: what one run does with git changes nothing for others, and nothing is lost."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from runs.core.kept_ports import RESCUES
from runs.core.ports import SeamError, Taken, UnknownCommitError
from runs.lifecycle.delivery_rules import branches_beside
from runs.machine import worktree_links
from tests import programs
from tests.linked import LinkedWorktrees
from tests.real import a_checkout, git

pytestmark = pytest.mark.real

REF = f"{RESCUES}20261121T120000-ab12-afk-7"


class Stand:
    """A shared repository whose origin has a commit and a tag, and runs that claim in it."""

    def __init__(self, real, folder):
        self.repos, self.folder = real.repos, folder
        self.repo = folder / "repo.git"
        self.origin = folder / "origin.git"
        self.checkout = a_checkout(folder / "checkout", self.origin)
        git(self.checkout, "tag", "-a", "-m", "first", "v1.2.3")
        git(self.checkout, "push", "-q", "origin", "v1.2.3")
        self.repos.create(self.repo, str(self.origin))
        self.repos.fetch(self.repo)
        self.fork = self.repos.upstream(self.repo, "main")

    def claim(self, key):
        tree = self.folder / f"tree-{key}"
        self.repos.add_worktree(self.repo, tree, f"afk/{key}", self.fork)
        return tree

    def tip(self, key):
        return self.repos.tip(self.repo, f"refs/heads/afk/{key}")


@pytest.fixture
def stand(real, tmp_path):
    return Stand(real, tmp_path)


def _commit(tree, name="work.txt"):
    (tree / name).write_text(name)
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", f"feat: {name}")
    return git(tree, "rev-parse", "HEAD")


WORST = {
    "worktree settings": "git config extensions.worktreeConfig true; git config core.bare true",
    "bare": "git config core.bare true",
    "another place": "git config core.worktree ../tree-8",
    "hook folder": "git config core.hooksPath /nowhere; git config commit.gpgSign true",
    "hook": 'h="$(git rev-parse --git-path hooks)"; mkdir -p "$h"; printf "#!/bin/sh\\nexit 1\\n" >"$h/pre-commit"; chmod +x "$h/pre-commit"',
    "gc": "git reflog expire --expire=now --all; git gc -q --prune=now",
    "repack": "git repack -q -a -d -f; git prune --expire=now; git pack-refs --all",
    "shallow": "git fetch -q --depth=1 origin main; git fetch -q --filter=blob:none origin",
    "refs": "git branch -m other; git update-ref -d refs/heads/afk/8; git update-ref -d refs/remotes/origin/main; git tag -d v1.2.3",
    "a neighbour's name": "git branch -f afk/8 HEAD~0; git commit -q --allow-empty -m x; git branch -f afk/8",
    "worktrees": "git worktree add -q ../mine; git worktree add -q --detach .claude/side; git worktree prune",
    "stash": "echo stashed >stashed.txt; git stash -q -u",
    "origin": "git remote set-url origin /nowhere; git config url./evil.insteadOf /",
    "no objects": "rm -f .git/objects/info/alternates",
    "no repository": "rm -rf .git",
}


@pytest.mark.parametrize("how", WORST.values(), ids=WORST)
def test_whatever_two_runs_do_with_git_a_third_commits_and_delivers(stand, how):
    first, second, third = (stand.claim(key) for key in ("7", "8", "9"))
    _commit(second)
    for tree in (first, second):
        subprocess.run(["sh", "-c", how], cwd=tree, capture_output=True, check=False)
    assert git(third, "describe", "--tags") == "v1.2.3"
    assert git(third, "stash", "list") == ""
    tip = _commit(third)
    git(third, "push", "-q", "origin", "afk/9")
    assert stand.repos.pushed(stand.repo, "afk/9", url=str(stand.origin)) == tip
    assert stand.tip("9") == tip
    assert not stand.repos.is_dirty(third)
    assert stand.repos.is_kept_by(stand.repo, third, "afk/9")
    assert stand.repos.claims(stand.repo) == {"7", "8", "9"}
    room = stand.folder / "room"
    stand.repos.add_detached(stand.repo, room, tip)
    assert (room / "work.txt").exists()
    assert git(room, "describe", "--tags").startswith("v1.2.3")


@pytest.mark.parametrize("how", WORST.values(), ids=WORST)
def test_a_run_that_did_its_worst_to_itself_is_kept_and_goes_when_asked(stand, how):
    tree = stand.claim("7")
    made = _commit(tree)
    assert stand.tip("7") == made
    (tree / "open.txt").write_text("not committed")
    subprocess.run(["sh", "-c", how], cwd=tree, capture_output=True, check=False)
    for look in (
        lambda: stand.repos.remove_worktree(stand.repo, tree),
        lambda: stand.repos.roll_back(stand.repo, tree, "afk/7", stand.fork) and pytest.fail(),
    ):
        with contextlib.suppress(SeamError):
            look()
        assert tree.is_dir()
    tip = stand.tip("7")
    state = stand.repos.snapshot(stand.repo, tip, tree)
    assert state.is_dirty
    stand.repos.keep(stand.repo, REF, state, {"branch": "afk/7"})
    stand.repos.force_remove(stand.repo, tree)
    stand.repos.delete_branch(stand.repo, "afk/7", tip)
    git(stand.repo, "gc", "-q", "--prune=now")
    git(stand.repo, "fsck", "--connectivity-only")
    assert git(stand.repo, "merge-base", made, REF) == made
    stand.repos.put_back(stand.repo, REF, "afk/7", tree)
    if "stash" in how:
        git(tree, "stash", "pop")
    assert (tree / "open.txt").read_text() == "not committed"
    assert (tree / "work.txt").exists()


def test_the_settings_of_one_run_count_nowhere_else(stand):
    first, second = stand.claim("7"), stand.claim("8")
    git(first, "config", "extensions.worktreeConfig", "true")
    git(first, "config", "core.bare", "true")
    assert git(second, "status", "--porcelain") == ""
    assert git(stand.claim("9"), "config", "--get-all", "core.bare") == "false"
    assert stand.repos.is_dirty(first) is False, "labsite itself still reads it"


def test_a_stash_is_the_run_s_own_and_part_of_its_rescue(stand, tmp_path):
    first, second = stand.claim("7"), stand.claim("8")
    for number in (1, 2):
        (first / "hello.txt").write_text(f"stashed {number}\n")
        git(first, "stash", "-q")
    assert git(second, "stash", "list") == ""
    assert not stand.repos.is_dirty(first)
    assert not stand.repos.is_kept_by(stand.repo, first, "afk/7")
    with pytest.raises(SeamError, match="nowhere else"):
        stand.repos.remove_worktree(stand.repo, first)
    assert not stand.repos.roll_back(stand.repo, first, "afk/7", stand.fork)
    state = stand.repos.snapshot(stand.repo, stand.tip("7"), first)
    assert state.is_dirty
    stand.repos.keep(stand.repo, REF, state, {})
    assert stand.repos.is_kept_by(stand.repo, first, "afk/7"), "the rescue has it"
    stand.repos.remove_worktree(stand.repo, first)
    git(stand.repo, "gc", "-q", "--prune=now")
    stand.repos.put_back(stand.repo, REF, "afk/7-again", tmp_path / "again")
    for number in (2, 1):
        git(tmp_path / "again", "stash", "pop")
        assert (tmp_path / "again" / "hello.txt").read_text() == f"stashed {number}\n"
        git(tmp_path / "again", "checkout", "-q", "hello.txt")


def test_a_hook_of_one_run_is_not_that_of_the_next(stand):
    first, second = stand.claim("7"), stand.claim("8")
    script = first / "script.sh"
    script.write_text("#!/bin/sh\nexit 1\n")
    script.chmod(0o755)
    (first / git(first, "rev-parse", "--git-path", "hooks") / "pre-commit").symlink_to(script)
    git(first, "config", "core.hooksPath", str(first))
    shutil.rmtree(first)
    assert _commit(second) == stand.tip("8")


def test_origin_s_tags_are_there_and_count_as_nobody_s_work(stand):
    assert git(stand.claim("7"), "describe", "--tags") == "v1.2.3"
    stand.repos.add_detached(stand.repo, stand.folder / "room", stand.fork)
    assert git(stand.folder / "room", "describe", "--tags") == "v1.2.3"
    git(stand.checkout, "push", "-q", "--delete", "origin", "v1.2.3")
    stand.repos.fetch(stand.repo)
    assert "v1.2.3" not in git(stand.repo, "for-each-ref")
    git(stand.checkout, "push", "-q", "origin", "v1.2.3")
    other = stand.folder / "other.git"
    stand.repos.create(other, str(stand.origin))
    stand.repos.fetch(other)
    stand.repos.set_aside(other, "20261121")
    assert not list(stand.folder.glob("other.git*")), "it held nothing but what origin has"


def test_the_origin_that_labsite_makes_of_a_path_has_its_tags_too(stand):
    origin = stand.folder / "made.git"
    stand.repos.create_origin(origin, stand.checkout)
    assert git(origin, "tag") == "v1.2.3"
    git(stand.checkout, "tag", "v1.3.0")
    assert stand.repos.refill(origin, stand.checkout) == ""
    assert git(origin, "tag").split() == ["v1.2.3", "v1.3.0"]


def test_one_of_many_who_claim_at_once_has_the_branch(stand):
    def claims(number):
        try:
            stand.repos.add_worktree(
                stand.repo, stand.folder / f"tree-{number}", "afk/7", stand.fork
            )
        except Taken:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        won = list(pool.map(claims, range(6)))
    assert won.count(True) == 1
    assert [tree.name for tree in stand.folder.glob("tree-*")] == [f"tree-{won.index(True)}"]


def test_a_look_at_a_branch_that_stands_still_starts_no_program(stand):
    tree = stand.claim("7")
    with programs.started() as started:
        assert stand.repos.glimpse(stand.repo, "afk/7") == stand.fork
        assert stand.repos.ref(stand.repo, "refs/heads/afk/7") == stand.fork
    assert started == []
    tip = _commit(tree)
    assert stand.repos.glimpse(stand.repo, "afk/7") == tip
    assert stand.repos.ref(stand.repo, "refs/heads/afk/7") == tip
    assert git(stand.repo, "rev-parse", "afk/7") == tip


def test_what_a_run_pushed_is_known_here_and_what_origin_said_later_counts(stand):
    tree = stand.claim("7")
    first = _commit(tree)
    git(tree, "push", "-q", "origin", "afk/7")
    theirs = "refs/remotes/origin/afk/7"
    assert stand.repos.ref(stand.repo, theirs) == first
    assert stand.repos.unpushed(stand.repo, "afk/7", "main") == 0
    git(stand.checkout, "fetch", "-q", "origin")
    git(stand.checkout, "checkout", "-q", "afk/7")
    review = _commit(stand.checkout, "review.txt")
    git(stand.checkout, "push", "-q", "origin", "afk/7")
    stand.repos.fetch(stand.repo)
    assert stand.repos.ref(stand.repo, theirs) == review
    assert stand.repos.forward(stand.repo, tree, "afk/7")
    assert stand.tip("7") == review
    assert git(tree, "rev-parse", "origin/afk/7") == review


def test_a_worktree_made_again_follows_origin_s_branch(stand):
    tree = stand.claim("7")
    tip = _commit(tree)
    git(tree, "push", "-q", "origin", "afk/7")
    stand.tip("7")
    stand.repos.remove_worktree(stand.repo, tree)
    assert stand.repos.add_again(stand.repo, tree, "afk/7")
    assert git(tree, "rev-parse", "@{upstream}") == tip


def test_other_branches_of_a_run_are_part_of_its_rescue(stand, tmp_path):
    tree = stand.claim("7")
    git(tree, "checkout", "-q", "-b", "aside")
    other = _commit(tree)
    git(tree, "checkout", "-q", "afk/7")
    assert not stand.repos.is_kept_by(stand.repo, tree, "afk/7")
    stand.repos.keep(stand.repo, REF, stand.repos.snapshot(stand.repo, stand.fork, tree), {})
    stand.repos.force_remove(stand.repo, tree)
    git(stand.repo, "gc", "-q", "--prune=now")
    stand.repos.put_back(stand.repo, REF, "afk/7-again", tmp_path / "again")
    assert git(tmp_path / "again", "rev-parse", "aside") == other


def test_no_setting_of_a_run_s_own_repository_runs_a_program_on_our_behalf(stand):
    tree = stand.claim("7")
    proof = stand.folder / "proof"
    evil = stand.folder / "evil"
    evil.write_text(f'#!/bin/sh\ntouch {proof}\nexec cat "$1"\n')
    evil.chmod(0o755)
    for name in (
        *("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass"),
        *("core.alternateRefsCommand", "uploadpack.packObjectsHook", "gpg.program"),
        *("diff.external", "diff.evil.textconv", "diff.evil.command", "merge.evil.driver"),
        *("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "credential.helper"),
        *("remote.origin.uploadpack", "remote.origin.receivepack"),
    ):
        git(tree, "config", name, str(evil))
    git(tree, "config", f"url.ext::{evil} .insteadOf", "/")
    git(tree, "config", "core.hooksPath", str(stand.folder / "hooks"))
    (stand.folder / "hooks").mkdir()
    for name in ("reference-transaction", "post-checkout", "post-index-change", "pre-push"):
        (stand.folder / "hooks" / name).symlink_to(evil)
    (tree / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    (tree / "hello.txt").write_text("changed\n")
    tree_of = git(tree, "rev-parse", "HEAD^{tree}")
    made = git(tree, "commit-tree", "-p", "HEAD", "-m", "x", tree_of)
    (tree / ".git" / "refs" / "heads" / "afk" / "7").write_text(f"{made}\n")
    proof.unlink(missing_ok=True)
    assert stand.tip("7") == made
    assert stand.repos.is_dirty(tree)
    assert stand.repos.changes(tree, stand.fork)
    assert stand.repos.patch(tree, stand.fork, 10_000)
    assert stand.repos.worktree_tree(tree)
    assert stand.repos.is_kept_by(stand.repo, tree, "afk/7")
    stand.repos.keep(stand.repo, REF, stand.repos.snapshot(stand.repo, made, tree), {})
    stand.repos.switch(stand.repo, tree, "afk/8", stand.fork, clean=True)
    stand.repos.force_remove(stand.repo, tree)
    assert not proof.exists()


def test_a_branch_whose_objects_are_not_all_there_is_not_taken_for_one(stand):
    tree = stand.claim("7")
    made = _commit(tree)
    blob = git(tree, "rev-parse", "HEAD:work.txt")
    (tree / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(SeamError, match="cannot be read whole"):
        stand.repos.tip(stand.repo, "refs/heads/afk/7")
    assert git(stand.repo, "rev-parse", "afk/7") == stand.fork != made
    with pytest.raises(SeamError):
        stand.repos.remove_worktree(stand.repo, tree)


def test_a_claim_that_was_killed_half_way_is_rolled_back_and_made_again(stand):
    tree = stand.claim("7")
    worktree_links.write_note(stand.repo, tree, is_made=False)
    (tree / "hello.txt").unlink()
    assert stand.repos.roll_back(stand.repo, tree, "afk/7", stand.fork)
    assert stand.repos.claims(stand.repo) == frozenset()
    tree = stand.claim("7")
    worktree_links.write_note(stand.repo, tree, is_made=False)
    assert stand.repos.add_again(stand.repo, tree, "afk/7")
    assert (tree / "hello.txt").exists()


def test_a_repository_that_is_set_aside_keeps_lending_its_objects(stand):
    tree = stand.claim("7")
    tip = _commit(tree)
    moved = tree.rename(stand.folder / "tree.kept")
    stand.repos.set_aside(stand.repo, "20261121", always=True, trees=[moved])
    kept = stand.folder / "repo.git.kept-20261121"
    assert git(moved, "log", "--format=%H").split()[0] == tip
    assert stand.repos.tip(kept, "refs/heads/afk/7") == tip
    assert stand.repos.standing(kept, moved).branch == "afk/7"


def test_both_kinds_of_worktrees_live_side_by_side(stand):
    before = LinkedWorktrees(stand.repos._git)
    old, new = stand.folder / "old", stand.claim("8")
    before.add_worktree(stand.repo, old, "afk/7", stand.fork)
    tips = {"afk/7": _commit(old), "afk/8": _commit(new)}
    found = {one.name: (one.tip, one.worktree) for one in stand.repos.branches(stand.repo, ("",))}
    assert found == {"afk/7": (tips["afk/7"], str(old)), "afk/8": (tips["afk/8"], str(new))}
    assert set(stand.repos.registered(stand.repo)) == {old, new}
    for name, tree in (("afk/7", old), ("afk/8", new)):
        assert stand.repos.standing(stand.repo, tree).branch == name
        assert stand.repos.is_kept_by(stand.repo, tree, name)
        stand.repos.remove_worktree(stand.repo, tree)
        assert not tree.exists()
        assert stand.repos.add_again(stand.repo, tree, name)
        assert (tree / ".git").is_dir()


def test_the_branches_that_a_run_has_beside_its_own_are_seen(stand):
    tree = stand.claim("7")
    git(tree, "checkout", "-q", "-b", "fix")
    mine = _commit(tree)
    git(tree, "push", "-q", "origin", "HEAD:refs/heads/other")
    refs = stand.repos.own_refs(tree)
    assert (refs["refs/heads/fix"], refs["HEAD"], refs["refs/heads/afk/7"]) == (
        mine,
        mine,
        stand.fork,
    )
    assert branches_beside(refs, "afk/7", "main", stand.fork) == ["fix", "other"]
    assert stand.repos.own_refs(stand.folder) == {}


def test_the_address_of_origin_is_told_as_it_is_and_no_failure_is_remembered(stand, tmp_path):
    tree = stand.claim("7")
    assert git(tree, "config", "remote.origin.url") == str(stand.origin)
    git(stand.repo, "config", "remote.origin.url", "/elsewhere")
    assert git(stand.claim("8"), "config", "remote.origin.url") == "/elsewhere"

    settings = stand.repo / "config"
    whole = settings.read_text()
    settings.write_text(f"{whole}[broken\n")
    with pytest.raises(SeamError):
        stand.claim("9")
    settings.write_text(whole)
    assert git(stand.claim("10"), "config", "remote.origin.url") == "/elsewhere"
    settings.write_text(whole.replace("url = /elsewhere", "url = /other"))
    assert git(stand.claim("11"), "config", "remote.origin.url") == "/other"


def test_a_commit_that_only_a_run_has_is_unknown_to_the_shared_repository(stand):
    head = _commit(stand.claim("7"))
    with pytest.raises(UnknownCommitError):
        stand.repos.is_ahead(stand.repo, head, "main")
    assert stand.tip("7") == head
    assert stand.repos.is_ahead(stand.repo, head, "main")
