"""Repositories: the fake and real git answer alike; what only git can show is shown on it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess

import pytest

from runs.core.ports import SeamError
from runs.machine import run_repositories
from runs.pulls import patches
from tests.fakes import FakeRepos
from tests.linked import LinkedWorktrees, cut
from tests.real import a_checkout, git

pytestmark = [pytest.mark.real, pytest.mark.quick("contract of the fake and the real git")]


@pytest.fixture(params=["fake", pytest.param("real", id="git"), "linked"])
def repos(request, tmp_path):
    """(repos, repo): a reference repository whose origin has a commit on main."""
    repo = tmp_path / "repo.git"
    if request.param == "fake":
        made = FakeRepos()
        made.create(repo, "/origin")
        return made, repo
    real = request.getfixturevalue("real")
    a_checkout(tmp_path / "checkout", tmp_path / "origin.git")
    real.repos.create(repo, str(tmp_path / "origin.git"))
    real.repos.fetch(repo)
    if request.param == "linked":
        real.repos = LinkedWorktrees(real.repos._git)
    return real.repos, repo


def _claimed(real, tmp_path):
    """(repository, worktree, fork point): issue 7 claimed on real git."""
    repo, tree = tmp_path / "repo.git", tmp_path / "tree"
    a_checkout(tmp_path / "checkout", tmp_path / "origin.git")
    real.repos.create(repo, str(tmp_path / "origin.git"))
    real.repos.fetch(repo)
    fork = real.repos.upstream(repo, "main")
    real.repos.add_worktree(repo, tree, "afk/7", fork)
    return repo, tree, fork


@pytest.mark.row("LAB-73", level="real")
def test_the_branch_is_the_claim(repos, tmp_path):
    seam, repo = repos
    assert seam.claims(repo) == frozenset()
    fork = seam.upstream(repo, "main")
    seam.add_worktree(repo, tmp_path / "tree", "afk/7", fork)
    assert len(fork) == 40
    assert seam.claims(repo) == {"7"}
    seam.roll_back(repo, tmp_path / "tree", "afk/7", fork)
    assert seam.claims(repo) == frozenset()
    assert not (tmp_path / "tree").exists()


def test_claims_are_found_under_a_prefix_that_ends_within_a_name(repos, tmp_path):
    seam, repo = repos
    fork = seam.upstream(repo, "main")
    for name in ("bot/issue-7", "bot/other", "afk/8"):
        seam.add_worktree(repo, tmp_path / name, name, fork)
    assert seam.claims(repo, prefix="bot/issue-") == {"7"}
    assert seam.claims(repo) == {"8"}
    found = {one.name for one in seam.branches(repo, ("bot/issue-", "afk/"))}
    assert found == {"bot/issue-7", "afk/8"}


def test_a_ref_is_what_its_files_say_wherever_git_keeps_it(real, tmp_path):
    real.repos = LinkedWorktrees(real.repos._git)
    repo, _, fork = _claimed(real, tmp_path)
    mine, base, none = "refs/heads/afk/7", "refs/remotes/origin/main", "refs/heads/afk/70"
    git(repo, "symbolic-ref", "refs/heads/also", mine)
    git(repo, "branch", "afk/7-later", fork)
    names = [mine, base, none, "refs/heads/also", "refs/heads/afk", "refs/heads/../HEAD", "HEAD"]

    def said() -> list[str | None]:
        return [real.repos.ref(repo, name) for name in names]

    loose = [fork, fork, None, fork, None, None, None]
    assert said() == [real.repos.tip(repo, name) for name in names] == loose
    git(repo, "pack-refs", "--all")
    assert not (repo / mine).exists()
    assert said() == loose
    git(repo, "update-ref", mine, git(repo, "commit-tree", "-m", "x", f"{fork}^{{tree}}").strip())
    assert said()[0] == real.repos.tip(repo, mine) != fork
    (repo / mine).write_text("no commit\n")
    assert said()[0] is real.repos.tip(repo, mine) is None
    assert real.repos.ref(tmp_path / "nowhere", mine) is None


@pytest.mark.row("LAB-59", level="real")
def test_a_second_claim_is_refused_and_makes_nothing(repos, tmp_path):
    seam, repo = repos
    seam.add_worktree(repo, tmp_path / "tree", "afk/7", seam.upstream(repo, "main"))
    with pytest.raises(SeamError):
        seam.add_worktree(repo, tmp_path / "other", "afk/7", seam.upstream(repo, "main"))
    assert not (tmp_path / "other").exists()


def test_a_clean_worktree_is_removed_and_its_branch_kept(repos, tmp_path):
    seam, repo = repos
    seam.add_worktree(repo, tmp_path / "tree", "afk/7", seam.upstream(repo, "main"))
    assert seam.is_dirty(tmp_path / "tree") is False
    seam.remove_worktree(repo, tmp_path / "tree")
    assert not (tmp_path / "tree").exists()
    assert seam.claims(repo) == {"7"}
    seam.remove_worktree(repo, tmp_path / "tree")


def test_a_worktree_is_made_again_on_its_branch_and_one_that_is_there_is_left_alone(
    repos, tmp_path
):
    seam, repo = repos
    tree = tmp_path / "tree"
    seam.add_worktree(repo, tree, "afk/7", seam.upstream(repo, "main"))
    seam.remove_worktree(repo, tree)
    assert seam.add_again(repo, tree, "afk/7") is True
    assert (seam.standing(repo, tree).branch, seam.is_dirty(tree)) == ("afk/7", False)
    (tree / "new.txt").write_text("not committed")
    assert seam.add_again(repo, tree, "afk/7") is False
    assert (tree / "new.txt").exists()
    with pytest.raises(SeamError):
        seam.add_again(repo, tmp_path / "other", "afk/8")
    assert not (tmp_path / "other").exists()


def test_the_tree_of_a_clean_worktree_is_that_of_its_commit(repos, tmp_path):
    seam, repo = repos
    tree = tmp_path / "tree"
    fork = seam.upstream(repo, "main")
    seam.add_worktree(repo, tree, "afk/7", fork)
    assert seam.worktree_tree(tree) == seam.tree_of(repo, fork)
    assert len(seam.worktree_tree(tree)) == 40
    with pytest.raises(SeamError):
        seam.worktree_tree(tmp_path / "nowhere")


def _objects(repo):
    return sorted(path for path in (repo / "objects").rglob("*") if path.is_file())


def test_the_tree_of_a_worktree_is_what_a_commit_of_everything_would_have(real, tmp_path):
    repo, tree, fork = _claimed(real, tmp_path)
    (tree / "staged.txt").write_text("staged\n")
    git(tree, "add", "staged.txt")
    (tree / "staged.txt").write_text("changed since\n")
    (tree / "hello.txt").write_text("changed\n")
    (tree / "new folder").mkdir()
    (tree / "new folder" / "ü\n.txt").write_text("odd name\n")
    (tree / ".gitignore").write_text("build/\n")
    (tree / "build").mkdir()
    (tree / "build" / "big.o").write_text("ignored")
    before = (git(tree, "status", "--porcelain"), _objects(repo))
    found = real.repos.worktree_tree(tree)
    assert found not in ("", real.repos.tree_of(repo, fork))
    assert (git(tree, "status", "--porcelain"), _objects(repo)) == before
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "feat: all of it")
    assert git(tree, "rev-parse", "HEAD^{tree}") == found
    assert real.repos.worktree_tree(tree) == found
    (tree / "build" / "big.o").write_text("ignored still")
    assert real.repos.worktree_tree(tree) == found


@pytest.mark.parametrize("how", ["unchanged", "left out", "exclude list", "sparse", "no index"])
def test_no_trick_with_an_index_hides_a_file_from_the_tree_of_a_worktree(real, tmp_path, how):
    repo, tree, fork = _claimed(real, tmp_path)
    committed = real.repos.tree_of(repo, fork)
    if how == "unchanged":
        git(tree, "update-index", "--assume-unchanged", "hello.txt")
    if how == "left out":
        git(tree, "update-index", "--skip-worktree", "hello.txt")
    if how == "exclude list":
        (repo / "info").mkdir(exist_ok=True)
        (repo / "info" / "exclude").write_text("*.txt\n")
        (tree / "more.txt").write_text("more\n")
    if how == "sparse":
        git(tree, "sparse-checkout", "set", "--no-cone", "/nothing")
        assert not (tree / "hello.txt").exists()
        assert real.repos.worktree_tree(tree) == committed
    if how == "no index":
        (tree / ".git" / "index").unlink()
    (tree / "hello.txt").write_text("changed behind its back\n")
    assert real.repos.worktree_tree(tree) != committed


def test_an_unfinished_merge_and_a_repository_inside_have_a_tree_too(real, tmp_path):
    _, tree, fork = _claimed(real, tmp_path)
    (tree / "hello.txt").write_text("mine\n")
    git(tree, "commit", "-q", "-a", "-m", "mine")
    git(tree, "checkout", "-q", "-b", "other", fork)
    (tree / "hello.txt").write_text("theirs\n")
    git(tree, "commit", "-q", "-a", "-m", "theirs")
    subprocess.run(["git", "-C", str(tree), "merge", "-q", "afk/7"], capture_output=True)
    assert "UU hello.txt" in git(tree, "status", "--porcelain")
    assert real.repos.worktree_tree(tree)
    git(tree, "merge", "--abort")
    a_checkout(tree / "inner", tmp_path / "inner.git")
    found = real.repos.worktree_tree(tree)
    assert found != git(tree, "rev-parse", "other^{tree}")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "a link")
    assert git(tree, "rev-parse", "HEAD^{tree}") == found


def test_a_worktree_without_its_link_is_not_taken_for_the_repository_around_it(real, tmp_path):
    _, tree, _ = _claimed(real, tmp_path)
    a_checkout(tmp_path / "around", tmp_path / "around.git")
    moved = tmp_path / "around" / "tree"
    tree.rename(moved)
    cut(moved)
    with pytest.raises(SeamError):
        real.repos.worktree_tree(moved)


def _slow_files(real, tmp_path, repo, tree):
    """A filter of the operator's own under which a checkout of the branch never comes to its end."""
    settings = tmp_path / "gitconfig"
    git(tree, "config", "-f", str(settings), "filter.slow.smudge", "sleep 60")
    (tree / ".gitattributes").write_text("*.slow filter=slow\n")
    (tree / "a.slow").write_text("slow")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "feat: slow")
    real.repos.remove_worktree(repo, tree)
    return settings


