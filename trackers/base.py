"""The interface of all trackers: issues and pull requests, as far as the product needs them.

It knows nothing of runs. An adapter is made with a process runner or an HTTP client and answers
for a *root*: the place of one project on that tracker (a repository, a database row).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from trackers import plain
from trackers.errors import NotFound, NotUnderstood, RateLimited, Refused, TrackerError, Unreachable

__all__ = [
    "Ability",
    "BaseTracker",
    "Check",
    "CheckOutput",
    "CheckState",
    "Comment",
    "Finding",
    "Issue",
    "NewIssue",
    "NewPull",
    "NotFound",
    "NotUnderstood",
    "Place",
    "Pull",
    "PullState",
    "RateLimited",
    "Refused",
    "Side",
    "Tracker",
    "TrackerError",
    "Unreachable",
    "best_pull",
    "counts",
]


class Ability(StrEnum):
    """What an adapter can do beyond reading issues; undeclared abilities are hidden and refused.

    *Local* adapters answer from this process without waiting, so a tick asks them first. One
    without *pulls* has no pull requests: a commit that names the issue shows delivery. *Blockers*: it knows
    by itself what an issue waits for. *Status*: it has a status of its own for work in progress.
    *Hooks*: it can tell us that something changed. *Milestones*: its issues name theirs.
    """

    LOCAL = "local"
    PULLS = "pulls"
    COMMENT = "comment"
    LABEL = "label"
    CLOSE = "close"
    CREATE_ISSUE = "create_issue"
    CREATE_LABEL = "create_label"
    CREATE_PULL = "create_pull"
    CHECKS = "checks"
    MERGE = "merge"
    BLOCKERS = "blockers"
    STATUS = "status"
    HOOKS = "hooks"
    MILESTONES = "milestones"


class PullState(StrEnum):
    """States of a pull request. Open and merged count as delivered, closed does not."""

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
    """One comment on an issue or a pull request, as text.

    `at` is None where it is not told; `place` is the line of a pull request that it is about, as
    "path:line", with `quote`, the line itself, where that is known; "path" alone is a whole file.
    `is_outsider`: its author does not belong to the repository; None where the forge does not tell.
    `is_imported`: it was written on another forge, under a name of that one.
    """

    author: str
    body: str
    at: datetime | None = None
    place: str = ""
    quote: str = ""
    is_outsider: bool | None = False
    is_imported: bool = False


@dataclass(frozen=True, slots=True)
class Issue:
    """One issue. `key` is a string; numeric trackers use the number without leading zeros.

    `ready_by` is who set the ready label; None when the tracker cannot tell, or was not asked.
    The title is one line without control characters, whoever wrote it.
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
    milestone: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", plain.line(self.title))


@dataclass(frozen=True, slots=True)
class Pull:
    """One pull request: enough to match it to a branch and to show it.

    `is_draft`: its author says that it is not ready for review, so that it is opened, not delivered.
    """

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
    merge_commit: str = ""
    is_draft: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", plain.line(self.title))


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


@dataclass(frozen=True, slots=True)
class NewIssue:
    """An issue to be written. `author` is who asked for it; a forge shows its own account."""

    title: str
    body: str = ""
    labels: tuple[str, ...] = ()
    author: str = ""


class CheckState(StrEnum):
    """How one check of a commit stands."""

    PASSED = "passed"
    FAILED = "failed"
    RUNNING = "running"


