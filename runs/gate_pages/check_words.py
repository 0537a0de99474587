"""The words and colours of gates, as every page that shows a run uses them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import CharField
from django.db.models.expressions import RawSQL

from runs.core.states import AttemptState, Gate, GateTurn
from runs.gates import attempts, levels, rules
from runs.gates.level_rules import Level
from runs.gates.rules import Unreviewed
from runs.models import Attempt, Review, Run
from runs.reviewers.rules import ReviewState

NOT_REVIEWED = Unreviewed.ALL.words
TONES = {
    "running": "info",
    "passed": "good",
    "failed": "bad",
    "error": "bad",
    "skipped": "",
    "cancelled": "",
    "waiting": "",
    "not run": "",
    NOT_REVIEWED: "warn",
    Unreviewed.PART.words: "warn",
}
# A reviewer that could not be asked and one that gave no answer: nobody has approved anything.
_REVIEWS = {ReviewState.UNAVAILABLE: NOT_REVIEWED, ReviewState.ERROR: NOT_REVIEWED}


def review(row: Review) -> str:
    """How one reviewer's review stands."""
    state = ReviewState(row.state)
    if row.is_waiting:
        return "waiting"
    if state is ReviewState.PASSED and row.reason:
        return Unreviewed.PART.words
    return _REVIEWS.get(state, state.value)


def attempt(row: Attempt) -> str:
    """How an attempt stands; one that passed without a review says so in place of it."""
    unreviewed = (
        rules.find_unreviewed(attempts.read_decisions(row))
        if row.state == AttemptState.PASSED
        else None
    )
    return f"passed, {unreviewed.words}" if unreviewed else row.state


def attempt_tone(row: Attempt) -> str:
    """Its colour: never that of what passed where nobody reviewed all of it."""
    state = attempt(row)
    return TONES.get(state, "warn" if state.startswith("passed, ") else "")


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
    if run.gate_turn == GateTurn.ASKING:
        return f"{said}: waits for a person"
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
    if levels.is_waiting(run):
        return Closing("", "issue waits for the run level")
    return None
