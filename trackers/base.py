"""The tracker seam: what the product needs to know of issues and pull requests, and no more.

Knows nothing of runs. An adapter is made with a process runner or an HTTP client and answers
for a *root*: the place of one project on that tracker (a repository, a database row).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol


class TrackerError(Exception):
    """A tracker did not give the answer. None of these ever ends a run."""


class Unreachable(TrackerError):
    """No usable answer; asking again may help."""


class Refused(TrackerError):
    """The tracker said no; a person has to do something."""


class NotFound(TrackerError):
    """There is no such issue or pull request."""


class Ability(StrEnum):
    """What an adapter can do beyond reading; undeclared abilities are hidden and refused.

    *Local* adapters answer from this process without waiting, so a tick asks them first.
    """

    COMMENT = "comment"
    CREATE_PULL = "create_pull"
    LOCAL = "local"


class PullState(StrEnum):
    """States of a pull request; only open and merged count as a done signal (LAB-30, LAB-31)."""

    OPEN = "open"
    MERGED = "merged"
    CLOSED = "closed"


class Side(StrEnum):
    """Which text a line of a diff belongs to."""

    OLD = "old"
    NEW = "new"


@dataclass(frozen=True, slots=True)
class Place:
    """One line of a pull request's diff at the commit that was its head; `quote` is the line."""

    path: str
    line: int
    side: Side
    commit: str
    quote: str = ""


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment on an issue, as text."""

    author: str
    body: str


@dataclass(frozen=True, slots=True)
class Issue:
    """One issue. `key` is a string; numeric trackers use the number without leading zeros.

    `ready_by` is who set the ready label; None when the tracker cannot tell, or was not asked.
    """

    key: str
    title: str
    body: str = ""
    author: str = ""
    labels: tuple[str, ...] = ()
    is_open: bool = True
    comments: tuple[Comment, ...] = ()
    url: str = ""
    ready_by: str | None = None


@dataclass(frozen=True, slots=True)
class Pull:
    """One pull request: enough to match it to a branch and to show it."""

    number: int
    head: str
    state: PullState
    title: str = ""
    base: str = ""
    body: str = ""
    url: str = ""
    head_commit: str = ""
    is_fork: bool = False
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class NewPull:
    """A pull request to be opened."""

    head: str
    base: str
    title: str
    body: str
    author: str
    head_commit: str = ""
    base_commit: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)


class Tracker(Protocol):
    """One kind of tracker. Every method raises TrackerError when it could not tell."""

    kind: str
    abilities: frozenset[Ability]

    def queues(self, labels: Mapping[str, str]) -> Mapping[str, Sequence[Issue] | None]:
        """Open issues that carry their root's ready label, lowest number first (C-17).

        Asked for many roots at once: `labels` maps a root to its label; None where that root
        alone could not be read. With author, `ready_by`, and a text that names other issues.
        """

    def still_open(
        self, keys: Mapping[str, Collection[str]]
    ) -> Mapping[str, Sequence[Issue] | None]:
        """Those of the named issues that exist and are open, of many roots at once, as above."""

    def open_issues(self, root: str) -> Sequence[Issue]:
        """Every open issue, lowest number first."""

    def issue(self, root: str, key: str) -> Issue:
        """One issue with its comments. Raises NotFound."""

    def pulls(self, heads: Mapping[str, Collection[str]]) -> Mapping[str, Sequence[Pull] | None]:
        """Pull requests in any state whose head is one of the given branches.

        Asked for many roots at once: `heads` maps a root to its branches, the answer maps it
        to its pull requests, or to None where that root alone could not be read (LAB-13).
        """

    def comment(self, root: str, key: str, author: str, body: str) -> None:
        """Write a comment; needs Ability.COMMENT. Raises NotFound, Refused."""

    def create_pull(self, root: str, new: NewPull) -> Pull:
        """Open a pull request; needs Ability.CREATE_PULL. Raises Refused."""


def best_pull(pulls: Sequence[Pull], head: str) -> Pull | None:
    """The pull request that counts for a branch: exact head, no fork, open or merged before closed.

    LAB-29, LAB-33. A closed one is returned only when there is no other, for showing it.
    """
    own = [pull for pull in pulls if pull.head == head and not pull.is_fork]
    live = [pull for pull in own if counts(pull)]
    candidates = live or own
    return max(candidates, key=lambda pull: pull.number) if candidates else None


def counts(pull: Pull | None) -> bool:
    """Whether a pull request is a done signal: open or merged (LAB-30)."""
    return pull is not None and pull.state in (PullState.OPEN, PullState.MERGED)
