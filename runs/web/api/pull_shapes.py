"""What the HTTP API answers about pull requests."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel

from runs.domain.merging import MergeKind
from runs.web.api.shapes import Comment
from trackers.base import PullState


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