@pytest.mark.parametrize("is_folder_there", [True, False], ids=["half a folder", "notes only"])
def test_a_worktree_whose_making_was_killed_is_made_anew(real, tmp_path, is_folder_there):
    repo, tree, _ = _claimed(real, tmp_path)
    settings = _slow_files(real, tmp_path, repo, tree)
    making = subprocess.Popen(
        ["git", "-C", str(repo), "worktree", "add", "-q", "--", str(tree), "afk/7"],
        env={**os.environ, "GIT_CONFIG_GLOBAL": str(settings)},
        start_new_session=True,
    )
    begun = repo / "worktrees" / "tree" / "index.lock"
    real.until(lambda: begun.exists() or making.poll() is not None)
    os.killpg(making.pid, signal.SIGKILL)
    making.wait()
    assert real.repos.is_dirty(tree)  # what an agent would have found
    if not is_folder_there:
        shutil.rmtree(tree)
    assert real.repos.add_again(repo, tree, "afk/7") is True
    assert not real.repos.is_dirty(tree)
    assert (tree / "a.slow").read_text() == "slow"
    assert not (repo / "worktrees" / "tree" / "locked").exists()


def test_a_worktree_that_takes_too_long_to_make_leaves_nothing(real, tmp_path, monkeypatch):
    repo, tree, _ = _claimed(real, tmp_path)
    settings = _slow_files(real, tmp_path, repo, tree)
    real.repos._git._env["GIT_CONFIG_GLOBAL"] = str(settings)
    monkeypatch.setattr(run_repositories, "CHECKOUT", 1.0)
    with pytest.raises(SeamError, match="no answer within 1 seconds"):
        real.repos.add_again(repo, tree, "afk/7")
    assert not tree.exists()
    assert not list((repo / "worktrees").glob("*"))


