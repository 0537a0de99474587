"""Merges without a worktree: content and commits are made by id, and origin's branch is set by
compare-and-set.

All of it works in an empty repository of its own that borrows the objects of the real one: what
agents wrote into the settings of a repository (merge programs, other addresses) does not count.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from runs.core import naming
from runs.core.ports import Moved, Rejected, SeamError
from runs.machine import shell
from runs.machine.git import QUICK, Git, failed
from runs.pulls.rules import Joined, MergeCommit, Way

PUSH = 60.0
LIST_BYTES = 400_000
_LONG = 64
_REJECTED = re.compile(r"^!\t[^\t]*\t\[(remote )?rejected\] ?(.*)$", re.MULTILINE)
# What git says when the branch has gone elsewhere meanwhile; anything else is origin's own no.
_MOVED = ("stale info", "fetch first", "non-fast-forward", "cannot lock ref", "failed to update")
_SHA256 = "[core]\nrepositoryformatversion=1\n[extensions]\nobjectformat=sha256\n"


class GitMerges:
    """`Merging` (pulls/rules.py)."""

    _git: Git

    def join(self, repo: Path, into: str, head: str) -> Joined:
        with self._apart(repo, into) as (folder, env):
            done = self._git(folder, "merge-base", into, head, timeout=QUICK, env=env)
            if done.status == 1 and not done.stderr.strip():
                return Joined(Way.STRANGERS)
            if done.status != 0:
                raise failed("merge-base", done)
            met = done.stdout.strip()
            if met in (head, into):
                return Joined(Way.HELD if met == head else Way.FORWARD)
            argv = ("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", into, head)
            return _joined(self._git(folder, *argv, timeout=QUICK, limit=LIST_BYTES, env=env))

    def make_merge(self, repo: Path, wanted: MergeCommit) -> str:
        with self._apart(repo, wanted.parents[0]) as (folder, env):
            message = folder / "message"
            message.write_text(wanted.message, encoding="utf-8")
            when = f"{int(wanted.at.timestamp())} +0000"
            who = wanted.author if any(c.isalnum() for c in wanted.author) else naming.COMMITTER
            more = {
                "GIT_AUTHOR_NAME": who,
                "GIT_AUTHOR_DATE": when,
                "GIT_COMMITTER_DATE": when,
            }
            above = [word for parent in wanted.parents for word in ("-p", parent)]
            argv = ("commit-tree", "--no-gpg-sign", *above, "-F", str(message), wanted.tree)
            done = self._git(
                folder, *argv, timeout=QUICK, env={**env, **naming.COMMITTER_ENV, **more}
            )
        if done.status != 0:
            raise failed("commit-tree", done)
        return done.stdout.strip()

    def push_commit(
        self, repo: Path, branch: str, commit: str, seen: str, token: str, url: str
    ) -> None:
        self._push(repo, branch, commit, seen, token, url)
        # So that every page and the next start see it before the next fetch.
        self._git(repo, "update-ref", f"refs/remotes/origin/{branch}", commit, seen, timeout=QUICK)

    def delete_pushed(self, repo: Path, branch: str, seen: str, token: str, url: str) -> None:
        self._push(repo, branch, "", seen, token, url)
        self._git(repo, "update-ref", "-d", f"refs/remotes/origin/{branch}", timeout=QUICK)

    def _push(self, repo: Path, branch: str, commit: str, seen: str, token: str, url: str) -> None:
        """Let origin's branch name a commit, or be gone for an empty one, if it names `seen`."""
        ref = f"refs/heads/{branch}"
        argv = ("push", "--porcelain", "--no-signed", "--no-follow-tags", "--recurse-submodules=no")
        lease = f"--force-with-lease={ref}:{seen}"
        with self._apart(repo, commit or seen) as (folder, env):
            done = self._git(
                folder,
                *argv,
                lease,
                "--",
                url,
                f"{commit}:{ref}",
                token=token,
                timeout=PUSH,
                env=env,
            )
        if done.status != 0:
            raise _refusal(done, token)

    @contextmanager
    def _apart(self, repo: Path, commit: str) -> Iterator[tuple[Path, Mapping[str, str]]]:
        """An empty repository that reads and writes the objects of a real one."""
        with tempfile.TemporaryDirectory(prefix="lab-merge-") as name:
            folder = Path(name)
            (folder / "refs").mkdir()
            (folder / "HEAD").write_text("ref: refs/heads/none\n")
            if len(commit) == _LONG:
                (folder / "config").write_text(_SHA256)
            objects = repo / "objects"
            if not objects.is_dir():
                raise SeamError("the repository is not there")
            yield folder, {"GIT_DIR": name, "GIT_OBJECT_DIRECTORY": str(objects)}


def _joined(done: shell.Finished) -> Joined:
    """Status 1 is a conflict: the content comes first, then each file that has one."""
    tree, *files = done.stdout.split("\0")
    if done.status == 0 and tree and not done.is_cut:
        return Joined(Way.CLEAN, tree.strip())
    if done.status == 1 or done.is_cut:
        return Joined(Way.CONFLICT, files=tuple(dict.fromkeys(name for name in files if name)))
    raise failed("merge-tree", done)


def _refusal(done: shell.Finished, token: str) -> SeamError:
    """What a push that did not work means. Without a word on the branch nothing is known."""
    found = _REJECTED.search(done.stdout)
    said = str(failed("push", shell.Finished(done.status, "", done.stderr or done.stdout), token))
    if found is None:
        return SeamError(said)
    reason = found[2].strip("() ")
    if any(word in reason for word in _MOVED):
        return Moved(f"the branch has moved on origin: {reason}")
    said = "\n".join(
        line.removeprefix("remote: ").strip()
        for line in done.stderr.splitlines()
        if line.startswith("remote:") and line.removeprefix("remote:").strip()
    )
    return Rejected(f"{reason}. {said}".strip() if said else reason)
