"""Rescue refs: the whole state of a branch and its worktree as one commit, and back again.

The commit's tree is everything on disk that is not ignored. Its parents are the worktree's head,
a commit of what was staged, and the branch's tip, so that git throws none of them away. Everything
is made with an index of our own; neither the worktree nor its index is touched.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from runs.domain.keeping import RESCUES, Snapshot
from runs.domain.ports import SeamError, Taken
from runs.outside import shell
from runs.outside.git import QUICK, Git, failed
from runs.outside.repos import OTHERS

_WHO = ("-c", "user.name=labsite", "-c", "user.email=labsite@localhost")
_PLAIN = (
    "-c",
    "core.autocrlf=false",
    "-c",
    "core.safecrlf=false",
    "-c",
    "advice.addEmbeddedRepo=false",
)
_FORMAT = "--format=%(refname)%00%(objectname)%00%(committerdate:unix)%00%(contents:body)%01"
_SUBMODULE = "160000"


class GitRescues:
    """The part of `Keeping` (domain/keeping.py) that stores states and puts them back."""

    _git: Git

    def snapshot(self, repo: Path, tip: str, path: Path | None) -> Snapshot:
        if path is None or not path.exists():
            tree = self._tree(repo, tip)
            return Snapshot(tip, tip, tree, tree, is_dirty=False, has_worktree=False)
        if not (path / ".git").exists():
            return self._unlinked(repo, tip, path)
        if (path / ".git").is_dir():
            raise SeamError(
                f"the worktree {path} was made a repository of its own, whose commits a rescue "
                "cannot hold. Move it away, then try again"
            )
        head = self._git.ask(path, "rev-parse", "--verify", "HEAD", timeout=QUICK).strip()
        base = self._tree(repo, head)
        plain = self._plain(path)
        with _scratch() as scratch:
            index = self._staged(path, head, scratch / "staged", plain) or base
            files = self._files(path, head, scratch / "files", plain)
        return Snapshot(
            tip, head, index, files, is_dirty={index, files} != {base}, has_worktree=True
        )

    def _unlinked(self, repo: Path, tip: str, path: Path) -> Snapshot:
        """A worktree whose link to its repository was removed: its files, as work upon the branch."""
        base = self._tree(repo, tip)
        env = {"GIT_DIR": str(repo), "GIT_WORK_TREE": str(path)}
        with _scratch() as scratch:
            index = scratch / "files"
            plain = self._plain(repo)
            self._ask(repo, "read-tree", tip, index=index, env=env)
            self._ask(repo, *plain, "add", "--all", "--", ".", index=index, env=env)
            self._add_hidden(repo, plain, index, env)
            self._refuse_inner(path, index, repo, env)
            files = self._ask(repo, *plain, "write-tree", index=index, env=env).strip()
        return Snapshot(tip, tip, base, files, is_dirty=files != base, has_worktree=True)

    def _add_hidden(
        self, folder: Path, plain: Sequence[str], index: Path, env: Mapping[str, str]
    ) -> None:
        """Take in what only lists of the whole repository ignore, and not the project's own files.

        Those lists are shared by all worktrees, so another run may have written them.
        """
        names = self._ask(folder, *plain, *OTHERS, index=index, env=env)
        if not names:
            return
        listed = index.with_name("hidden")
        # What is no UTF-8 was read with its bytes spelled out.
        raw = re.sub(rb"\\x([0-9a-f]{2})", lambda one: bytes([int(one[1], 16)]), names.encode())
        listed.write_bytes(raw)
        argv = ("add", "--force", f"--pathspec-from-file={listed}", "--pathspec-file-nul")
        self._ask(folder, *plain, *argv, index=index, env={**env, "GIT_LITERAL_PATHSPECS": "1"})

    def _ask(self, folder: Path, *argv: str, index: Path, env: Mapping[str, str]) -> str:
        done = self._git(folder, *argv, index=index, env=env, looks_at_files=True)
        if done.status != 0:
            raise failed(next(word for word in argv if "=" not in word and word != "-c"), done)
        return done.stdout

    def keep(self, repo: Path, ref: str, state: Snapshot, notes: Mapping[str, str]) -> str:
        """The ref is made last and never moved, so it holds everything or is not there."""
        staged = self._commit(repo, state.index, [state.head], "staged\n")
        told = {**notes, "tip": state.tip, "head": state.head, "index": state.index}
        body = "".join(f"{name}: {' '.join(text.split())}\n" for name, text in told.items())
        parents = list(dict.fromkeys([state.head, staged, state.tip]))
        kept = self._commit(repo, state.files, parents, f"labsite rescue\n\n{body}")
        self._git.ask(repo, "update-ref", ref, kept, "0" * len(kept), timeout=QUICK)
        return kept

    def rescues(self, repo: Path) -> Mapping[str, Mapping[str, str]]:
        text = self._git.ask(repo, "for-each-ref", _FORMAT, RESCUES, timeout=QUICK)
        found: dict[str, Mapping[str, str]] = {}
        for part in text.split("\x01"):
            ref, *rest = part.strip("\n").split("\0")
            if len(rest) == 3:
                commit, at, body = rest
                lines = (line.partition(": ") for line in body.splitlines())
                found[ref] = {
                    "at": at,
                    **{name: value for name, mark, value in lines if mark},
                    "commit": commit,
                }
        return found

    def drop(self, repo: Path, ref: str) -> None:
        if not ref.startswith(RESCUES):
            raise SeamError(f"{ref} is no rescue ref")
        self._git.ask(repo, "update-ref", "-d", ref, timeout=QUICK)

    def put_back(self, repo: Path, ref: str, branch: str, path: Path | None) -> None:
        notes = self.rescues(repo).get(ref)
        if notes is None:
            raise SeamError("its rescue ref is gone, so there is nothing to restore from")
        if path is not None and path.exists():
            raise Taken(f"the folder {path} is there already")
        tip, head = notes["tip"], notes["head"]
        made = self._git(
            repo, "update-ref", f"refs/heads/{branch}", tip, "0" * len(tip), timeout=QUICK
        )
        if made.status != 0:
            if "exists" in made.stderr:
                raise Taken(f"the branch {branch} is there already")
            raise failed("update-ref", made)
        if path is None:
            return
        try:
            self._lay_out(repo, path, branch if head == tip else head, notes)
        except SeamError:
            self._undo(repo, path, branch, tip)
            raise

    def _lay_out(self, repo: Path, path: Path, at: str, notes: Mapping[str, str]) -> None:
        """First everything as if it were staged, which writes the files; then the index of then."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SeamError(f"{path.parent} cannot be made: {error.strerror}") from error
        plain = self._plain(repo)
        where = (str(path), at) if at != notes["head"] else ("--detach", str(path), at)
        self._git.ask(repo, "worktree", "add", "-q", "--no-checkout", *where)
        self._git.ask(path, *plain, "read-tree", "--reset", "-u", notes["commit"])
        self._git.ask(path, *plain, "read-tree", notes["index"])
        self._git(path, *plain, "update-index", "-q", "--refresh")

    def _undo(self, repo: Path, path: Path, branch: str, tip: str) -> None:
        """Only what was just made: the ref holds all of it."""
        self._git(repo, "worktree", "remove", "--force", "--", str(path))
        shutil.rmtree(path, ignore_errors=True)
        self._git(repo, "worktree", "prune", timeout=QUICK)
        self._git(repo, "update-ref", "-d", f"refs/heads/{branch}", tip, timeout=QUICK)

    def _tree(self, repo: Path, commit: str) -> str:
        text = self._git.ask(repo, "rev-parse", "--verify", f"{commit}^{{tree}}", timeout=QUICK)
        return text.strip()

    def _staged(self, path: Path, head: str, index: Path, plain: Sequence[str]) -> str:
        """The tree of what is staged; empty while a merge is unfinished, which no tree can hold."""
        self._begin(path, head, index)
        done = self._git(path, *plain, "write-tree", index=index)
        return done.stdout.strip() if done.status == 0 else ""

    def _files(self, path: Path, head: str, index: Path, plain: Sequence[str]) -> str:
        """The tree of everything on disk that is not ignored.

        What an index calls unchanged without a look is looked at nevertheless.
        """
        self._begin(path, head, index)
        flags = self._git(path, *plain, "ls-files", "-v", index=index)
        if flags.status != 0 or any(not line.startswith("H") for line in flags.stdout.splitlines()):
            self._fresh(path, head, index)
        done = self._git(path, *plain, "add", "--all", "--", ".", index=index, looks_at_files=True)
        if done.status != 0:
            raise failed("add", done)
        self._add_hidden(path, plain, index, {})
        self._refuse_inner(path, index)
        done = self._git(path, *plain, "write-tree", index=index)
        if done.status != 0:
            raise failed("write-tree", done)
        return done.stdout.strip()

    def _begin(self, path: Path, head: str, index: Path) -> None:
        """A copy of the worktree's index knows what is unchanged, so only the rest is read."""
        git_dir = self._git.ask(path, "rev-parse", "--absolute-git-dir", timeout=QUICK).strip()
        try:
            shutil.copyfile(Path(git_dir) / "index", index)
        except OSError:
            self._fresh(path, head, index)

    def _fresh(self, path: Path, head: str, index: Path) -> None:
        index.unlink(missing_ok=True)
        done = self._git(path, "read-tree", head, index=index)
        if done.status != 0:
            raise failed("read-tree", done)

    def _refuse_inner(
        self,
        path: Path,
        index: Path,
        folder: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """A repository inside is only named by a tree, not held, so its work would be lost."""
        done = self._git(folder or path, "ls-files", "-s", "-z", index=index, env=env)
        if done.status != 0:
            raise failed("ls-files", done)
        for line in done.stdout.split("\0"):
            about, _, name = line.partition("\t")
            if about.startswith(_SUBMODULE) and (path / name / ".git").exists():
                raise SeamError(
                    f"{name} in the worktree is a git repository of its own, which a rescue cannot "
                    "hold. Move it away or remove it, then try again"
                )

    def _plain(self, folder: Path) -> tuple[str, ...]:
        """Settings under which no filter that a repository names runs, and bytes stay as they are."""
        done = self._git(
            folder, "config", "--name-only", "--get-regexp", r"^filter\..*", timeout=QUICK
        )
        names = {line.rpartition(".")[0] for line in done.stdout.splitlines()}
        off = [
            f"{name}.{verb}=" for name in sorted(names) for verb in ("clean", "smudge", "process")
        ]
        off += [f"{name}.required=false" for name in sorted(names)]
        return (*_PLAIN, *(word for one in off for word in ("-c", one)))

    def _commit(self, repo: Path, tree: str, parents: list[str], message: str) -> str:
        with _scratch() as scratch:
            given = scratch / "message"
            given.write_text(message)
            ends = [word for parent in parents for word in ("-p", parent)]
            done: shell.Finished = self._git(
                repo, *_WHO, "commit-tree", tree, *ends, timeout=QUICK, given=given
            )
        if done.status != 0:
            raise failed("commit-tree", done)
        return done.stdout.strip()


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="labsite-") as folder:
        yield Path(folder)