@pytest.mark.parametrize(
    "how", ["behind", "the same", "unknown there", "dirty", "own commits", "elsewhere"]
)
def test_a_clean_worktree_that_is_behind_is_brought_to_where_origin_has_its_branch(
    real, tmp_path, how
):
    repo, tree, _ = _claimed(real, tmp_path)
    checkout = tmp_path / "checkout"
    if how != "unknown there":
        git(checkout, "switch", "-q", "-c", "afk/7")
        if how != "the same":
            (checkout / "review.txt").write_text("by a reviewer")
            git(checkout, "add", "-A")
            git(checkout, "commit", "-q", "-m", "fix: review")
        git(checkout, "push", "-q", "origin", "afk/7")
    if how == "dirty":
        (tree / "left.txt").write_text("work")
    elif how == "own commits":
        git(tree, "commit", "-q", "--allow-empty", "-m", "feat: own")
    elif how == "elsewhere":
        git(tree, "switch", "-q", "--detach")
    before = git(tree, "rev-parse", "HEAD")
    real.repos.fetch(repo)
    assert real.repos.forward(repo, tree, "afk/7") is (how == "behind")
    if how == "behind":
        assert git(tree, "rev-parse", "afk/7") == git(checkout, "rev-parse", "HEAD")
        assert (tree / "review.txt").read_text() == "by a reviewer"
        assert real.repos.standing(repo, tree).branch == "afk/7"
        assert not real.repos.is_dirty(tree)
    else:
        assert git(tree, "rev-parse", "HEAD") == before
        assert how != "dirty" or (tree / "left.txt").exists()


