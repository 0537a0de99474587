"""What a forge holds: people, tokens, issues, pull requests, checks. No HTTP in here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.trackers.forge.repo import Repo

SHA = "a" * 40


@dataclass
class Person:
    """Somebody with an account, or a GitHub App's bot."""

    id: int
    login: str
    is_bot: bool = False


@dataclass
class Token:
    """A credential. `permissions` None: whatever its person may; `repos` None: every repository."""

    text: str = field(repr=False)
    person: Person
    kind: str = "classic"
    permissions: Mapping[str, str] | None = None
    repos: frozenset[str] | None = None
    expires_at: datetime | None = None

    def may(self, what: str, level: str) -> bool:
        """Whether the credential reaches so far, whatever the person may."""
        if self.permissions is None:
            return True
        given = self.permissions.get(what, "")
        return given == "write" or given == level


@dataclass
class Label:
    id: int
    name: str
    color: str = "ededed"
    description: str = ""


@dataclass
class Remark:
    id: int
    author: Person
    body: str
    at: datetime


@dataclass
class LineRemark:
    """A comment on a line of a diff; `line` is None where a later commit took the line away."""

    id: int
    body: str
    at: datetime
    path: str
    line: int | None
    original_line: int
    hunk: str


@dataclass
class Review:
    """A review with its comments on lines; `state` in the forge's own word, its usual one if empty."""

    id: int
    author: Person | None
    body: str
    at: datetime
    state: str = ""
    remarks: list[LineRemark] = field(default_factory=list)


@dataclass
class PullPart:
    """What makes a pull request of an issue; `repo` of the head is None when its fork is gone."""

    head: str
    head_sha: str
    head_owner: str
    head_repo: Repo | None
    base: str
    is_draft: bool = False
    is_branch_gone: bool = False
    merged_at: datetime | None = None
    merge_commit: str | None = None
    not_mergeable: str = ""
    reviews: list[Review] = field(default_factory=list)


@dataclass
class Item:
    """An issue, or a pull request with its `pull`: they share one row of numbers on both forges."""

    id: int
    number: int
    title: str
    body: str | None
    author: Person
    created_at: datetime
    updated_at: datetime
    labels: list[Label] = field(default_factory=list)
    milestone: str = ""
    is_open: bool = True
    closed_at: datetime | None = None
    remarks: list[Remark] = field(default_factory=list)
    blocked_by: list[tuple[Repo, Item]] = field(default_factory=list)
    pull: PullPart | None = None


@dataclass
class Check:
    """A check run (GitHub) or a commit status (both); `state` in the forge's own word."""

    id: int
    name: str
    state: str
    url: str = ""
    is_run: bool = False
    conclusion: str | None = None
    summary: str = ""
