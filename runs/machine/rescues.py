"""Rescue refs: the whole state of a branch and its worktree as one commit, and back again.

The commit's tree is everything on disk that is not ignored. Its parents are the worktree's head,
a commit of what was staged, the branch's tip, and the commits of repositories that lay in the
worktree, so that git throws none of them away.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from runs.core import naming
from runs.core.kept_ports import RESCUES, Snapshot
from runs.core.ports import SeamError, Taken
from runs.machine import shell, worktree_links
from runs.machine.git import QUICK, failed
from runs.machine.run_repositories import HEADS, ORIGIN
from runs.machine.snapshots import LONG, GitSnapshots
from runs.machine.worktree_links import STASHES

_FORMAT = "--format=%(refname)%00%(objectname)%00%(committerdate:unix)%00%(contents:body)%01"


class GitRescues(GitSnapshots):
    """The part of `Keeping` (core/kept_ports.py) that stores states and puts them back."""

    def keep(self, repo: Path, ref: str, state: Snapshot, notes: Mapping[str, str]) -> str:
        """The ref is made last and never moved, so it holds everything or is not there."""
        staged = self._commit(repo, state.index, [state.head], "staged\n")
        told = {**notes, "tip": state.tip, "head": state.head, "index": state.index}
        if state.names:
            told["names"] = " ".join(f"{commit} {name}" for name, commit in state.names.items())
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
        tip = notes["tip"]
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
            self._lay_out(repo, path, branch, notes)
        except SeamError:
            self._undo(repo, path, branch, tip)
            raise

    def _lay_out(self, repo: Path, path: Path, branch: str, notes: Mapping[str, str]) -> None:
        """First everything as if it were staged, which writes the files; then the index of then."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SeamError(f"{path.parent} cannot be made: {error.strerror}") from error
        worktree_links.forget_placed(repo, path)
        plain = self._plain(repo)
        tip, head = notes["tip"], notes["head"]
        if self.makes_own:
            self._lay_own(repo, path, branch, notes)
        else:
            where = (str(path), branch) if head == tip else ("--detach", str(path), head)
            self._git.ask(repo, "worktree", "add", "-q", "--no-checkout", *where)
        self._long(path, *plain, "read-tree", "--reset", "-u", notes["commit"])
        self._git.ask(path, *plain, "read-tree", notes["index"])
        self._git(path, *plain, "update-index", "-q", "--refresh", timeout=LONG)
        if self.makes_own:
            self._name_again(path, branch, notes.get("names", "").split())

    def _lay_own(self, repo: Path, path: Path, branch: str, notes: Mapping[str, str]) -> None:
        """Make an own repository that holds the branch, and stands where the worktree stood."""
        tip, head = notes["tip"], notes["head"]
        self._make_own(repo, path, head, branch if head == tip else "", folders=None)
        if head != tip:
            pushed = self._commit_of(repo, f"{ORIGIN}{branch}") or ""
            worktree_links.write_claim(repo, branch, path, pushed)
            self._git.ask(path, "update-ref", f"{HEADS}{branch}", tip, timeout=QUICK)

    def _name_again(self, path: Path, branch: str, words: Sequence[str]) -> None:
        """Make other branches and the stashes of an own repository again, the oldest stash first."""
        pairs = sorted(zip(words[1::2], words[::2], strict=False), key=lambda one: _turn(one[0]))
        for name, commit in pairs:
            if name.startswith(STASHES):
                said = self._git(path, "log", "-1", "--format=%s", commit, timeout=QUICK)
                argv = ("stash", "store", "-m", said.stdout.strip() or "restored", commit)
                self._git.ask(path, *argv, timeout=QUICK)
            elif name.startswith(HEADS) and name != f"{HEADS}{branch}":
                self._git.ask(path, "update-ref", name, commit, timeout=QUICK)

    def _long(self, folder: Path, *argv: str) -> None:
        """Files may be many and large."""
        done = self._git(folder, *argv, timeout=LONG)
        if done.status != 0:
            raise failed("read-tree", done)

    def _undo(self, repo: Path, path: Path, branch: str, tip: str) -> None:
        """Only what was just made: the ref holds all of it."""
        if worktree_links.note_of(repo, path) is None:
            self._git(repo, "worktree", "remove", "--force", "--", str(path))
        self._erase(repo, path)
        self._git(repo, "worktree", "prune", timeout=QUICK)
        worktree_links.forget_claim(repo, branch)
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


def _turn(name: str) -> int:
    number = name.removeprefix(STASHES)
    return int(number) if number.isdigit() else 0