def test_a_first_clone_leaves_no_head_behind_that_could_be_a_claim(real, tmp_path):
    checkout = a_checkout(tmp_path / "checkout", tmp_path / "origin.git")
    git(checkout, "push", "-q", "origin", "main:afk/3", "main:feature")
    real.repos.create(tmp_path / "repo.git", str(tmp_path / "origin.git"))
    real.repos.fetch(tmp_path / "repo.git")
    assert git(tmp_path / "repo.git", "for-each-ref", "refs/heads") == ""
    assert real.repos.claims(tmp_path / "repo.git") == frozenset()


@pytest.mark.row("LAB-74", level="real")
def test_other_branches_are_no_claims(real, tmp_path):
    a_checkout(tmp_path / "checkout", tmp_path / "origin.git")
    repo = tmp_path / "repo.git"
    real.repos.create(repo, str(tmp_path / "origin.git"))
    real.repos.fetch(repo)
    for name in ("afk/x", "feature/7", "afk/8/x", "laboratory/x"):
        git(repo, "branch", name, "refs/remotes/origin/main")
    assert real.repos.claims(repo) == frozenset()
    git(repo, "branch", "afk/9", "refs/remotes/origin/main")
    assert real.repos.claims(repo) == {"9"}


def test_git_refuses_to_remove_a_dirty_worktree(real, tmp_path):
    repo, tree, _ = _claimed(real, tmp_path)
    (tree / "new.txt").write_text("not committed")
    assert real.repos.is_dirty(tree)
    with pytest.raises(SeamError):
        real.repos.remove_worktree(repo, tree)
    assert (tree / "new.txt").exists()


def test_a_roll_back_leaves_a_branch_that_moved_on(real, tmp_path):
    repo, tree, fork = _claimed(real, tmp_path)
    (tree / "new.txt").write_text("work")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "feat: work")
    real.repos.roll_back(repo, tree, "afk/7", fork)
    assert real.repos.claims(repo) == {"7"}


def test_changes_hold_committed_uncommitted_and_untracked_files_with_odd_names(real, tmp_path):
    repo, tree, fork = _claimed(real, tmp_path)
    (tree / "kept.txt").write_text("one\ntwo\n")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "feat: kept")
    (tree / "hello.txt").write_text("changed\n")
    (tree / "a\tb\nc.txt").write_text("odd")
    changes = {change.path: change for change in real.repos.changes(tree, fork)}
    assert (changes["kept.txt"].kind, changes["kept.txt"].added) == ("A", 2)
    assert (changes["hello.txt"].kind, changes["hello.txt"].removed) == ("M", 1)
    assert changes["a\tb\nc.txt"].kind == "?"
    assert {name: change.is_open for name, change in changes.items()} == {
        "kept.txt": False,
        "hello.txt": True,
        "a\tb\nc.txt": True,
    }
    patch = real.repos.patch(tree, fork, 10_000)
    assert "+two" in patch
    parts = patches.sections(patch)
    assert set(parts) == set(changes)
    assert [one.text for one in patches.lines(parts["a\tb\nc.txt"]) if one.kind == "plus"] == [
        "odd"
    ]
    progress = real.repos.progress(tree, fork)
    assert (progress.commits, progress.head) == (1, real.repos.glimpse(repo, "afk/7"))
    assert real.repos.subject(tree, progress.head) == "feat: kept"


