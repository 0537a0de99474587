"""What can be done with a pull request, which issues it closes, what it compares, what its checks say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from trackers.base import Check, CheckState, PullState

SHOWN_FILES = 12

_CLOSING = re.compile(
    r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?[ \t]+#0*([1-9][0-9]{0,8})\b", re.IGNORECASE
)


class Way(StrEnum):
    """How two branches come together, as git says it."""

    HELD = "held"  # the base has everything already
    FORWARD = "forward"  # the base only has to move forward
    CLEAN = "clean"  # a merge commit is needed, and git can make it
    CONFLICT = "conflict"
    STRANGERS = "strangers"  # they have no commit in common


@dataclass(frozen=True, slots=True)
class Joined:
    """What git made of two commits. `tree` is the merged content, there only when it is clean."""

    way: Way
    tree: str = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MergeCommit:
    """A commit to be made: its content, the commits it joins, and who asked for it."""

    tree: str
    parents: Sequence[str]
    message: str
    author: str
    at: datetime


class Merging(Protocol):
    """Git joins branches without a worktree, and without settings that an agent could have made."""

    def join(self, repo: Path, into: str, head: str) -> Joined:
        """What merging the commit `head` into the commit `into` gives. Raises SeamError."""

    def make_merge(self, repo: Path, wanted: MergeCommit) -> str:
        """Make a merge commit and return its id; no ref knows it yet. Raises SeamError."""

    def push_commit(
        self, repo: Path, branch: str, commit: str, seen: str, token: str, url: str
    ) -> None:
        """Let origin's branch name `commit`, if it still names `seen`.

        Raises `Moved` when it does not, `Rejected` when origin said no: then nothing has changed.
        Raises SeamError otherwise, and then it may have happened.
        """

    def delete_pushed(self, repo: Path, branch: str, seen: str, token: str, url: str) -> None:
        """Delete origin's branch, if it still names `seen`. Raises as `push_commit` does."""


class MergeKind(StrEnum):
    """What the merge button can say."""

    MERGED = "merged"
    CLOSED = "closed"
    BUSY = "busy"
    HEAD_GONE = "head_gone"
    BASE_GONE = "base_gone"
    UNKNOWN = "unknown"
    DELIVERED = "delivered"
    NOTHING = "nothing"
    CONFLICT = "conflict"
    STRANGERS = "strangers"
    FORWARD = "forward"
    COMMIT = "commit"


