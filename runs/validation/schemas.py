"""What the API tells of a validation."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel

from runs.models import Validation


class Command(BaseModel):
    """One command of one attempt. `status` is null while it runs, or when a signal ended it."""

    attempt: int
    argv: list[str]
    is_running: bool
    status: int | None
    seconds: float
    tail: str


class FixerShown(BaseModel):
    number: int
    branch: str
    end: str
    commits: int
    is_accepted: bool


class ValidationShown(BaseModel):
    """`state` *nothing to check* counts as passed and proves nothing. `asked_by` is empty but for one
    that a person asked for after the session had ended."""

    number: int
    count: int
    state: str
    step: str
    reason: str
    commit: str
    attempt: int
    asked_by: str
    results: list[Command]
    fixers: list[FixerShown]
    began_at: datetime
    ended_at: datetime | None


class Validations(BaseModel):
    items: list[ValidationShown]
    next: int | None


def validation(row: Validation) -> ValidationShown:
    """A validation whose fixers were read with it."""
    names = ("attempt", "argv", "is_running", "status", "seconds", "tail")
    same = ("number", "count", "state", "step", "reason", "commit", "attempt", "asked_by")
    times = ("began_at", "ended_at")
    return ValidationShown(
        **{name: getattr(row, name) for name in (*same, *times)},
        results=[Command(**{name: one[name] for name in names}) for one in row.results],
        fixers=[
            FixerShown(
                number=one.number,
                branch=one.branch,
                end=one.end,
                commits=one.commits,
                is_accepted=one.accepted_at is not None,
            )
            for one in sorted(row.fixers.all(), key=lambda one: one.number)
        ],
    )
