"""A tracker in memory: the fake as an equal of the real ones, held to the same contract tests.

Entries are plain dicts, as a forge would send them, so that reading them one by one and leaving
out the broken ones is real here too (LAB-34).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from trackers.base import (
    Ability,
    Comment,
    Issue,
    NewPull,
    NotFound,
    Pull,
    PullState,
    Refused,
    TrackerError,
    Unreachable,
)

EVERY_ROOT = "*"

Asked = TypeVar("Asked")


@dataclass
class Shelf:
    """What one root holds, in the order in which it is listed."""

    issues: list[dict[str, Any]] = field(default_factory=list)
    pulls: list[dict[str, Any]] = field(default_factory=list)
    next_number: int = 1


class MemoryTracker:
    """Implements the seam on dicts; can be told to fail, and counts what it was asked."""

    kind = "memory"

    def __init__(self, abilities: Collection[Ability] = tuple(Ability)) -> None:
        self.abilities = frozenset(abilities)
        self.shelves: dict[str, Shelf] = {}
        self.calls: Counter[str] = Counter()
        self._errors: dict[str, TrackerError] = {}
        self._lock = threading.RLock()

    # What a test does to it.

    def add_root(self, root: str) -> str:
        """Make a root without anything in it."""
        self.shelves[root] = Shelf()
        return root

    def add_issue(self, root: str, title: str, key: str = "", **more: Any) -> str:
        """List an issue; `more` is body, author, labels, ready_by, is_open. Returns its key."""
        with self._lock:
            shelf = self.shelves[root]
            key = key or str(shelf.next_number)
            shelf.next_number = max(shelf.next_number, int(key)) + 1
            shelf.issues.append({"key": key, "title": title, "comments": [], **more})
        return key

    def add_pull(self, root: str, head: str, state: str = "open", **more: Any) -> int:
        """List a pull request; `more` is title, base, body, head_commit, is_fork, number."""
        with self._lock:
            shelf = self.shelves[root]
            number = int(more.pop("number", shelf.next_number))
            shelf.next_number = max(shelf.next_number, number) + 1
            shelf.pulls.append({"number": number, "head": head, "state": state, **more})
        return number

    def fail(self, root: str = EVERY_ROOT, error: TrackerError | None = None) -> None:
        """Give no answer for a root, or for all of them, until `heal`."""
        self._errors[root] = error or Unreachable("The tracker answered 500.")

    def heal(self) -> None:
        """Answer again."""
        self._errors.clear()

    # The seam.

    def queues(self, labels: Mapping[str, str]) -> Mapping[str, Sequence[Issue] | None]:
        """Open issues with their root's label, lowest number first; None for a root that fails."""
        self._count("queues")
        return self._of_each(labels, lambda issue, label: label in issue.labels)

    def still_open(
        self, keys: Mapping[str, Collection[str]]
    ) -> Mapping[str, Sequence[Issue] | None]:
        """Those of the named issues that are open; None for a root that fails."""
        self._count("still_open")
        return self._of_each(keys, lambda issue, wanted: issue.key in wanted)

    def open_issues(self, root: str) -> Sequence[Issue]:
        """Every open issue, lowest number first."""
        self._count("open_issues")
        return self._open(root)

    def issue(self, root: str, key: str) -> Issue:
        """One issue with its comments. Raises NotFound."""
        self._count("issue")
        issue = read_issue(self._entry(root, key))
        if issue is None:
            raise NotFound(f"There is no issue {key}.")
        return issue

    def pulls(self, heads: Mapping[str, Collection[str]]) -> Mapping[str, Sequence[Pull] | None]:
        """Pull requests of these heads; None for a root that fails or is not there."""
        self._count("pulls")
        if EVERY_ROOT in self._errors:
            raise self._errors[EVERY_ROOT]
        return {root: self._pulls(root, branches) for root, branches in heads.items()}

    def comment(self, root: str, key: str, author: str, body: str) -> None:
        """Add a comment. Raises NotFound, Refused."""
        self._count("comment")
        self._needs(Ability.COMMENT)
        self._entry(root, key)["comments"].append({"author": author, "body": body})

    def create_pull(self, root: str, new: NewPull) -> Pull:
        """Open a pull request. Raises Refused when its branch has an open one."""
        self._count("create_pull")
        self._needs(Ability.CREATE_PULL)
        with self._lock:
            same = [p for p in self._shelf(root).pulls if p.get("head") == new.head]
            if any(p.get("state") == PullState.OPEN and not p.get("is_fork") for p in same):
                raise Refused(f"There is already an open pull request for {new.head}.")
            number = self.add_pull(
                root,
                new.head,
                title=new.title,
                base=new.base,
                body=new.body,
                head_commit=new.head_commit,
            )
        return Pull(
            number=number,
            head=new.head,
            state=PullState.OPEN,
            title=new.title,
            base=new.base,
            body=new.body,
            head_commit=new.head_commit,
        )

    def _count(self, call: str) -> None:
        with self._lock:
            self.calls[call] += 1

    def _needs(self, ability: Ability) -> None:
        if ability not in self.abilities:
            raise Refused(f"This tracker cannot do that: {ability.value}.")

    def _shelf(self, root: str) -> Shelf:
        error = self._errors.get(root) or self._errors.get(EVERY_ROOT)
        if error is not None:
            raise error
        if root not in self.shelves:
            raise Refused("This project has no tracker.")
        return self.shelves[root]

    def _entry(self, root: str, key: str) -> dict[str, Any]:
        for entry in self._shelf(root).issues:
            if entry.get("key") == key:
                return entry
        raise NotFound(f"There is no issue {key}.")

    def _open(self, root: str) -> list[Issue]:
        issues = [issue for entry in self._shelf(root).issues if (issue := read_issue(entry))]
        return sorted((issue for issue in issues if issue.is_open), key=lambda i: int(i.key))

    def _of_each(
        self, asked: Mapping[str, Asked], fits: Callable[[Issue, Asked], bool]
    ) -> Mapping[str, Sequence[Issue] | None]:
        if EVERY_ROOT in self._errors:
            raise self._errors[EVERY_ROOT]
        found: dict[str, Sequence[Issue] | None] = {}
        for root, wanted in asked.items():
            try:
                found[root] = [issue for issue in self._open(root) if fits(issue, wanted)]
            except TrackerError:
                found[root] = None
        return found

    def _pulls(self, root: str, branches: Collection[str]) -> Sequence[Pull] | None:
        try:
            entries = self._shelf(root).pulls
        except TrackerError:
            return None
        pulls = [pull for entry in entries if (pull := read_pull(entry))]
        return [pull for pull in pulls if pull.head in branches]


def read_issue(entry: Mapping[str, Any]) -> Issue | None:
    """The issue of an entry, or None when its number is none (LAB-34)."""
    key = str(entry.get("key", ""))
    if not (key.isascii() and key.isdigit()) or not isinstance(entry.get("title"), str):
        return None
    return Issue(
        key=str(int(key)),
        title=entry["title"],
        body=entry.get("body", ""),
        author=entry.get("author", ""),
        labels=tuple(sorted(entry.get("labels", ()))),
        is_open=entry.get("is_open", True),
        ready_by=entry.get("ready_by"),
        comments=tuple(Comment(**comment) for comment in entry.get("comments", ())),
    )


def read_pull(entry: Mapping[str, Any]) -> Pull | None:
    """The pull request of an entry, or None when it has no head, number or known state."""
    state, head, number = entry.get("state"), entry.get("head"), entry.get("number")
    if state not in list(PullState) or not isinstance(head, str) or not isinstance(number, int):
        return None
    known = ("title", "base", "body", "head_commit", "is_fork", "created_at")
    more = {name: entry[name] for name in known if name in entry}
    return Pull(number=number, head=head, state=PullState(state), **more)