@dataclass(frozen=True, slots=True)
class Check:
    """One check that a forge ran on a commit; `url` is where its log is.

    `summary` is what the forge says of it in words, `run_id` its number where a forge numbers them.
    """

    name: str
    state: CheckState
    url: str = ""
    summary: str = field(default="", compare=False)
    run_id: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class CheckOutput:
    """What a check printed. `log` is None where it could not be read, and `why` says so.

    `summary`: what the forge itself says of the check, where there is no log. All of it was written
    by others.
    """

    log: str | None = None
    why: str = ""
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of a connection test; `ok` is None where it could not tell."""

    name: str
    ok: bool | None
    text: str


class Tracker(Protocol):
    """One kind of tracker. Every method raises TrackerError when it could not tell.

    What needs an ability raises Refused where it is not declared.
    """

    kind: str
    abilities: frozenset[Ability]

    def queues(self, labels: Mapping[str, str]) -> Mapping[str, Sequence[Issue] | None]:
        """Open issues that carry their root's ready label, in the tracker's own order.

        Asked for many roots at once: `labels` maps a root to its label; None where that root
        alone could not be read; `trouble` says why. With author, `ready_by`, and a text that names other issues.
        """

    def still_open(
        self, keys: Mapping[str, Collection[str]]
    ) -> Mapping[str, Sequence[Issue] | None]:
        """Those of the named issues that exist and are open, of many roots at once, as above."""

    def blockers(
        self, keys: Mapping[str, Collection[str]], enough: int = 0
    ) -> Mapping[str, Mapping[str, Collection[str] | None] | None]:
        """Which open issues the tracker itself says each named one waits for; Ability.BLOCKERS.

        Those that wait for none are left out. None where that root alone could not be read.
        Issues are named in the order in which they would start. A tracker that has to ask for each
        need not go on once `enough` of them wait for nothing (0: all), and may leave some for
        later: they have None.
        """

    def trouble(self, root: str) -> TrackerError | None:
        """Why a root could not be read when it was asked for last, as far as that is known."""

    def open_issues(self, root: str) -> Sequence[Issue]:
        """Every open issue, in the order of `queues`."""

    def open_count(self, root: str) -> int:
        """How many issues are open."""

    def issue(self, root: str, key: str) -> Issue:
        """One issue with its comments. Raises NotFound."""

    def pulls(self, heads: Mapping[str, Collection[str]]) -> Mapping[str, Sequence[Pull] | None]:
        """Pull requests in any state whose head is one of the given branches; Ability.PULLS.

        Asked for many roots at once: `heads` maps a root to its branches, the answer maps it
        to its pull requests, or to None where that root alone could not be read.
        """

    def pull(self, root: str, number: int) -> Pull:
        """One pull request; needs Ability.PULLS. Raises NotFound."""

    def pull_comments(self, root: str, number: int) -> Sequence[Comment]:
        """What was said on a pull request, oldest first; none where a tracker does not tell."""

    def comment(self, root: str, key: str, author: str, body: str) -> None:
        """Write a comment; needs Ability.COMMENT. Raises NotFound, Refused."""

    def add_label(self, root: str, key: str, label: str) -> None:
        """Let an issue carry a label; no error when it does. Needs Ability.LABEL."""

    def remove_label(self, root: str, key: str, label: str) -> None:
        """Take a label off an issue; no error when it is not there. Needs Ability.LABEL."""

    def close(self, root: str, key: str) -> None:
        """Close an issue; no error when it is closed. Needs Ability.CLOSE."""

    def claim(self, root: str, key: str) -> None:
        """Mark a free issue as worked on; needs Ability.STATUS.

        Raises Refused when it is not free, and NotFound: then nothing was written.
        """

    def set_status(self, root: str, key: str, is_working: bool) -> None:
        """Say that an issue is being worked on, or no more. Needs Ability.STATUS."""

    def create_issue(self, root: str, new: NewIssue) -> Issue:
        """Write an issue; needs Ability.CREATE_ISSUE. Raises Refused for unknown labels."""

    def labels(self, root: str) -> Collection[str]:
        """The labels that issues of this root can carry."""

    def create_label(self, root: str, label: str) -> None:
        """Make a label; no error when it is there. Needs Ability.CREATE_LABEL."""

    def create_pull(self, root: str, new: NewPull) -> Pull:
        """Open a pull request; needs Ability.CREATE_PULL. Raises Refused."""

    def checks(self, root: str, commit: str) -> Sequence[Check]:
        """The results of the forge's own checks of a commit; needs Ability.CHECKS."""

    def check_output(self, root: str, commit: str, check: Check) -> CheckOutput:
        """Read what one of these checks of a commit printed; needs Ability.CHECKS.

        A log that cannot be read is no error.
        """

    def set_hook(self, root: str, address: str, secret: str) -> None:
        """Have changes delivered to an address, signed with a secret; an earlier one with the same
        address goes. Raises Refused."""

    def merge(self, root: str, number: int, head_commit: str) -> str:
        """Merge a pull request if its head still is `head_commit`; returns the merge commit.

        Needs Ability.MERGE. Raises Refused, with the tracker's reason, when it does not let it, and
        MergeQueueError where a queue of the forge merges it later.
        """

    def examine(self, root: str, label: str) -> Sequence[Finding]:
        """The connection test: tries what labsite needs of this root and says what is missing.

        Never raises: what could not be tried is a finding too. Changes nothing.
        """

    def examine_branch(self, root: str, prefix: str, key: str) -> Sequence[Finding]:
        """Find out whether the rules of a forge let branches with this prefix be pushed.

        `key`: an issue, for the whole name of one. Never raises; none where there are no such rules.
        """


