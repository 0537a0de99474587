"""A small git in dictionaries: commits, their files, and what differs between two of them."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from runs.core.history_ports import EMPTY_TREE, Change, Commit
from runs.core.ports import Moved, Rejected, SeamError
from runs.pulls.rules import Joined, MergeCommit, Way

ZERO = "0" * 40
AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Made:
    about: Commit
    files: Mapping[str, str]


class FakeHistory:
    """The part of `Repos` that compares commits. Every call is counted, as git would start a program."""

    def __init__(self) -> None:
        self.made: dict[str, Made] = {EMPTY_TREE: Made(Commit(EMPTY_TREE, (), "", AT, ""), {})}
        self.blobs: dict[str, str] = {}
        self.refs: dict[str, str] = {}
        self.asked: list[str] = []
        self.broken_history = ""
        self.broken_push = ""
        self.contents: dict[str, Mapping[str, str]] = {}
        self.uncommitted: list[Change] = []

    def commit(
        self, files: Mapping[str, str], *parents: str, subject: str = "feat: x", body: str = ""
    ) -> str:
        """Make a commit that holds exactly these files; returns its id."""
        ident = _id(repr((sorted(files.items()), parents, subject, body)))
        about = Commit(ident, parents, "Test", AT, subject, body)
        self.made[ident] = Made(about, dict(files))
        for text in files.values():
            self.blobs[_id(text)] = text
        return ident

    def changes(self, path: Path, fork_point: str, head: str = "") -> Sequence[Change]:
        self._ask("changes")
        if not head:
            return list(self.uncommitted)
        return self._changed(self._base(fork_point, head), head)

    def patch(self, path: Path, fork_point: str, limit: int, head: str = "") -> str:
        self._ask("patch")
        if not head:
            return ""
        base, text = self._base(fork_point, head), ""
        for change in self._changed(base, head):
            part = _patch(change, self.blobs.get(change.old_id), self.blobs.get(change.new_id))
            if len(text) + len(part) > limit:
                break
            text += part
        return text

    def patch_of(self, repo: Path, change: Change, limit: int) -> str:
        self._ask("patch_of")
        sides = [one for one in (change.old_id, change.new_id) if one.strip("0")]
        if any(one not in self.blobs for one in sides):
            raise SeamError("git diff failed: bad object")
        text = _patch(change, self.blobs.get(change.old_id), self.blobs.get(change.new_id))
        return text if sides else ""

    def commits(self, repo: Path, base: str, head: str, limit: int) -> Sequence[Commit]:
        self._ask("commits")
        self._files(base), self._files(head)
        hidden = self._ancestors(base)
        return [self.made[one].about for one in self._ancestors(head) if one not in hidden][:limit]

    def tree_of(self, repo: Path, commit: str) -> str:
        held = self.made.get(commit)
        return _id(repr(sorted(held.files.items()))) if held else _id(commit)

    def texts(self, repo: Path, commit: str, names: Sequence[str], limit: int) -> Mapping[str, str]:
        self._ask("texts")
        files = self._files(commit)
        return {name: files[name][:limit] for name in names if name in files}

    def tips(self, repo: Path, refs: Sequence[str]) -> Mapping[str, str]:
        self._ask("tips")
        return {name: self.refs[name] for name in refs if name in self.refs}

    def join(self, repo: Path, into: str, head: str) -> Joined:
        self._ask("join")
        self._files(into), self._files(head)
        try:
            base = self._base(into, head)
        except SeamError:
            return Joined(Way.STRANGERS)
        if base in (head, into):
            return Joined(Way.HELD if base == head else Way.FORWARD)
        merged, wrong = _merged(self._files(base), self._files(into), self._files(head))
        if wrong:
            return Joined(Way.CONFLICT, files=tuple(wrong))
        tree = _id(repr(sorted(merged.items())))
        self.contents[tree] = merged
        return Joined(Way.CLEAN, tree)

    def make_merge(self, repo: Path, wanted: MergeCommit) -> str:
        self._ask("make_merge")
        return self.commit(self.contents[wanted.tree], *wanted.parents, subject=wanted.message)

    def push_commit(
        self, repo: Path, branch: str, commit: str, seen: str, token: str, url: str
    ) -> None:
        self._ask("push_commit")
        ref = f"refs/remotes/origin/{branch}"
        if self.broken_push:
            raise Rejected(self.broken_push)
        if self.refs.get(ref) != seen:
            raise Moved("the branch has moved on origin: stale info")
        self.refs[ref] = commit

    def delete_pushed(self, repo: Path, branch: str, seen: str, token: str, url: str) -> None:
        self._ask("delete_pushed")
        ref = f"refs/remotes/origin/{branch}"
        pushed = self.origins.get(str(repo), {})  # type: ignore[attr-defined]
        if self.broken_push:
            raise Rejected(self.broken_push)
        if pushed.get(branch, self.refs.get(ref)) != seen:
            raise Moved("the branch has moved on origin: stale info")
        pushed.pop(branch, None)
        self.refs.pop(ref, None)

    def _changed(self, base: str, head: str) -> list[Change]:
        old, new = self._files(base), self._files(head)
        names = sorted(set(old) | set(new))
        return [_change(n, old.get(n), new.get(n)) for n in names if old.get(n) != new.get(n)]

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        if self.broken_history:
            raise SeamError(self.broken_history)

    def _files(self, commit: str) -> Mapping[str, str]:
        if commit not in self.made:
            raise SeamError(f"git diff failed: bad object {commit}")
        return self.made[commit].files

    def _ancestors(self, commit: str) -> list[str]:
        """A commit and all before it, each once; a child comes before its parents."""
        found, todo = [], [commit]
        while todo:
            one = todo.pop(0)
            if one in self.made and one not in found:
                found.append(one)
                todo += self.made[one].about.parents
        return found

    def _base(self, one: str, other: str) -> str:
        if one == EMPTY_TREE:
            return one
        self._files(one), self._files(other)
        mine = self._ancestors(one)
        for commit in self._ancestors(other):
            if commit in mine:
                return commit
        raise SeamError("git diff failed: no merge base")


def _merged(
    base: Mapping[str, str], ours: Mapping[str, str], theirs: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Whole files: whichever side changed one, and a conflict where both did."""
    merged, wrong = {}, []
    for name in sorted({*base, *ours, *theirs}):
        was, mine, other = base.get(name), ours.get(name), theirs.get(name)
        if mine != other and was not in (mine, other):
            wrong.append(name)
        text = other if mine == was else mine
        if text is not None:
            merged[name] = text
    return merged, wrong


def _change(name: str, old: str | None, new: str | None) -> Change:
    kind = "A" if old is None else "D" if new is None else "M"
    is_binary = "\0" in (old or "") + (new or "")
    lines = list(difflib.unified_diff(_lines(old), _lines(new), n=0))[2:]
    return Change(
        name,
        kind,
        None if is_binary else sum(line.startswith("+") for line in lines),
        None if is_binary else sum(line.startswith("-") for line in lines),
        old_mode="000000" if old is None else "100644",
        new_mode="000000" if new is None else "100644",
        old_id=ZERO if old is None else _id(old),
        new_id=ZERO if new is None else _id(new),
    )


def _patch(change: Change, old: str | None, new: str | None) -> str:
    head = f"diff --git a/{change.path} b/{change.path}\n"
    if "\0" in (old or "") + (new or ""):
        return f"{head}Binary files differ\n"
    names = (
        "/dev/null" if old is None else f"a/{change.path}",
        "/dev/null" if new is None else f"b/{change.path}",
    )
    return head + "".join(difflib.unified_diff(_lines(old), _lines(new), *names))


def _lines(text: str | None) -> list[str]:
    return (text or "").splitlines(keepends=True)


def _id(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