@dataclass(frozen=True, slots=True)
class MergeFacts:
    """What is known of one pull request. None and an `error` mean "could not tell".

    `into` is where it would go now: its own `base`, or the default branch when origin has no such
    branch any more. `is_delivered`: what it was opened with is in there.
    """

    state: str
    head: str
    base: str
    into: str
    head_tip: str | None = None
    into_tip: str | None = None
    by: str = ""
    is_busy: bool = False
    joined: Joined | None = None
    is_delivered: bool | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the page says beside the merge button, and whether it may be pressed."""

    kind: MergeKind
    text: str
    files: tuple[str, ...] = ()

    @property
    def can_merge(self) -> bool:
        return self.kind in (MergeKind.FORWARD, MergeKind.COMMIT, MergeKind.DELIVERED)

    @property
    def is_trouble(self) -> bool:
        """Whether a person has to do something elsewhere before it can be merged."""
        return self.kind in (
            MergeKind.HEAD_GONE,
            MergeKind.BASE_GONE,
            MergeKind.UNKNOWN,
            MergeKind.CONFLICT,
            MergeKind.STRANGERS,
        )


def verdict(facts: MergeFacts) -> Verdict:
    """What can be done with a pull request now. What could not be told is never mergeable."""
    ended = _ended(facts)
    if ended is not None:
        return ended
    if facts.error:
        return Verdict(
            MergeKind.UNKNOWN, f"Whether it can be merged could not be told: {facts.error}"
        )
    gone = _gone(facts)
    if gone is not None:
        return gone
    if facts.joined is None:
        return Verdict(MergeKind.UNKNOWN, "Whether it can be merged could not be told.")
    return _joined(facts, facts.joined)


def closing(texts: Iterable[str]) -> tuple[int, ...]:
    """The issues that these texts close, each once, in order: `Closes #7`, `fixed: #8`."""
    found = (int(number) for text in texts for number in _CLOSING.findall(text))
    return tuple(dict.fromkeys(found))


def files_words(files: Sequence[str]) -> str:
    """The files of a conflict as part of a sentence."""
    shown = ", ".join(files[:SHOWN_FILES])
    more = len(files) - SHOWN_FILES
    return f"{shown} and {more} more" if more > 0 else shown


def _ended(facts: MergeFacts) -> Verdict | None:
    if facts.state == "merged":
        who = f" by {facts.by}" if facts.by else ""
        return Verdict(MergeKind.MERGED, f"It was merged into {facts.base}{who}.")
    if facts.state == "closed":
        return Verdict(MergeKind.CLOSED, "It was closed without a merge. Its branch was kept.")
    if facts.is_busy:
        return Verdict(MergeKind.BUSY, f"{facts.by} is merging it just now.")
    return None


def _gone(facts: MergeFacts) -> Verdict | None:
    if facts.head_tip is None:
        return Verdict(
            MergeKind.HEAD_GONE,
            f"Origin has no branch {facts.head} any more, so there is nothing that could be "
            "merged. Push the branch again, or close the pull request.",
        )
    if facts.into_tip is None:
        return Verdict(
            MergeKind.BASE_GONE,
            f"Origin has no branch {facts.into}, so there is nowhere to merge it.",
        )
    return None


def _joined(facts: MergeFacts, joined: Joined) -> Verdict:
    into = facts.into
    if into != facts.base:
        into = f"{into} (the branch {facts.base} is not on origin any more)"
    match joined.way:
        case Way.HELD if facts.is_delivered:
            return Verdict(
                MergeKind.DELIVERED,
                f"All its commits are in {into} already. Mark it as merged.",
            )
        case Way.HELD:
            return Verdict(
                MergeKind.NOTHING,
                f"There is nothing to merge: {into} has everything that {facts.head} has.",
            )
        case Way.FORWARD:
            return Verdict(MergeKind.FORWARD, f"Ready to merge into {into} (fast-forward).")
        case Way.CLEAN:
            return Verdict(MergeKind.COMMIT, f"Ready to merge into {into} (merge commit).")
        case Way.STRANGERS:
            return Verdict(
                MergeKind.STRANGERS,
                f"{facts.head} and {into} have no commit in common, so they cannot be merged here.",
            )
    return Verdict(
        MergeKind.CONFLICT,
        f"It cannot be merged as it is: {into} and {facts.head} change the same lines. Bring "
        f"{facts.into} into the branch, settle the conflicts there and push.",
        joined.files,
    )


MOVES_SECONDS, RESTS_SECONDS = 30, 120
_FIRST = (CheckState.FAILED, CheckState.RUNNING, CheckState.PASSED)


def in_order(checks: Sequence[Check]) -> list[Check]:
    """What failed first, then what runs; each by name."""
    return sorted(checks, key=lambda one: (_FIRST.index(one.state), one.name.casefold()))


def in_words(checks: Sequence[Check]) -> str:
    """All of them in a few words."""
    if not checks:
        return "no checks yet"
    count = Counter(one.state for one in checks)
    if count[CheckState.PASSED] == len(checks):
        return f"all {len(checks)} passed" if len(checks) > 1 else "passed"
    told = [f"{count[state]} {state}" for state in _FIRST if count[state]]
    return ", ".join(told)


def worst(checks: Sequence[Check]) -> CheckState | None:
    """The state that stands for all; None without any."""
    return min((one.state for one in checks), key=_FIRST.index, default=None)


def again_seconds(state: PullState | None, checks: Sequence[Check] | None) -> int | None:
    """When to look again at a pull request that somebody has before them; None when it is over.

    Soon while checks run or have not begun, else seldom: a commit, a merge, or an answer may come.
    None for what the tracker did not tell.
    """
    if state in (PullState.MERGED, PullState.CLOSED):
        return None
    if checks is None:
        return RESTS_SECONDS
    moves = not checks or any(one.state == CheckState.RUNNING for one in checks)
    return MOVES_SECONDS if moves else RESTS_SECONDS


_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")

NO_COMMITS = "labsite does not know which commits this pull request is about, so its changes cannot be shown."
BRANCH_GONE = "The branch is not on origin any more. This is what was last seen of it."


@dataclass(frozen=True, slots=True)
class PullFacts:
    """What is known of a pull request's ends. A tip is None when there is no such branch."""

    is_open: bool
    base: str
    head: str
    stored_base: str = ""
    stored_head: str = ""
    base_tip: str | None = None
    head_tip: str | None = None


@dataclass(frozen=True, slots=True)
class Ends:
    """The commits to compare: what `head` has changed since it left `base`. `note` is for the page."""

    base: str = ""
    head: str = ""
    note: str = ""

    @property
    def are_known(self) -> bool:
        return bool(self.base and self.head)


def ends(facts: PullFacts) -> Ends:
    """An open one follows its branches; one that has ended keeps the commits that it ended with.

    Branches live on after that: a merged head is in the base, and a name may be used again.
    """
    if facts.is_open:
        base = facts.base_tip or facts.stored_base
        head = facts.head_tip or facts.stored_head
        note = "" if facts.head_tip else BRANCH_GONE
    else:
        base, head, note = facts.stored_base or facts.base_tip or "", facts.stored_head, ""
    if not (is_commit(base) and is_commit(head)):
        return Ends(note=NO_COMMITS)
    return Ends(base, head, note)


def is_commit(text: str) -> bool:
    """Whether a text is a full commit id, and nothing that git could take for an option."""
    return bool(_COMMIT.fullmatch(text))
