"""Rescue refs: the whole state of a branch and its worktree as one commit, and back again.

The commit's tree is everything on disk that is not ignored. Its parents are the worktree's head,
a commit of what was staged, the branch's tip, and the commits of repositories that lay in the
worktree, so that git throws none of them away.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from runs.core import naming
from runs.core.kept_ports import RESCUES, Snapshot
from runs.core.ports import SeamError, Taken
from runs.machine import shell
from runs.machine.git import QUICK, Git, failed
from runs.machine.snapshots import LONG, GitSnapshots

_FORMAT = "--format=%(refname)%00%(objectname)%00%(committerdate:unix)%00%(contents:body)%01"


class GitRescues(GitSnapshots):
    """The part of `Keeping` (core/kept_ports.py) that stores states and puts them back."""

    _git: Git

    def keep(self, repo: Path, ref: str, state: Snapshot, notes: Mapping[str, str]) -> str:
        """The ref is made last and never moved, so it holds everything or is not there."""
        staged = self._commit(repo, state.index, [state.head], "staged\n")
        told = {**notes, "tip": state.tip, "head": state.head, "index": state.index}
        body = "".join(f"{name}: {' '.join(text.split())}\n" for name, text in told.items())
        parents = list(dict.fromkeys([state.head, staged, state.tip, *state.beside]))
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

    def parents(self, repo: Path, commit: str) -> Sequence[str]:
        text = self._git.ask(repo, "rev-parse", f"{commit}^@", timeout=QUICK)
        return text.split()

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
        self._long(path, *plain, "read-tree", "--reset", "-u", notes["commit"])
        self._git.ask(path, *plain, "read-tree", notes["index"])
        self._git(path, *plain, "update-index", "-q", "--refresh", timeout=LONG)

    def _long(self, folder: Path, *argv: str) -> None:
        """Files may be many and large."""
        done = self._git(folder, *argv, timeout=LONG)
        if done.status != 0:
            raise failed("read-tree", done)

    def _undo(self, repo: Path, path: Path, branch: str, tip: str) -> None:
        """Only what was just made: the ref holds all of it."""
        self._git(repo, "worktree", "remove", "--force", "--", str(path))
        shutil.rmtree(path, ignore_errors=True)
        self._git(repo, "worktree", "prune", timeout=QUICK)
        self._git(repo, "update-ref", "-d", f"refs/heads/{branch}", tip, timeout=QUICK)

    def _commit(self, repo: Path, tree: str, parents: list[str], message: str) -> str:
        with tempfile.TemporaryDirectory(prefix="labsite-") as folder:
            given = Path(folder) / "message"
            given.write_text(message)
            ends = [word for parent in parents for word in ("-p", parent)]
            done: shell.Finished = self._git(
                repo,
                *("commit-tree", tree, *ends),
                timeout=QUICK,
                given=given,
                env=naming.COMMITTER_ENV,
            )
        if done.status != 0:
            raise failed("commit-tree", done)
        return done.stdout.strip()
