"""All runs of a filter as CSV and as NDJSON, some at a time, with what is secret masked."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from runs.history import finding
from runs.history.filters import Wanted
from runs.models import Run
from runs.web import words

Mask = Callable[[str], str]
# What a spreadsheet takes for a formula, also behind what it leaves out at the front.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
KINDS = {"csv": "text/csv", "ndjson": "application/x-ndjson"}
COLUMNS = (
    *("id", "project", "issue", "title", "branch", "state", "outcome", "reason"),
    *("agent", "model", "effort", "started_by", "requested_at", "started_at", "ended_at"),
    *("took_seconds", "tokens_in", "tokens_out", "cost_usd", "pull_number", "pull_url", "url"),
)


def values(run: Run, url: str, mask: Mask) -> dict[str, Any]:
    """One run by the names of `COLUMNS`; what nobody knows is None."""
    times = {
        name: words.iso(when) if (when := getattr(run, name)) else None
        for name in ("requested_at", "started_at", "ended_at")
    }
    free = {
        "title": run.issue_title,
        "reason": run.reason,
        "branch": run.branch,
        "agent": run.agent,
        "model": run.agent_model or run.model,
        "pull_url": run.pull_url,
    }
    found: dict[str, Any] = {
        "id": run.pk,
        "project": run.project.name,
        "issue": run.issue_key,
        "state": run.state,
        "outcome": run.outcome,
        "effort": run.effort,
        "started_by": run.started_by,
        "took_seconds": run.took_seconds,
        "tokens_in": run.tokens_in,
        "tokens_out": run.tokens_out,
        "cost_usd": None if run.cost_usd is None else str(run.cost_usd),
        "pull_number": run.pull_number,
        "url": f"{url}{run.pk}/",
        **times,
        **{name: mask(text) for name, text in free.items()},
    }
    return {name: found[name] for name in COLUMNS}


def rows(wanted: Wanted, at: datetime, url: str, mask: Mask) -> Iterator[list[dict[str, Any]]]:
    """All runs of a filter as they are at a moment. `url`: where the pages of runs are."""
    for runs in finding.every(wanted, at):
        yield [values(run, url, mask) for run in runs]


def as_csv(pieces: Iterator[list[dict[str, Any]]]) -> Iterator[str]:
    """With a line of names; no cell begins as a formula does."""
    yield _lines([COLUMNS])
    for piece in pieces:
        if piece:
            yield _lines([[_cell(one[name]) for name in COLUMNS] for one in piece])


def as_ndjson(pieces: Iterator[list[dict[str, Any]]]) -> Iterator[str]:
    """One JSON object per line."""
    for piece in pieces:
        if piece:
            yield "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in piece)


def _lines(cells: Any) -> str:
    written = io.StringIO()
    csv.writer(written).writerows(cells)
    return written.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip(" \n").startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None else value
