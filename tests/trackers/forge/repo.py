"""A repository of a forge: what happens on it without us."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tests.trackers.forge.actions import Job
from tests.trackers.forge.state import (
    SHA,
    Check,
    Item,
    Label,
    LineRemark,
    Person,
    PullPart,
    Remark,
    Review,
)

if TYPE_CHECKING:
    from tests.trackers.forge.shelf import Shelf


@dataclass
class Repo:
    """One repository with everything in it; the methods are what happens on it without us."""

    id: int
    owner: Person
    name: str
    forge: Shelf
    is_private: bool = True
    is_archived: bool = False
    has_issues: bool = True
    has_pulls: bool = True
    has_dependencies: bool = True
    merge_styles: Sequence[str] = ("merge", "squash", "rebase")
    usual_merge_style: str = "merge"
    # Rules of GitHub's rulesets by branch; None on a server that knows none.
    rules: dict[str, list[dict[str, Any]]] | None = field(default_factory=dict)
    items: dict[int, Item] = field(default_factory=dict)
    labels: list[Label] = field(default_factory=list)
    roles: dict[str, str] = field(default_factory=dict)
    checks: dict[str, list[Check]] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)
    # Where a branch stands, None when it is not there; without it every branch is there, at SHA.
    tip: Callable[[str], str | None] | None = None
    # What a merge does to the repository behind it; returns the merge commit.
    on_merge: Callable[[Item, str], str] | None = None
    hooks: list[dict[str, Any]] = field(default_factory=list)
    # GitHub: what applies to all branches, and its rulesets. Gitea: protections.
    branch_rules: list[dict[str, Any]] = field(default_factory=list)
    rulesets: dict[int, dict[str, Any]] = field(default_factory=dict)
    has_workflows: bool = False
    next_number: int = 1

    @property
    def full_name(self) -> str:
        return f"{self.owner.login}/{self.name}"

    def role(self, person: Person | None) -> str:
        """What somebody may do here."""
        if person is not None and person.login == self.owner.login:
            return "admin"
        public = "none" if self.is_private else "read"
        return self.roles.get(person.login, public) if person else public

    def tip_of(self, branch: str) -> str | None:
        """Where a branch stands; None when there is no such branch."""
        return self.tip(branch) if self.tip else SHA

    def head_of(self, part: PullPart) -> str:
        """The head of a pull request: where its branch stands now, when real git is behind us."""
        now = self.tip(part.head) if self.tip and part.head_repo is self else None
        return part.head_sha if part.merged_at else now or part.head_sha

    def label(self, name: str, color: str = "ededed") -> Label:
        """The label of a name, made when it is not there."""
        for label in self.labels:
            if label.name == name:
                return label
        self.labels.append(Label(self.forge.next_id(), name, color))
        return self.labels[-1]

    def issue(
        self,
        title: str,
        *,
        number: int = 0,
        body: str | None = "",
        author: str = "ada",
        labels: Sequence[str] = (),
        is_open: bool = True,
    ) -> Item:
        """Somebody writes an issue."""
        at = self.forge.happen()
        number = number or self.next_number
        self.next_number = max(self.next_number, number + 1)
        item = Item(self.forge.next_id(), number, title, body, self.forge.person(author), at, at)
        self.items[number] = item
        for name in labels:
            self.put_label(item, self.label(name))
        if not is_open:
            self.close(item)
        return item

    def pull(
        self,
        head: str,
        state: str = "open",
        *,
        title: str = "",
        number: int = 0,
        body: str | None = "",
        base: str = "main",
        author: str = "ada",
        sha: str = SHA,
        fork: Repo | None = None,
        is_draft: bool = False,
        is_branch_gone: bool = False,
    ) -> Item:
        """Somebody opens a pull request; `fork` is where its head lives when that is not here."""
        item = self.issue(title or head, number=number, body=body, author=author)
        home = fork or self
        item.pull = PullPart(head, sha, home.owner.login, home, base, is_draft, is_branch_gone)
        if state == "merged":
            self.merge(item, SHA[::-1])
        elif state == "closed":
            self.close(item)
        return item

    def close(self, item: Item) -> None:
        """Close an issue or a pull request."""
        item.is_open, item.closed_at = False, self.touch(item)

    def merge(self, item: Item, commit: str) -> None:
        """A pull request is merged."""
        assert item.pull is not None
        self.close(item)
        item.pull.merged_at, item.pull.merge_commit = item.closed_at, commit

    def touch(self, item: Item) -> datetime:
        """Something happened to it now."""
        item.updated_at = self.forge.happen()
        return item.updated_at

    def put_label(self, item: Item, label: Label) -> None:
        """Put a label on an issue; nothing when it carries it."""
        if label not in item.labels:
            item.labels.append(label)
            self.touch(item)

    def take_label(self, item: Item, label: Label) -> None:
        """Take a label off."""
        if label in item.labels:
            item.labels.remove(label)
            self.touch(item)

    def remark(self, item: Item, author: Person, body: str) -> Remark:
        """Somebody comments."""
        item.remarks.append(Remark(self.forge.next_id(), author, body, self.touch(item)))
        return item.remarks[-1]

    def review(
        self, item: Item, author: Person | None, body: str = "", *, state: str = ""
    ) -> Review:
        """Somebody reviews a pull request; None is somebody whose account is gone."""
        assert item.pull is not None
        made = Review(self.forge.next_id(), author, body, self.touch(item), state)
        item.pull.reviews.append(made)
        return made

    def remark_on_line(
        self, item: Item, review: Review, body: str, path: str, line: int, hunk: str = ""
    ) -> LineRemark:  # fmt: skip
        """The reviewer comments on a line."""
        made = LineRemark(self.forge.next_id(), body, self.touch(item), path, line, line, hunk)
        review.remarks.append(made)
        return made

    def check(
        self,
        commit: str,
        name: str,
        state: str,
        *,
        url: str = "",
        conclusion: str | None = None,
        is_run: bool = False,
        summary: str = "",
    ) -> None:
        """A check reports; the newest of a name counts."""
        self.checks.setdefault(commit, []).append(
            Check(self.forge.next_id(), name, state, url, is_run, conclusion, summary)
        )
