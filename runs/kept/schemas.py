"""Kept work in the shapes of the API."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from runs import models
from runs.api import asked
from runs.kept.parked import Entry
from trackers.base import PullState


class Page(BaseModel):
    """Which page of a list that git is asked for."""

    page: int = Field(1, ge=1, le=100_000)


class DiscardGiven(asked.Given):
    """The branch to let go; `even_accepted` also where labsite has still to close its issue."""

    branch: Annotated[str, Field(min_length=1, max_length=200, pattern=asked.NO_NUL)]
    even_accepted: bool = False


class Parked(BaseModel):
    """One parked branch. Null: there is none, or that one fact could not be read."""

    branch: str
    issue: str
    committed_at: datetime
    worktree: str
    is_dirty: bool | None
    ahead: int | None
    unpushed: int | None
    bytes: int | None
    outcome: str
    run: int | None
    pull: int | None
    pull_state: PullState | None


class ParkedPage(BaseModel):
    """One page of parked branches; `pulls_error` says why pull requests are not shown."""

    items: list[Parked]
    total: int
    next: int | None
    pulls_error: str


class Rescue(BaseModel):
    """The state of a branch and its worktree that was kept before it went."""

    id: int
    branch: str
    why: str
    by: str
    at: datetime
    expires_at: datetime
    commit: str
    is_dirty: bool
    had_worktree: bool
    restored_as: str
    restored_by: str


class Rescues(BaseModel):
    """A page of rescues."""

    items: list[Rescue]
    next: int | None


def parked(one: Entry) -> Parked:
    return Parked(
        branch=one.branch,
        issue=one.key,
        committed_at=one.at,
        worktree=one.path,
        is_dirty=one.is_dirty,
        ahead=one.ahead,
        unpushed=one.unpushed,
        bytes=one.bytes,
        outcome=one.outcome,
        run=one.run_id,
        pull=one.pull.number if one.pull else None,
        pull_state=one.pull.state if one.pull else None,
    )


def rescue(row: models.Rescue) -> Rescue:
    return Rescue(
        id=row.pk,
        branch=row.branch,
        why=row.why,
        by=row.by,
        at=row.at,
        expires_at=row.expires_at,
        commit=row.commit,
        is_dirty=row.is_dirty,
        had_worktree=row.had_worktree,
        restored_as=row.restored_as,
        restored_by=row.restored_by,
    )
