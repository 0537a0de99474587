"""The row of a run. Rendered once for what it shows, however many pages and sockets show it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from runs.accounts import held
from runs.core.states import Wait
from runs.gate_pages import check_words
from runs.models import Run
from runs.overview.board import RunRow
from runs.transcript import panel
from runs.waits import rules as wait_rules
from runs.web import addresses, words

ROWS_KEPT = 4096
METER_SECONDS = 15  # the browser counts on by itself; a finer step would render every row anew
REASON_CHARACTERS = 160


@dataclass(frozen=True, slots=True)
class RunCard:
    """Everything that the row shows and nothing else, so that equal cards have equal HTML."""

    pk: int
    url: str
    ref: str
    title: str
    tone: str
    is_busy: bool
    is_adopted: bool
    agent: panel.Pill | None
    outcome: str
    outcome_tone: str
    started: str
    since: str
    limit: str
    max_seconds: int
    used_seconds: int
    is_low: bool
    is_active: bool
    is_held: bool
    is_counting: bool
    held_until: str
    held_words: str
    stop_url: str
    tail: str


def html(row: RunRow, now: datetime, can_act: bool) -> SafeString:
    """The row as HTML."""
    return _rendered(card(row, now, can_act))


def card(row: RunRow, now: datetime, can_act: bool) -> RunCard:
    """What a run's row shows at a moment to somebody who may act, or only look."""
    run = row.run
    wait = held.wait_of(run, now)
    step = METER_SECONDS if row.used_seconds >= METER_SECONDS else 1
    return RunCard(
        pk=run.pk,
        url=addresses.of("runs:run", run.pk),
        ref=f"{run.project.name} #{run.issue_key}",
        title=run.short_title or "(no title known)",
        tone=row.tone,
        is_busy=run.state == "starting",
        is_adopted=run.is_adopted,
        agent=_pill(run, now),
        outcome=words.outcome_words(run.outcome),
        outcome_tone=words.outcome_tone(run.outcome) if run.outcome else "",
        started=words.iso(run.counted_from) if run.counted_from else "",
        since=words.duration(row.spent.used) if run.started_at else "",
        limit=words.duration(row.spent.limit),
        max_seconds=row.limit_seconds,
        used_seconds=row.used_seconds // step * step,
        is_low=row.spent.is_low,
        is_active=run.is_active,
        is_held=run.is_held,
        is_counting=run.is_counting,
        held_until=words.iso(wait.until) if wait is not None and wait.until else "",
        held_words=words.clock(wait.until) if wait is not None and wait.until else "",
        stop_url=addresses.of("runs:stop", run.pk) if can_act and run.is_active else "",
        tail=wait.text if wait is not None else _tail(run),
    )


def _pill(run: Run, now: datetime) -> panel.Pill | None:
    """What keeps its agent, or where its gates stand; a held run says so in place of its clock."""
    if run.is_checking:
        return panel.Pill("live", check_words.checking(run), "", "")
    return None if run.is_held else panel.pill(run, now)


def _tail(run: Run) -> str:
    """The last thing that is known, on one line."""
    if run.outcome:
        return words.one_line(run.reason, REASON_CHARACTERS)
    if run.is_waiting:
        rests = "; its budget rests" if run.budget_stopped_at else ""
        return f"{wait_rules.sentence(Wait(run.waits), '', run.waits_note)}{rests}"
    if run.last_line or run.is_checking:
        return run.last_line
    return "making branch and worktree" if run.state == "starting" else "no output yet"


@lru_cache(maxsize=ROWS_KEPT)
def _rendered(shown: RunCard) -> SafeString:
    return render_to_string("lifecycle/_row.html", {"card": shown})
