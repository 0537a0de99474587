"""What a receipt of a run holds, version 1. Null, wherever it stands, means "was not seen"."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

VERSION = 1


class Text(BaseModel):
    """A text as it stands here, without secrets. `bytes` and `sha256` are of `text` in UTF-8.

    `is_cut`: there was more than `text` holds.
    """

    text: str
    bytes: int
    sha256: str
    is_cut: bool


class ReceiptRun(BaseModel):
    id: int
    project: str
    host: str
    state: str
    outcome: str | None
    reason: str
    started_by: str
    agent: str
    model: str
    effort: str
    session: str
    continues: int | None
    requested_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    took_seconds: int | None
    exit_status: int | None
    exit_signal: int | None


class ReceiptIssue(BaseModel):
    key: str
    title: str
    tracker: str


class ReceiptCommit(BaseModel):
    id: str
    at: datetime
    subject: str


class ReceiptBase(BaseModel):
    """From which commit of which branch the run began, and what it left on its own."""

    branch: str
    commit: str | None
    own_branch: str
    head: str | None
    commits: list[ReceiptCommit]
    pull_number: int | None
    pull_url: str


class ReceiptFile(BaseModel):
    """A changed file; `kind` is git's letter, `added` and `removed` are null for a binary one."""

    path: str
    kind: str
    added: int | None
    removed: int | None
    is_committed: bool


class ReceiptDiff(BaseModel):
    """Everything changed since `base.commit`, committed or not. `files` is null where git failed."""

    files: list[ReceiptFile] | None
    more_files: int
    patch: Text | None


class ReceiptCommand(BaseModel):
    """A command in the agent's own record, which the agent could write; `exit_code` null: no end seen."""

    at: str | None
    command: str
    exit_code: int | None


class ReceiptCommands(BaseModel):
    items: list[ReceiptCommand]
    left_out: int


class ReceiptGate(BaseModel):
    gate: str
    state: str
    reasons: list[str]


class ReceiptAttempt(BaseModel):
    """One attempt at the gates of the project, as labsite judged it."""

    number: int
    state: str
    commit: str
    began_at: datetime
    ended_at: datetime | None
    reason: str
    gates: list[ReceiptGate]


class ReceiptCost(BaseModel):
    """What the agent reported; null: not reported."""

    tokens_in: int | None
    tokens_cached: int | None
    tokens_out: int | None
    cost_usd: float | None
    turns: int | None


class ReceiptEntry(BaseModel):
    id: int
    at: datetime
    kind: str
    text: str
    by: str


class ReceiptTimeline(BaseModel):
    """Oldest first; of more entries than fit, the first and the last."""

    items: list[ReceiptEntry]
    left_out: int


class ReceiptRecord(BaseModel):
    """A file on disk, with the SHA-256 of its bytes; null where it could not be read whole."""

    path: str
    bytes: int | None
    sha256: str | None


class Receipt(BaseModel):
    """One run on one page. `checks` is null in a project without gates."""

    kind: Literal["labsite run receipt"] = "labsite run receipt"
    schema_version: Annotated[int, Field(description="Of this shape; 1 as long as it fits.")]
    made_at: datetime
    run: ReceiptRun
    issue: ReceiptIssue
    prompt: Text | None
    base: ReceiptBase
    commands: ReceiptCommands | None
    diff: ReceiptDiff
    checks: list[ReceiptAttempt] | None
    cost: ReceiptCost
    timeline: ReceiptTimeline
    records: list[ReceiptRecord] | None
    not_seen: Annotated[list[str], Field(description="What is missing here, and why.")]
