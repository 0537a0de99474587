"""What `labctl check` ran for the agent of a run, as its page *Checks* lists it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runs.models import CheckRun
from runs.validation.command_rules import shown
from runs.web import words

MOST = 10  # the newest; older ones prove nothing of what is there now


@dataclass(frozen=True, slots=True)
class Ran:
    """One command: how it ended in a word, with its exit status and duration."""

    name: str
    text: str
    state: str
    tone: str
    status: int | None
    took: str


@dataclass(frozen=True, slots=True)
class CheckRunRow:
    """One `labctl check`. `is_of_commit`: it ran on exactly the files that the attempt is about."""

    row: CheckRun
    commands: Sequence[Ran]
    is_of_commit: bool


def of(run_id: int, tree: str) -> list[CheckRunRow]:
    """The newest of a run, `tree` being that of the attempt's commit. One query."""
    rows = CheckRun.objects.filter(run=run_id)[:MOST]
    return [
        CheckRunRow(row, [_ran(one) for one in row.results], bool(tree) and row.tree == tree)
        for row in rows
    ]


def mark(run_id: int) -> list[object]:
    """Changes with everything that they show. One query."""
    columns = ("pk", "is_running", "tree", "trouble", "results")
    return list(CheckRun.objects.filter(run=run_id).values_list(*columns)[:MOST])


def _ran(result: Mapping[str, Any]) -> Ran:
    state, tone = _state(result)
    status, seconds = result.get("status"), result.get("seconds")
    has_ended = not result.get("is_running") and not result.get("skipped")
    return Ran(
        result.get("command") or "",
        shown(result.get("argv") or ()),
        state,
        tone,
        status,
        words.took(seconds) if has_ended else "",
    )


def _state(result: Mapping[str, Any]) -> tuple[str, str]:
    if result.get("is_running"):
        return "running", "live"
    if result.get("skipped"):
        return f"not run: {result['skipped']}", ""
    if result.get("status") == 0 and not result.get("no_tests"):
        return "passed", "good"
    said = "took too long" if result.get("is_over_time") else result.get("no_tests") or "failed"
    return (f"{said} (allowed)", "warn") if result.get("allow_fail") else (said, "bad")