def test_untracked_files_are_shown_as_far_as_they_are_text_and_fit(real, tmp_path):
    _, tree, fork = _claimed(real, tmp_path)
    (tree / "empty.txt").write_text("")
    (tree / "text.txt").write_text("one\ntwo")
    (tree / "picture.bin").write_bytes(b"\0\1")
    (tree / "long.txt").write_text("x" * 500_000)
    (tree / "link.txt").symlink_to("/etc/passwd")
    os.mkfifo(tree / "pipe")
    found = {one.path: one.added for one in real.repos.changes(tree, fork)}
    unknown = dict.fromkeys(("picture.bin", "long.txt", "link.txt"))
    assert found == {"empty.txt": 0, "text.txt": 2, **unknown}
    assert set(patches.sections(real.repos.patch(tree, fork, 10_000))) == {"text.txt"}


def test_before_the_first_commit_everything_counts_as_uncommitted(real, tmp_path):
    _, tree, fork = _claimed(real, tmp_path)
    git(tree, "symbolic-ref", "HEAD", "refs/heads/unborn")
    (tree / "hello.txt").write_text("changed\n")
    assert [one.is_open for one in real.repos.changes(tree, fork)] == [True]


@pytest.mark.parametrize("name", ["evil", "a=b", "Evil.x"])
@pytest.mark.parametrize("verb", ["clean", "process"])
@pytest.mark.parametrize("is_included", [False, True], ids=["own", "included"])
def test_no_filter_that_an_agent_names_runs_when_its_worktree_is_looked_at(
    real, tmp_path, name, verb, is_included
):
    repo, tree, fork = _claimed(real, tmp_path)
    proof, file = tmp_path / "proof", repo / "config"
    if is_included:
        file = tmp_path / "included"
        git(repo, "config", "include.path", str(file))
    git(repo, "config", "-f", str(file), f"filter.{name}.{verb}", f"touch {proof}; cat")
    git(repo, "config", "-f", str(file), f"filter.{name}.required", "true")
    (tree / ".gitattributes").write_text(f"* filter={name}\n")
    (tree / "hello.txt").write_text("changed\n")
    assert real.repos.is_dirty(tree)
    assert "hello.txt" in {change.path for change in real.repos.changes(tree, fork)}
    assert "+changed" in real.repos.patch(tree, fork, 10_000)
    with pytest.raises(SeamError):
        real.repos.remove_worktree(repo, tree)
    assert not real.repos.roll_back(repo, tree, "afk/7", fork)
    assert not proof.exists()


def test_no_filter_that_an_agent_left_behind_runs_at_the_next_start(real, tmp_path):
    checkout = a_checkout(tmp_path / "checkout", tmp_path / "origin.git")
    (checkout / ".gitattributes").write_text("* filter=evil\n")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "attributes")
    git(checkout, "push", "-q", "origin", "main")
    repo, proof = tmp_path / "repo.git", tmp_path / "proof"
    origin = str(tmp_path / "origin.git")
    real.repos.create(repo, origin)
    git(repo, "config", "filter.evil.smudge", f"touch {proof}; cat")
    git(repo, "config", f"remote.{origin}.uploadpack", f"touch {proof}; git-upload-pack")
    git(repo, "config", "remote.origin.uploadpack", f"touch {proof}; git-upload-pack")
    real.repos.fetch(repo)
    real.repos.fetch(repo, url=origin)
    assert real.repos.default_branch(repo, url=origin) == "main"
    assert real.repos.pushed(repo, "main") == real.repos.upstream(repo, "main")
    real.repos.add_worktree(repo, tmp_path / "tree", "afk/8", real.repos.upstream(repo, "main"))
    assert (tmp_path / "tree" / "hello.txt").exists()
    assert not proof.exists()


def test_a_filter_of_the_operator_goes_on_working(real, tmp_path):
    repo, tree, _ = _claimed(real, tmp_path)
    settings = tmp_path / "gitconfig"
    real.repos._git._env["GIT_CONFIG_GLOBAL"] = str(settings)
    git(repo, "config", "-f", str(settings), "filter.mine.clean", "tr a-z A-Z")
    (tree / ".gitattributes").write_text("loud.txt filter=mine\n")
    (tree / "loud.txt").write_text("LOUD\n")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "loud")
    (tree / "loud.txt").write_text("loud\n")
    assert not real.repos.is_dirty(tree)


