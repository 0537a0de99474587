"""The words and colours of gates, as every page that shows a run uses them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import CharField
from django.db.models.expressions import RawSQL

from runs.core.states import AttemptState, Gate, GateTurn
from runs.gates import levels
from runs.gates.level_rules import Level
from runs.models import Attempt, Run

TONES = {
    "running": "info",
    "passed": "good",
    "failed": "bad",
    "error": "bad",
    "skipped": "",
    "cancelled": "",
    "waiting": "",
    "not run": "",
    "unavailable": "warn",
}


def gate_at() -> RawSQL:
    """At which gate a run's attempt is, read along with runs. As SQL, since every board asks."""
    sql = (
        f"SELECT gate FROM {Attempt._meta.db_table} AS attempt "  # noqa: S608
        f"WHERE attempt.run_id = {Run._meta.db_table}.id AND attempt.state = %s"
    )
    return RawSQL(sql, [AttemptState.RUNNING.value], CharField())  # noqa: S611


def checking(run: Run) -> str:
    """Where a checking run stands: "checking (attempt 2): clean room"."""
    said, _, gate = where(run).partition(": ")
    return f"checking ({said}): {gate}" if gate else f"checking ({said})"


def where(run: Run) -> str:
    """At which attempt a checking run is, and where that stands: "attempt 2: clean room"."""
    begins = run.gate_turn == GateTurn.BEGIN
    said = f"attempt {run.attempts + begins or 1}"
    gate = str(getattr(run, "gate_at", None) or "")
    if gate:
        return f"{said}: {Gate(gate).words.lower()}"
    return f"{said}: about to begin" if begins else said


def state(run: Run) -> str:
    """The state of an active run as a person reads it."""
    return checking(run) if run.is_checking else run.state


def is_gated(run: Run) -> bool:
    """Whether the gates of its project prove its end, or have been at work on it."""
    return bool(run.attempts) or run.is_checking or run.is_gated


@dataclass(frozen=True, slots=True)
class Closing:
    """What becomes of the issue of a run whose gates passed. `at`: since when that is so."""

    tone: str
    text: str
    at: datetime | None = None


def closing(run: Run, level: Level | None = None) -> Closing | None:
    """Whether labsite closed the issue; None for a run whose work did not pass the gates.

    With its `level` also whether that is still to come.
    """
    if run.closed_at is not None:
        return Closing("good", "issue closed", run.closed_at)
    if run.close_asked_at is not None:
        return Closing("info", "closing the issue", run.close_asked_at)
    if level is not None and level.standing.needs_somebody:
        return Closing("warn", "issue stays open")
    if levels.waits(run):
        return Closing("", "issue waits for the run level")
    return None
