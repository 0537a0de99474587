"""A tracker in memory: the fake as an equal of the real ones, held to the same contract tests.

Entries are plain dicts, so that leaving out the broken ones is real here too.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from trackers.base import (
    Ability,
    BaseTracker,
    Check,
    CheckOutput,
    Comment,
    Finding,
    Issue,
    NewIssue,
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


class MemoryTracker(BaseTracker):
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

    def block(self, root: str, key: str, *by: str) -> None:
        """Say that an issue waits for others."""
        self.shelves[root].blockers[key] = by

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

    def blockers(
        self, keys: Mapping[str, Collection[str]], enough: int = 0
    ) -> Mapping[str, Mapping[str, Collection[str]] | None]:
        """What `block` said, as far as those issues are open; None for a root that fails."""
        self._count("blockers")
        self._needs(Ability.BLOCKERS)
        if EVERY_ROOT in self._errors:
            raise self._errors[EVERY_ROOT]
        return {root: self._blockers(root, asked) for root, asked in keys.items()}

    def trouble(self, root: str) -> TrackerError | None:
        """What made it fail."""
        return self._errors.get(root)

    def open_issues(self, root: str) -> Sequence[Issue]:
        """Every open issue, lowest number first."""
        self._count("open_issues")
        return self._shelf(root).open_issues()

    def open_count(self, root: str) -> int:
        """How many issues are open."""
        self._count("open_count")
        return len(self._shelf(root).open_issues())

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

    def pull(self, root: str, number: int) -> Pull:
        """One pull request. Raises NotFound."""
        self._count("pull")
        self._needs(Ability.PULLS)
        pull = read_pull(self._shelf(root).pull_entry(number))
        if pull is None:
            raise NotFound(f"There is no pull request {number}.")
        return pull

    def pull_comments(self, root: str, number: int) -> Sequence[Comment]:
        """The comments of its entry. Raises NotFound."""
        self._count("pull_comments")
        said = self._shelf(root).pull_entry(number).get("comments", ())
        return tuple(Comment(**one) for one in said)

    def comment(self, root: str, key: str, author: str, body: str) -> None:
        """Add a comment. Raises NotFound, Refused."""
        self._count("comment")
        self._needs(Ability.COMMENT)
        self._entry(root, key)["comments"].append({"author": author, "body": body})

    def add_label(self, root: str, key: str, label: str) -> None:
        """Let an issue carry a label."""
        self._count("add_label")
        self._needs(Ability.LABEL)
        entry = self._entry(root, key)
        entry["labels"] = {*entry.get("labels", ()), label}

    def remove_label(self, root: str, key: str, label: str) -> None:
        """Take a label off an issue."""
        self._count("remove_label")
        self._needs(Ability.LABEL)
        entry = self._entry(root, key)
        entry["labels"] = {*entry.get("labels", ())} - {label}

    def close(self, root: str, key: str) -> None:
        """Close an issue."""
        self._count("close")
        self._needs(Ability.CLOSE)
        self._entry(root, key)["is_open"] = False

    def claim(self, root: str, key: str) -> None:
        """Note that an issue is being worked on. Raises Refused when it is already."""
        self._count("claim")
        self._needs(Ability.STATUS)
        self._shelf(root).claim(key)

    def set_status(self, root: str, key: str, is_working: bool) -> None:
        """Note whether an issue is being worked on."""
        self._count("set_status")
        self._needs(Ability.STATUS)
        self._shelf(root).set_status(key, is_working)

    def create_issue(self, root: str, new: NewIssue) -> Issue:
        """List a new issue. Raises Refused for a label that is not there."""
        self._count("create_issue")
        self._needs(Ability.CREATE_ISSUE)
        unknown = set(new.labels) - set(self._shelf(root).all_labels())
        if unknown:
            raise Refused(f"There is no label {sorted(unknown)[0]}.")
        key = self.add_issue(
            root, new.title, body=new.body, author=new.author, labels=set(new.labels)
        )
        return self.issue(root, key)

    def labels(self, root: str) -> Collection[str]:
        """Labels that were made or are carried."""
        self._count("labels")
        return self._shelf(root).all_labels()

    def create_label(self, root: str, label: str) -> None:
        """Make a label."""
        self._count("create_label")
        self._needs(Ability.CREATE_LABEL)
        self._shelf(root).labels.add(label)

    def checks(self, root: str, commit: str) -> Sequence[Check]:
        """The checks that a test set for a commit."""
        self._count("checks")
        self._needs(Ability.CHECKS)
        return self._shelf(root).checks.get(commit, ())

    def check_output(self, root: str, commit: str, check: Check) -> CheckOutput:
        """What a test set for a check of this name; no log otherwise."""
        self._count("check_output")
        found = self._shelf(root).outputs.get(check.name, CheckOutput(why="there is no log"))
        if isinstance(found, TrackerError):
            raise found
        return found

    def set_hook(self, root: str, address: str, secret: str) -> None:
        """Keep the one hook of an address. Raises Refused."""
        self._count("set_hook")
        self._needs(Ability.HOOKS)
        self._shelf(root).hooks[address] = secret

    def merge(self, root: str, number: int, head_commit: str) -> str:
        """Mark as merged. Raises Refused when it is not open or its head moved."""
        self._count("merge")
        self._needs(Ability.MERGE)
        with self._lock:
            return self._shelf(root).merge(number, head_commit)

    def examine(self, root: str, label: str) -> Sequence[Finding]:
        """Whether it answers, and whether the ready label is there."""
        self._count("examine")
        try:
            has_label = label in self._shelf(root).all_labels()
        except TrackerError as error:
            return [Finding("issues", None, str(error))]
        return [
            Finding("issues", True, "Issues can be read."),
            Finding(
                "label", has_label, f"The label {label} is {'' if has_label else 'not '}there."
            ),
        ]

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
        return self.pull(root, number)

    def _count(self, call: str) -> None:
        with self._lock:
            self.calls[call] += 1

    def _needs(self, ability: Ability) -> None:
        if ability not in self.abilities:
            raise Refused(f"This tracker cannot do that: {ability.value.replace('_', ' ')}.")

    def _shelf(self, root: str) -> Shelf:
        error = self._errors.get(root) or self._errors.get(EVERY_ROOT)
        if error is not None:
            raise error
        if root not in self.shelves:
            raise Refused("This project has no tracker.")
        return self.shelves[root]

    def _entry(self, root: str, key: str) -> dict[str, Any]:
        return self._shelf(root).issue_entry(key)

    def _blockers(self, root: str, keys: Collection[str]) -> Mapping[str, Collection[str]] | None:
        try:
            return self._shelf(root).blocked(keys)
        except TrackerError:
            return None

    def _of_each(
        self, asked: Mapping[str, Asked], fits: Callable[[Issue, Asked], bool]
    ) -> Mapping[str, Sequence[Issue] | None]:
        if EVERY_ROOT in self._errors:
            raise self._errors[EVERY_ROOT]
        found: dict[str, Sequence[Issue] | None] = {}
        for root, wanted in asked.items():
            try:
                found[root] = [
                    issue for issue in self._shelf(root).open_issues() if fits(issue, wanted)
                ]
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


@dataclass
class Shelf:
    """What one root holds, in the order in which it is listed."""

    issues: list[dict[str, Any]] = field(default_factory=list)
    pulls: list[dict[str, Any]] = field(default_factory=list)
    labels: set[str] = field(default_factory=set)
    blockers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    checks: dict[str, tuple[Check, ...]] = field(default_factory=dict)
    outputs: dict[str, CheckOutput | TrackerError] = field(default_factory=dict)
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
    """The issue of an entry, or None when its number is none."""
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
    known = (
        "title",
        "base",
        "body",
        "head_commit",
        "is_fork",
        "is_draft",
        "created_at",
        "merge_commit",
    )
    more = {name: entry[name] for name in known if name in entry}
    return Pull(number=number, head=head, state=PullState(state), **more)