@pytest.mark.row("LAB-60", level="real")
def test_a_hanging_remote_fails_at_the_limit_with_a_sentence(real, tmp_path):
    repo = tmp_path / "repo.git"
    real.repos.create(repo, "ssh://nobody@example.invalid/x.git")
    slow = tmp_path / "slow-ssh"
    slow.write_text("#!/bin/sh\nsleep 60\n")
    slow.chmod(0o755)
    real.repos._git._env["GIT_SSH_COMMAND"] = str(slow)
    real.git_timeout = 0.5
    with pytest.raises(SeamError, match=r"git .* no answer within 0.5 seconds"):
        real.repos.fetch(repo)


def test_a_fetch_waits_for_a_worktree_that_is_being_made_beside_it(real, tmp_path):
    """`git worktree add` first writes a HEAD that names nothing, and a fetch then refuses what came."""
    real.repos = LinkedWorktrees(real.repos._git)
    repo, tree, _ = _claimed(real, tmp_path)
    head = repo / "worktrees" / tree.name / "HEAD"
    whole, made = head.read_text(), tmp_path / "made"
    head.write_text("0" * 40 + "\n")
    # At the second try it is made.
    ssh = tmp_path / "ssh"
    ssh.write_text(
        "#!/bin/sh\n"
        f"[ ! -e '{made}' ] || echo '{whole.strip()}' >'{head}'\n"
        f": >'{made}'\n"
        "for asked; do :; done\n"
        'eval "exec $asked"\n'
    )
    ssh.chmod(0o755)
    real.repos._git._env["GIT_SSH_COMMAND"] = str(ssh)
    git(repo, "config", "remote.origin.url", f"ssh://nobody@example.invalid{tmp_path}/origin.git")
    moved = _moved_main(real, tmp_path, repo)
    assert made.exists()
    assert real.repos.upstream(repo, "main") == moved


@pytest.mark.row("X-05", level="real")
def test_a_token_reaches_git_by_a_helper_and_is_hidden_in_its_answers(real, tmp_path):
    """A git that prints its arguments and what the helper answers stands in for a forge."""
    from runs.machine.git import Git
    from runs.machine.worktrees import GitWorktrees

    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text(
        '#!/bin/sh\necho "$@" > "$OUT"; "$GIT_ASKPASS" Password: >> "$OUT"; echo "bad s3cret" >&2; exit 1\n'
    )
    fake.chmod(0o755)
    environ = {
        **real.environ,
        "PATH": f"{fake.parent}:{real.environ['PATH']}",
        "OUT": str(tmp_path / "out"),
    }
    repos = GitWorktrees(Git(environ, real.paths.bin, lambda: 10.0))
    import os

    old = os.environ["PATH"]
    os.environ["PATH"] = environ["PATH"]
    try:
        with pytest.raises(SeamError) as refused:
            repos.probe("https://forge.example/x.git", "s3cret")
    finally:
        os.environ["PATH"] = old
    assert "s3cret" not in str(refused.value)
    argv, answer = (tmp_path / "out").read_text().splitlines()
    assert "s3cret" not in argv
    assert answer == "s3cret"


@pytest.mark.row("X-05", level="real")
def test_a_token_is_handed_to_no_helper_that_could_keep_it(real, tmp_path):
    """git tells every helper what worked: one that stores would write the token down in the clear."""
    repo, proof, given = tmp_path / "repo.git", tmp_path / "proof", tmp_path / "given"
    real.repos.create(repo, "https://forge.example/x.git")
    git(repo, "config", "credential.helper", f"!touch {proof};")
    git(repo, "config", "credential.https://forge.example.helper", f"!touch {proof};")
    given.write_text("protocol=https\nhost=forge.example\n\n")
    done = real.repos._git(repo, "credential", "fill", token="s3cret", given=given)
    assert "password=s3cret" in done.stdout
    given.write_text(done.stdout + "\n")
    assert real.repos._git(repo, "credential", "approve", token="s3cret", given=given).status == 0
    assert not proof.exists()


