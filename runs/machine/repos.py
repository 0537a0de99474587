"""Reference repositories: clone, fetch, claims, worktrees made and undone."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from runs.core import naming
from runs.core.ports import SeamError, Taken, UnknownCommitError
from runs.machine import files, shell, worktree_links
from runs.machine.git import CHECKOUT, QUICK, Git, failed
from runs.machine.run_repositories import LENT, ORIGIN, TAGS, GitRunRepositories, taken
from trackers.keys import KeyRule

PROBE = 20.0
SIGNING = 10.0
# A program that asks for a passphrase finds neither a window nor a terminal to do so.
_NO_SCREEN = {
    **dict.fromkeys(("DISPLAY", "WAYLAND_DISPLAY", "GPG_TTY"), ""),
    "SSH_ASKPASS_REQUIRE": "never",
}
FETCHES = 5
BREATH = 0.03  # seconds; each further try waits as much longer
# What somebody else does in the repository in that moment: brings the same branch up to date, or
# makes a worktree, whose HEAD names nothing until git has written it.
_PASSING = ("cannot lock ref", "bad object worktrees/")
_NO_COMMIT = "Not a valid commit name {}"
_ID = re.compile(r"[0-9a-f]{4,64}")
BRANCH_CHARACTERS = 200  # as many as a project's row keeps
# The program on the other side is git's own, whatever a repository's settings say.
_ITS_OWN = ("--upload-pack=git-upload-pack",)
_WHICH = ("ls-remote", *_ITS_OWN, "--symref")
# What a reference repository is tidied by is the sweep; git would start a program to find that out.
_FETCHED = ("--prune", "--no-tags", "--no-auto-maintenance")
_DIVERGED = "the checkout and labsite's own origin have gone different ways; labsite's was used"
_HEADS = "+refs/heads/*:refs/remotes/origin/*"
# Not under their own name, where a tag is an agent's: runs have them as tags (`run_repositories`).
_TAGS = f"+refs/tags/*:{TAGS}*"
_ALL = ("refs/heads/*:refs/heads/*", "refs/tags/*:refs/tags/*")
# What is there once more after each fetch, and no work.
_ORIGINS = ("refs/remotes/", TAGS, LENT)
# Files that git does not know and that the project's own .gitignore files do not name.
OTHERS = ("ls-files", "--others", "--exclude-per-directory=.gitignore", "-z")
CLOSED_FOLDER = "could not open directory"  # git's warning; it passes over what is in there


class GitRepos(GitRunRepositories):
    """`Repos` (core/ports.py), except for what it asks of worktrees (`GitWorktrees`)."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._urls = {}

    def create(self, repo: Path, url: str, token: str = "") -> None:
        """An empty bare repository; nothing of origin ever lands in its `refs/heads`."""
        repo.parent.mkdir(parents=True, exist_ok=True)
        self._git.ask(repo.parent, "init", "-q", "--bare", "--initial-branch=none", "--", str(repo))
        self._git.ask(repo, "config", "remote.origin.url", url)
        self._git.ask(repo, "config", "remote.origin.fetch", _HEADS)
        self._git.ask(repo, "config", "gc.auto", "0")
        self._git.ask(repo, "config", "push.autoSetupRemote", "true")

    def create_origin(self, origin: Path, source: Path) -> None:
        """Origin of a project whose path has none; it starts with all heads of the path."""
        origin.parent.mkdir(parents=True, exist_ok=True)
        self._git.ask(origin.parent, "init", "-q", "--bare", "--", str(origin))
        self._git.ask(origin, "fetch", "-q", "--no-tags", str(source), *_ALL)
        head = self._git(source, "symbolic-ref", "-q", "HEAD").stdout.strip()
        if head:
            self._git.ask(origin, "symbolic-ref", "HEAD", head)

    def found(self, folder: Path, message: str, is_empty: bool = False) -> None:
        """Whoever the machine's git user is, the first commit is the product's."""
        self._git.ask(folder, "init", "-q", "--initial-branch=main", timeout=QUICK)
        self._git.ask(folder, "add", "--all", timeout=QUICK)
        even = ("--allow-empty",) if is_empty else ()
        argv = ("-c", "commit.gpgsign=false", "commit", "-q", *even, "-m", message)
        done = self._git(folder, *argv, timeout=QUICK, env=naming.COMMITTER_ENV)
        if done.status != 0:
            raise failed("commit", done)

    def refill(self, origin: Path, source: Path) -> str:
        """Fast-forwards only: what the operator rewrote is reported and not forced."""
        done = self._git(origin, "fetch", "--no-tags", str(source), *_ALL)
        if done.status == 0:
            return ""
        if "rejected" in done.stderr:
            tip = self._git.ask(source, "rev-parse", "HEAD", timeout=QUICK).strip()
            held = self._git(origin, "merge-base", "--is-ancestor", tip, "HEAD", timeout=QUICK)
            return "" if held.status == 0 else _DIVERGED
        raise failed("fetch", done)

    def fetch(
        self,
        repo: Path,
        token: str = "",
        progress: Callable[[str], None] | None = None,
        timeout: float | None = None,
        url: str = "origin",
    ) -> None:
        flags = ("--progress",) if progress else ("-q",)
        for tried in range(FETCHES):
            time.sleep(tried * BREATH)
            done = self._git(
                repo,
                *("fetch", *flags, *_ITS_OWN, *_FETCHED, "--", url, _HEADS, _TAGS),
                token=token,
                timeout=timeout,
                on_progress=progress,
            )
            if done.status == 0 or not any(what in done.stderr for what in _PASSING):
                break
        if done.status != 0:
            raise failed("fetch", done, token)

    def fetch_default(self, repo: Path, token: str = "", url: str = "origin") -> str:
        """Both at once, since each waits for the other side."""
        limit = self._git.timeout()  # which asks the database, here once for both threads
        argv = (*_WHICH, "--", url, "HEAD")
        with ThreadPoolExecutor(1, "which-branch") as beside:
            asked = beside.submit(self._git, repo, *argv, token=token, timeout=limit)
            self.fetch(repo, token, url=url, timeout=limit)
            return self._default_of(repo, asked.result(), token)

    def committer(self, repo: Path) -> str | None:
        done = self._git(repo, "var", "GIT_COMMITTER_IDENT", timeout=QUICK)
        return done.stdout.rpartition(">")[0] + ">" if done.status == 0 else None

    def why_unsigned(self, env: Mapping[str, str]) -> str:
        wanted = ("config", "--type=bool", "--get-regexp", r"^(commit|tag)\.gpgsign$")
        asked = self._git(Path("/"), *wanted, timeout=QUICK, env=env)
        if asked.status not in (0, 1):  # 1: there is none
            raise failed("config", asked)
        settings = dict(line.split(" ", 1) for line in asked.stdout.splitlines())
        if "true" not in settings.values():
            return ""
        with tempfile.TemporaryDirectory(prefix="labsite-") as scratch:
            folder = Path(scratch)
            self._git.ask(folder, "init", "-q", "--bare", timeout=QUICK)
            tree = self._git.ask(folder, "mktree", timeout=QUICK).strip()
            argv = ("commit-tree", "-S", "-m", "a commit that nobody keeps", tree)
            try:
                done = self._git(folder, *argv, timeout=SIGNING, env={**env, **_NO_SCREEN})
            except SeamError:
                return f"it was not done after {SIGNING:g} seconds"
        return "" if done.status == 0 else str(failed("commit-tree", done))

    def hooks_path(self) -> str:
        argv = ("config", "--global", "--type=path", "--get", "core.hooksPath")
        return self._git(Path("/"), *argv, timeout=QUICK).stdout.strip()

    def probe(self, url: str, token: str = "") -> str:
        text = self._git.ask(
            Path("/"), "ls-remote", "--symref", "--", url, "HEAD", token=token, timeout=PROBE
        )
        for line in text.splitlines():
            if line.startswith("ref: refs/heads/"):
                return line.split("\t")[0].removeprefix("ref: refs/heads/")
        raise SeamError("the repository is empty: it has no commit on a default branch")

    def try_push(self, url: str, token: str = "") -> None:
        """A dry run stops after the server let it in for writing and said what it has."""
        with tempfile.TemporaryDirectory(prefix="labsite-") as scratch:
            folder = Path(scratch)
            self.found(folder, "a commit that is never pushed", is_empty=True)
            trial = f"HEAD:refs/heads/labsite-connection-test-{os.getpid()}"
            argv = ("push", "--dry-run", "-q", "--", url, trial)
            self._git.ask(folder, *argv, token=token, timeout=PROBE)

    def set_aside(
        self, repo: Path, stamp: str, always: bool = False, trees: Sequence[Path] = ()
    ) -> None:
        """What agents left may be the only copy of their work, so none of it is deleted here.

        That is any branch, tag, stash or rescue, and worktrees elsewhere, which stand on commits.
        """
        if not repo.exists():
            return
        refs = self._git(repo, "for-each-ref", "--format=%(refname)", timeout=QUICK).stdout
        has_work = any(not ref.startswith(_ORIGINS) for ref in refs.splitlines())
        there = worktree_links.registered(repo)
        if has_work or always or trees or there or any((repo / "worktrees").glob("*")):
            kept = repo.with_name(f"{repo.name}.kept-{stamp}")
            listed = self._git(repo, "worktree", "list", "--porcelain", timeout=QUICK).stdout
            repo.rename(kept)
            paths = [line[9:] for line in listed.splitlines() if line.startswith("worktree ")]
            self._git(kept, "worktree", "repair", *paths[1:], *map(str, trees), timeout=QUICK)
            self._follow(kept, [*(path for _, path in there), *trees])
        else:
            shutil.rmtree(repo, ignore_errors=True)

    def _follow(self, repo: Path, paths: Sequence[Path]) -> None:
        """Let runs' own repositories borrow from where the shared one lies now."""
        by_name = {note.file.name: note for note in worktree_links.notes(repo)}
        for path in paths:
            own = worktree_links.own_git(path)
            note = by_name.get(worktree_links.mark_of(own)) if own else None
            if own is None or note is None:
                continue
            try:
                (own / "objects/info/alternates").write_text(f"{(repo / 'objects').resolve()}\n")
                for branch, pushed in worktree_links.claims_of(repo, note.path):
                    worktree_links.write_claim(repo, branch, path, pushed)
                worktree_links.move_note(note, path)
            except OSError as error:
                raise SeamError(f"{path} cannot be written: {error.strerror}") from error

    def _check_removable(self, repo: Path, path: Path) -> None:
        """As git checks a worktree before it removes it. Raises SeamError."""
        if worktree_links.admin_of(repo, path) is None:
            raise SeamError(f"{path} is not the repository any more that was made there")
        if self._changes_in(path):
            raise SeamError(f"{path} contains modified or untracked files")
        self._bring_of(repo, path)
        if self._lost(repo, path).ends:
            raise SeamError(f"{path} has commits that are nowhere else, such as stashed ones")

    def _changes_in(self, path: Path) -> bool:
        """Whether anything is not committed.

        What is ignored is a matter of the project's own .gitignore files: an agent could hide
        files by its other lists, and in linked worktrees those of another.
        """
        argv = ("status", "--porcelain", "--untracked-files=no")
        if self._git.ask(path, *argv, timeout=QUICK, looks_at_files=True).strip():
            return True
        names, has_closed = self._list_others(path)
        return bool(names) or has_closed  # nobody knows what a closed folder holds

    def _others(self, path: Path) -> list[str]:
        """Return the files that git does not know, less those that labsite placed there."""
        return self._list_others(path)[0]

    def _list_others(self, path: Path) -> tuple[list[str], bool]:
        """Return these files, and whether there is a folder that nobody may read. Raises SeamError."""
        listed = self._git(path, *OTHERS, timeout=QUICK)
        if listed.status != 0:
            raise failed("ls-files", listed)
        repo = worktree_links.shared_of(path)
        placed = worktree_links.placed_in(repo, path).names if repo is not None else frozenset()
        names = [name for name in listed.stdout.split("\0") if name and name not in placed]
        return names, CLOSED_FOLDER in listed.stderr

    def default_branch(self, repo: Path, token: str = "", url: str = "origin") -> str:
        done = self._git(repo, *_WHICH, "--", url, "HEAD", token=token)
        return self._default_of(repo, done, token)

    def _default_of(self, repo: Path, done: shell.Finished, token: str) -> str:
        """The branch that origin's HEAD names, out of what it said of it."""
        if done.status != 0:
            raise failed("ls-remote", done, token)
        for line in done.stdout.splitlines():
            if line.startswith("ref: refs/heads/"):
                branch = line.split("\t")[0].removeprefix("ref: refs/heads/")
                if len(branch) > BRANCH_CHARACTERS:
                    raise SeamError(f"its default branch has a name of {len(branch)} characters")
                if self.ref(repo, f"refs/remotes/origin/{branch}"):
                    return branch
        raise SeamError("the repository has no commit on its default branch")

    def remote_url(self, path: Path) -> str | None:
        self._git.ask(path, "rev-parse", "--git-dir", timeout=QUICK)
        done = self._git(path, "config", "--get", "remote.origin.url", timeout=QUICK)
        return done.stdout.strip() or None

    def claims(
        self, repo: Path, keys: KeyRule = KeyRule.NUMBER, prefix: str = naming.BRANCH_PREFIX
    ) -> frozenset[str]:
        text = self._git.ask(
            repo,
            "for-each-ref",
            "--format=%(refname:strip=2)",
            f"refs/heads/{naming.refs_under(prefix)}",
            timeout=QUICK,
        )
        found = (naming.claimed_key(line, keys, (prefix,)) for line in text.splitlines())
        return frozenset(key for key in found if key)

    def upstream(self, repo: Path, branch: str) -> str:
        tip = self.ref(repo, f"refs/remotes/origin/{branch}")
        if tip is None:
            raise SeamError(f"origin has no branch {branch}")
        return tip

    def add_worktree(
        self, repo: Path, path: Path, branch: str, commit: str, folders: Sequence[str] = ()
    ) -> None:
        ref = f"refs/heads/{branch}"
        if path.exists() or self.ref(repo, ref):
            raise Taken(taken(path, branch))
        if self.makes_own:
            self._add_own(repo, path, branch, commit, folders)
        else:
            self._add_linked(repo, path, branch, commit)

    def _add_linked(self, repo: Path, path: Path, branch: str, commit: str) -> None:
        """`worktree add -b` makes both or neither; its lock-step is what makes the claim exclusive."""
        path.parent.mkdir(parents=True, exist_ok=True)
        worktree_links.forget_placed(repo, path)
        done = self._git(
            repo,
            *("worktree", "add", "-q", "--no-track", "-b", branch, "--", str(path), commit),
            timeout=CHECKOUT,
            looks_at_files=True,
        )
        if done.status == 0:
            return
        if "already exists" in done.stderr:
            raise Taken(taken(path, branch))
        if files.is_full(repo):  # git itself only says what it could not write
            raise SeamError(f"the disk is full. {failed('worktree', done)}")
        raise failed("worktree", done)

    def has(self, path: Path) -> bool:
        return path.is_dir()

    def remove_worktree(self, repo: Path, path: Path) -> None:
        if not path.exists():
            worktree_links.forget(repo, path)
            self._git.ask(repo, "worktree", "prune", timeout=QUICK)
            return
        if worktree_links.note_of(repo, path) is not None:
            self._check_removable(repo, path)
            self._erase(repo, path)
            return
        admin = worktree_links.admin_of(repo, path)
        done = self._git(repo, "worktree", "remove", "--", str(path), looks_at_files=True)
        if done.status == 0:
            return
        if admin is None or admin.exists():
            raise failed("worktree", done)
        files.remove_tree(path)  # git found it clean, and could not remove all of it

    def roll_back(self, repo: Path, path: Path, branch: str, fork_point: str) -> bool:
        """Git's own lock of a half-made worktree is opened; anything a person or agent made stays."""
        note = worktree_links.note_of(repo, path)
        is_whole = note is None or note.is_made
        if path.exists() and is_whole and not self._is_untouched(repo, path, fork_point):
            return False
        self._git(repo, "worktree", "unlock", str(path), timeout=QUICK)
        if note is not None:
            self._erase(repo, path)
        elif path.exists():
            self._git(repo, "worktree", "remove", "--force", "--", str(path))
            files.remove_tree(path)
        self._git.ask(repo, "worktree", "prune", timeout=QUICK)
        tip = self.tip(repo, f"refs/heads/{branch}")
        if tip and tip == fork_point:
            self._git.ask(repo, "update-ref", "-d", f"refs/heads/{branch}", tip, timeout=QUICK)
            return True
        return tip is None

    def _is_untouched(self, repo: Path, path: Path, fork_point: str) -> bool:
        """Whether a worktree holds nothing but what was checked out; files of it may be missing.

        Looked at with the reference repository's own eyes, since a program that ran there may have
        removed the link to it, or may have changed what its index says of files.
        """
        link = path / ".git"
        is_own = worktree_links.note_of(repo, path) is not None
        if link.is_dir() and worktree_links.admin_of(repo, path) is None:
            return False  # a repository that somebody made there, which may hold commits
        if is_own and link.exists() and self._lost(repo, path).ends:
            return False
        head = self._git(path, "rev-parse", "HEAD", timeout=QUICK)
        if link.exists() and head.status == 0 and head.stdout.strip() != fork_point:
            return False
        if link.exists() and head.status == 0:
            staged = ("diff", "--cached", "--no-ext-diff", "--name-status", fork_point)
            if not self._shows_only_losses(path, staged, None, {}):
                return False
        env = {"GIT_DIR": str(repo), "GIT_WORK_TREE": str(path)}
        placed = worktree_links.placed_in(repo, path).names
        with tempfile.TemporaryDirectory(prefix="labsite-") as scratch:
            index = Path(scratch) / "index"
            for argv in (
                ("read-tree", fork_point),
                ("diff", "--no-ext-diff", "--no-textconv", "--name-status"),
                OTHERS,
            ):
                if not self._shows_only_losses(repo, argv, index, env, placed):
                    return False
        return True

    def _shows_only_losses(
        self,
        folder: Path,
        argv: Sequence[str],
        index: Path | None,
        env: Mapping[str, str],
        placed: Collection[str] = (),
    ) -> bool:
        """Whether git lists nothing but missing files and those that labsite placed.

        What takes too long to tell is kept.
        """
        try:
            done = self._git(
                folder, *argv, index=index, env=env, looks_at_files=True, timeout=QUICK
            )
        except SeamError:
            return False
        if done.status != 0:
            raise failed(argv[0], done)
        if CLOSED_FOLDER in done.stderr:
            return False
        lines = done.stdout.replace("\0", "\n").splitlines()
        return all(line.startswith("D\t") or line in placed for line in lines)

    def tip(self, repo: Path, ref: str) -> str | None:
        """The commit of a ref, None when there is no such ref.

        What a run made since may be meant by an id, or by another name than a ref's own.
        """
        is_id = _ID.fullmatch(ref) is not None
        if is_id or ref.startswith("refs/"):
            self._bring(repo, ref)
        else:
            self._bring_all(repo)
        found = self._parsed(repo, ref)
        if found is None and is_id:
            self._bring_all(repo)
            found = self._parsed(repo, ref)
        return found

    def _parsed(self, repo: Path, ref: str) -> str | None:
        done = self._git(repo, "rev-parse", "--verify", "-q", f"{ref}^{{commit}}", timeout=QUICK)
        return done.stdout.strip() or None

    def ref(self, repo: Path, name: str) -> str | None:
        self._bring(repo, name)
        found = worktree_links.ref_in_files(repo, name)
        return self.tip(repo, name) if found is worktree_links.UNSURE else found

    def pushed(self, repo: Path, branch: str, token: str = "", url: str = "origin") -> str | None:
        text = self._git.ask(
            repo,
            *("ls-remote", *_ITS_OWN, "--heads", "--", url, f"refs/heads/{branch}"),
            token=token,
            timeout=QUICK,
        )
        for line in text.splitlines():
            commit, _, name = line.partition("\t")
            if name == f"refs/heads/{branch}":  # git also lists names that merely end so
                return commit
        return None

    def is_ahead(self, repo: Path, commit: str, base: str) -> bool:
        """Exit 0: origin's base holds the commit already; 1: it does not; else unknown."""
        self._bring(repo, f"{ORIGIN}{base}")
        done = self._git(
            repo,
            "merge-base",
            "--is-ancestor",
            commit,
            f"refs/remotes/origin/{base}",
            timeout=QUICK,
        )
        if done.status in (0, 1):
            return done.status == 1
        if _NO_COMMIT.format(commit) in done.stderr:
            raise UnknownCommitError(str(failed("merge-base", done)))
        raise failed("merge-base", done)
