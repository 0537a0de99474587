"""What the tracker in memory holds, and how its entries are read: one by one, the broken left out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from trackers.base import Check, Comment, Issue, NotFound, Pull, PullState, Refused


@dataclass
class Shelf:
    """What one root holds, in the order in which it is listed."""

    issues: list[dict[str, Any]] = field(default_factory=list)
    pulls: list[dict[str, Any]] = field(default_factory=list)
    labels: set[str] = field(default_factory=set)
    blockers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    checks: dict[str, tuple[Check, ...]] = field(default_factory=dict)
    working: set[str] = field(default_factory=set)
    hooks: dict[str, str] = field(default_factory=dict)
    next_number: int = 1

    def open_issues(self) -> list[Issue]:
        """Those that can be read, lowest number first."""
        issues = [issue for entry in self.issues if (issue := read_issue(entry))]
        return sorted((issue for issue in issues if issue.is_open), key=lambda i: int(i.key))

    def issue_entry(self, key: str) -> dict[str, Any]:
        """An issue's entry. Raises NotFound."""
        for entry in self.issues:
            if entry.get("key") == key:
                return entry
        raise NotFound(f"There is no issue {key}.")

    def pull_entry(self, number: int) -> dict[str, Any]:
        """A pull request's entry. Raises NotFound."""
        for entry in self.pulls:
            if entry.get("number") == number:
                return entry
        raise NotFound(f"There is no pull request {number}.")

    def claim(self, key: str) -> None:
        """Note that an issue is being worked on. Raises NotFound, and Refused when it is already."""
        self.issue_entry(key)
        if key in self.working:
            raise Refused(f"{key} is in progress already, so it was not claimed.")
        self.working.add(key)

    def set_status(self, key: str, is_working: bool) -> None:
        """Note whether an issue is being worked on. Raises NotFound."""
        self.issue_entry(key)
        (self.working.add if is_working else self.working.discard)(key)

    def merge(self, number: int, head_commit: str) -> str:
        """Mark as merged. Raises Refused when it is not open or its head moved."""
        entry = self.pull_entry(number)
        if entry.get("state") != PullState.OPEN:
            raise Refused(f"Pull request {number} is not open.")
        if entry.get("head_commit", "") != head_commit:
            raise Refused("The branch has moved since it was looked at.")
        entry |= {"state": "merged", "merge_commit": "f" * 40}
        return str(entry["merge_commit"])

    def all_labels(self) -> frozenset[str]:
        """Labels that were made or are carried."""
        return frozenset(self.labels.union(*(entry.get("labels", ()) for entry in self.issues)))

    def blocked(self, keys: Collection[str]) -> dict[str, tuple[str, ...]]:
        """What each of these waits for, as far as it is open."""
        is_open = {issue.key for issue in self.open_issues()}
        found = {key: tuple(b for b in self.blockers.get(key, ()) if b in is_open) for key in keys}
        return {key: by for key, by in found.items() if by}


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
        milestone=entry.get("milestone", ""),
        comments=tuple(Comment(**comment) for comment in entry.get("comments", ())),
    )


def read_pull(entry: Mapping[str, Any]) -> Pull | None:
    """The pull request of an entry, or None when it has no head, number or known state."""
    state, head, number = entry.get("state"), entry.get("head"), entry.get("number")
    if state not in list(PullState) or not isinstance(head, str) or not isinstance(number, int):
        return None
    known = ("title", "base", "body", "head_commit", "is_fork", "created_at", "merge_commit")
    more = {name: entry[name] for name in known if name in entry}
    return Pull(number=number, head=head, state=PullState(state), **more)