def test_what_origin_has_is_told_by_the_exact_name_of_the_branch(real, tmp_path):
    checkout = a_checkout(tmp_path / "checkout", tmp_path / "origin.git")
    repo = tmp_path / "repo.git"
    real.repos.create(repo, str(tmp_path / "origin.git"))
    real.repos.fetch(repo)
    git(checkout, "push", "-q", "origin", "main:refs/heads/copy/refs/heads/afk/7")
    assert real.repos.pushed(repo, "afk/7") is None
    git(checkout, "push", "-q", "origin", "main:afk/7")
    assert real.repos.pushed(repo, "afk/7") == git(checkout, "rev-parse", "main")


def test_no_program_that_an_agent_names_in_the_repository_runs_on_our_behalf(real, tmp_path):
    a_checkout(tmp_path / "checkout", tmp_path / "origin.git")
    repo, tree = tmp_path / "repo.git", tmp_path / "tree"
    real.repos.create(repo, str(tmp_path / "origin.git"))
    real.repos.fetch(repo)
    evil = tmp_path / "evil"
    evil.write_text(f'#!/bin/sh\ntouch {tmp_path}/ran\ncat "$1"\n')
    evil.chmod(0o755)
    for name in ("core.fsmonitor", "diff.evil.textconv", "diff.evil.command", "diff.external"):
        git(repo, "config", name, str(evil))
    hook = repo / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(evil.read_text())
    hook.chmod(0o755)
    fork = real.repos.upstream(repo, "main")
    real.repos.add_worktree(repo, tree, "afk/7", fork)
    (tree / ".gitattributes").write_text("* diff=evil\n")
    (tree / "hello.txt").write_text("changed\n")
    assert real.repos.is_dirty(tree)
    assert real.repos.changes(tree, fork)
    assert "+changed" in real.repos.patch(tree, fork, 10_000)
    assert not (tmp_path / "ran").exists()


def test_a_repository_that_holds_branches_is_set_aside_with_its_worktrees_whole(real, tmp_path):
    repo, tree, _ = _claimed(real, tmp_path)
    (tree / "work.txt").write_text("work")
    real.repos.set_aside(repo, "20261121")
    assert not repo.exists()
    assert git(tmp_path / "repo.git.kept-20261121", "branch", "--list", "afk/7")
    assert "work.txt" in git(tree, "status", "--porcelain")


def test_a_huge_change_is_cut_while_it_is_read(real, tmp_path):
    _, tree, fork = _claimed(real, tmp_path)
    (tree / "a.txt").write_text("small\n")
    (tree / "b.txt").write_text("large\n" * 1_000_000)
    git(tree, "add", "-A")
    patch = real.repos.patch(tree, fork, 10_000)
    assert "+small" in patch
    assert len(patch) < 10_000
    assert "b.txt" not in patch


@pytest.mark.parametrize(
    "how", ["link removed", "repository of its own", "hidden", "unchanged", "staged"]
)
def test_a_roll_back_keeps_whatever_an_agent_left_in_the_last_moment(real, tmp_path, how):
    repo, tree, fork = _claimed(real, tmp_path)
    if how == "hidden":
        (repo / "info").mkdir(exist_ok=True)
        (repo / "info" / "exclude").write_text("left.txt\n")
    if how == "unchanged":
        git(tree, "update-index", "--assume-unchanged", "hello.txt")
        (tree / "hello.txt").write_text("changed\n")
    else:
        (tree / "left.txt").write_text("work")
    if how == "staged":
        git(tree, "add", "left.txt")
        (tree / "left.txt").unlink()
    if how in ("link removed", "repository of its own"):
        cut(tree)
    if how == "repository of its own":
        git(tree, "init", "-q", "-b", "afk/7")
    assert not real.repos.roll_back(repo, tree, "afk/7", fork)
    assert (tree / "hello.txt").exists()
    assert how in ("unchanged", "staged") or (tree / "left.txt").read_text() == "work"
    assert real.repos.claims(repo) == {"7"}


def test_a_roll_back_removes_what_was_checked_out_and_nothing_more(real, tmp_path):
    repo, tree, fork = _claimed(real, tmp_path)
    cut(tree)
    (tree / "hello.txt").unlink()
    assert real.repos.roll_back(repo, tree, "afk/7", fork)
    assert not tree.exists()
    assert real.repos.claims(repo) == frozenset()