class BaseTracker:
    """Refuses everything optional; adapters override what they declare."""

    def trouble(self, root: str) -> TrackerError | None:
        return None

    def examine_branch(self, root: str, prefix: str, key: str) -> Sequence[Finding]:
        return ()

    def blockers(
        self, keys: Mapping[str, Collection[str]], enough: int = 0
    ) -> Mapping[str, Mapping[str, Collection[str] | None] | None]:
        raise _cannot(Ability.BLOCKERS)

    def pulls(self, heads: Mapping[str, Collection[str]]) -> Mapping[str, Sequence[Pull] | None]:
        raise _cannot(Ability.PULLS)

    def pull(self, root: str, number: int) -> Pull:
        raise _cannot(Ability.PULLS)

    def pull_comments(self, root: str, number: int) -> Sequence[Comment]:
        return ()

    def comment(self, root: str, key: str, author: str, body: str) -> None:
        raise _cannot(Ability.COMMENT)

    def add_label(self, root: str, key: str, label: str) -> None:
        raise _cannot(Ability.LABEL)

    def remove_label(self, root: str, key: str, label: str) -> None:
        raise _cannot(Ability.LABEL)

    def close(self, root: str, key: str) -> None:
        raise _cannot(Ability.CLOSE)

    def claim(self, root: str, key: str) -> None:
        raise _cannot(Ability.STATUS)

    def set_status(self, root: str, key: str, is_working: bool) -> None:
        raise _cannot(Ability.STATUS)

    def create_issue(self, root: str, new: NewIssue) -> Issue:
        raise _cannot(Ability.CREATE_ISSUE)

    def create_label(self, root: str, label: str) -> None:
        raise _cannot(Ability.CREATE_LABEL)

    def create_pull(self, root: str, new: NewPull) -> Pull:
        raise _cannot(Ability.CREATE_PULL)

    def checks(self, root: str, commit: str) -> Sequence[Check]:
        raise _cannot(Ability.CHECKS)

    def check_output(self, root: str, commit: str, check: Check) -> CheckOutput:
        raise _cannot(Ability.CHECKS)

    def set_hook(self, root: str, address: str, secret: str) -> None:
        raise _cannot(Ability.HOOKS)

    def merge(self, root: str, number: int, head_commit: str) -> str:
        raise _cannot(Ability.MERGE)


def _cannot(ability: Ability) -> Refused:
    return Refused(f"This tracker cannot do that: {ability.value.replace('_', ' ')}.")


def best_pull(pulls: Sequence[Pull], head: str) -> Pull | None:
    """The pull request that counts for a branch: exact head, no fork, open or merged before closed.

    A closed one is returned only when there is no other, for showing it.
    """
    own = [pull for pull in pulls if pull.head == head and not pull.is_fork]
    live = [pull for pull in own if counts(pull)]
    candidates = live or own
    return max(candidates, key=lambda pull: pull.number) if candidates else None


def counts(pull: Pull | None) -> bool:
    """Whether a pull request counts as delivery: open or merged."""
    return pull is not None and pull.state in (PullState.OPEN, PullState.MERGED)
