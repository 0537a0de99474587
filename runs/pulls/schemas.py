"""What the HTTP API answers about pull requests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pydantic import BaseModel

from runs.api.schemas import Comment
from runs.pulls.proof_rules import ProofState
from runs.pulls.rules import MergeKind
from trackers.base import Check, CheckState, PullState
from trackers.base import Pull as Told


class PullRow(BaseModel):
    """A pull request as a list shows it."""

    number: int
    title: str
    author: str
    state: PullState
    head: str
    base: str
    created_at: datetime
    updated_at: datetime


class Pull(PullRow):
    """A pull request with its text. Of a merged one: by whom, when, and what its base named then."""

    body: str
    head_commit: str
    merged_by: str
    merged_at: datetime | None
    merge_commit: str


class Proof(BaseModel):
    """What the project's own checks say of the head."""

    state: ProofState
    text: str


class Mergeable(BaseModel):
    """Whether a pull request can be merged, by origin as labsite last saw it.

    `head` and `into` are what would be merged where: send them back with the merge.
    """

    can_merge: bool
    code: MergeKind
    text: str
    files: list[str]
    head: str | None
    into: str
    checks: Proof


class MergeDone(BaseModel):
    """The pull request as it is now, and the issues that its words closed."""

    pull: Pull
    closed_issues: list[int]


class PullComment(Comment):
    """A comment on a pull request. `path` is empty where it is about the whole."""

    path: str
    line: int | None
    side: str
    commit: str
    quote: str


class PullComments(BaseModel):
    items: list[PullComment]
    next: int | None


class Pulls(BaseModel):
    items: list[PullRow]
    next: int | None


class PullCheck(BaseModel):
    """One check of a forge; `url` is where its log is, or empty."""

    name: str
    state: CheckState
    url: str


class RunPull(BaseModel):
    """A run's pull request where it is, and the checks of its head."""

    number: int
    title: str
    state: PullState
    url: str
    head: str
    base: str
    head_commit: str
    checks: list[PullCheck] | None
    trouble: str


def run_pull(pull: Told, checks: Sequence[Check] | None, trouble: str) -> RunPull:
    """As a tracker told of it."""
    rows = None
    if checks is not None:
        rows = [PullCheck(name=one.name, state=one.state, url=one.url) for one in checks]
    names = ("number", "title", "state", "url", "head", "base", "head_commit")
    return RunPull(**{name: getattr(pull, name) for name in names}, checks=rows, trouble=trouble)