@pytest.mark.parametrize("where", ["info/exclude", "core.excludesFile"])
def test_what_another_run_has_git_ignore_counts_all_the_same(real, tmp_path, where):
    repo, tree, _ = _claimed(real, tmp_path)
    if where == "info/exclude":
        (repo / "info").mkdir(exist_ok=True)
        (repo / "info" / "exclude").write_text("*.txt\n")
    else:
        (tmp_path / "ignored").write_text("*.txt\n")
        git(repo, "config", "core.excludesFile", str(tmp_path / "ignored"))
    assert not real.repos.is_dirty(tree)
    (tree / "work.txt").write_text("work")
    assert real.repos.is_dirty(tree)
    assert "work.txt" in {change.path for change in real.repos.changes(tree, "HEAD")}
    (tree / "work.txt").unlink()
    (tree / ".gitignore").write_text("build/\n.gitignore\n")
    (tree / "build").mkdir()
    (tree / "build" / "big.o").write_text("ignored")
    assert not real.repos.is_dirty(tree)


def _moved_main(real, tmp_path, repo):  # type: ignore[no-untyped-def]
    """origin has a commit more on main, which is fetched."""
    checkout = tmp_path / "checkout"
    (checkout / "new.txt").write_text("from main")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "feat: new")
    git(checkout, "push", "-q", "origin", "main")
    real.repos.fetch(repo)
    return git(checkout, "rev-parse", "HEAD")


@pytest.mark.row("RALPH-67", "RALPH-75", level="real")
@pytest.mark.parametrize("how", ["clean", "dirty", "rebase"])
def test_a_worktree_is_switched_to_a_new_branch_and_cleaned(real, tmp_path, how):
    repo, tree, _ = _claimed(real, tmp_path)
    fresh = _moved_main(real, tmp_path, repo)
    (tree / ".gitignore").write_text("kept/\n")
    (tree / "done.txt").write_text("done")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "feat: done")
    done = git(tree, "rev-parse", "HEAD")
    if how == "dirty":
        (tree / "done.txt").write_text("changed")
        (tree / "more").mkdir()
        (tree / "more" / "new.txt").write_text("new")
    elif how == "rebase":
        (tree / "new.txt").write_text("in the way of main")
        git(tree, "add", "-A")
        git(tree, "commit", "-q", "-m", "feat: other")
        done = git(tree, "rev-parse", "HEAD")
        subprocess.run(["git", "-C", str(tree), "rebase", "-q", fresh], check=False)
        assert "rebase in progress" in git(tree, "status")
    assert real.repos.switch(repo, tree, "afk/8", fresh, clean=True) is True
    assert git(tree, "status", "--porcelain") == ""
    assert "rebase in progress" not in git(tree, "status")
    assert git(tree, "rev-parse", "HEAD") == fresh
    assert real.repos.standing(repo, tree).branch == "afk/8"
    assert git(tree, "rev-parse", "afk/7") == done, "the branch before is as it was"
    assert real.repos.claims(repo) == {"7", "8"}


@pytest.mark.row("RALPH-65", "RALPH-74", level="real")
@pytest.mark.parametrize("is_in_the_way", [False, True])
def test_without_cleaning_changes_are_carried_over(real, tmp_path, is_in_the_way):
    repo, tree, _ = _claimed(real, tmp_path)
    fresh = _moved_main(real, tmp_path, repo)
    begun = git(tree, "rev-parse", "HEAD")
    name = "new.txt" if is_in_the_way else "left.txt"
    (tree / name).write_text("left over")
    assert real.repos.switch(repo, tree, "afk/8", fresh, clean=False) is not is_in_the_way
    assert (tree / name).read_text() == "left over"
    assert git(tree, "rev-parse", "HEAD") == (begun if is_in_the_way else fresh)
    assert real.repos.standing(repo, tree).branch == "afk/8"


def test_git_says_who_commits_or_that_it_knows_nobody(real, tmp_path):
    repo, _, _ = _claimed(real, tmp_path)
    names = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")
    for name in (*names, "EMAIL"):
        real.repos._git._env.pop(name, None)
    git(repo, "config", "user.useConfigOnly", "true")  # no guess from the name of this machine
    assert real.repos.committer(repo) is None
    git(repo, "config", "user.name", "Anna > Bert")
    git(repo, "config", "user.email", "anna@example.com")
    assert real.repos.committer(repo) == "Anna  Bert <anna@example.com>"
