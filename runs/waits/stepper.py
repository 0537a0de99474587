"""Keeps which working runs wait for a person, and tells when one begins to wait or goes on.

Asks tmux and files alone, so that no forge holds up what a person is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from runs.core import budgets
from runs.core.states import NoticeKind, RunState, Wait
from runs.core.tick_context import TickContext
from runs.lifecycle import progress
from runs.models import Run, Settings
from runs.telemetry import log_context
from runs.timeline import announce
from runs.transcript import hook_events
from runs.waits import nudging, rules
from runs.waits.rules import WaitFacts, Waiting

# What a screen alone says.
_OF_SCREEN = frozenset({Wait.QUIET, Wait.QUESTION})


def hear(tick: TickContext, runs: Sequence[Run], *, is_asked: bool) -> None:
    """Bring runs up to date with their hooks, and tell what began to wait, whatever a tracker does.

    `is_asked`: the trackers were asked in this look whether its work is delivered.
    """
    working = [run for run in runs if run.is_active and run.state == RunState.WORKING]
    hook_events.hear(tick.lab, working)
    now = tick.lab.now()  # trackers may have taken their time since the tick began
    before = now if is_asked else now - rules.UNASKED_AFTER
    fresh = [run for run in working if _is_alive(tick, run) and _stands_since(run, before)]
    if fresh:
        progress.see(tick.lab, fresh)
        note(replace(tick, now=now), fresh)


def _is_alive(tick: TickContext, run: Run) -> bool:
    seen = (tick.sightings or {}).get(run.session)
    return seen is not None and seen.alive


def _stands_since(run: Run, before: datetime) -> bool:
    """Whether it is not told yet that it waits, and may do so since a moment or earlier.

    What ended for its account's sake is held, and waits for nobody.
    """
    at = run.asked_at or _turn_ended_at(run)
    return not run.waits and not run.trouble and at is not None and at <= before


def note(tick: TickContext, runs: Sequence[Run]) -> int:
    """Store for each working run whether it waits, and for what; how many that changed."""
    changed = 0
    for run in runs:
        if run.outcome or run.state != RunState.WORKING:
            continue
        _forget_interrupt(tick, run)
        found = rules.waiting(_facts(run, tick.settings), tick.now)
        if _is_untold(run, found):
            continue
        with tick.going_on(f"run {run.pk}: what its wait does was not kept", **log_context.of(run)):
            _stop_budget(tick, run, found.kind)
        if found != Waiting(Wait(run.waits), run.waits_at, run.waits_note):
            if nudging.is_asked(tick, run, found):
                continue
            with tick.going_on(f"run {run.pk}: its wait was not kept", **log_context.of(run)):
                changed += _keep(tick, run, found)
    return changed


def _is_untold(run: Run, found: Waiting) -> bool:
    """Whether only a look at its screen, which there was none of, could tell if that still stands."""
    if run.is_screen_read or run.asks or (run.is_loop and run.waits == Wait.QUESTION):
        return False  # what an agent of a loop asks is told by its events
    return bool(_OF_SCREEN & {found.kind, run.waits})


def _facts(run: Run, settings: Settings) -> WaitFacts:
    return WaitFacts(
        asks=Wait(run.asks),
        asked_at=run.asked_at,
        question=run.question,
        shows_dialog=run.shows_dialog,
        turn_ended_at=_turn_ended_at(run),
        is_error=run.is_error,
        note=run.agent_note,
        changed_at=None if run.output else run.screen_at,
        quiet_after=timedelta(minutes=settings.quiet_minutes),
    )


def _turn_ended_at(run: Run) -> datetime | None:
    told = None if run.is_adopted or run.is_one_shot else run.turn_ended_at
    return told or run.turn_interrupted_at


def _forget_interrupt(tick: TickContext, run: Run) -> None:
    """A program that went on without telling so is not taken for one that stopped at a key."""
    if not rules.went_on(run.turn_interrupted_at, run.screen_at, tick.now):
        return
    rows = Run.objects.working().filter(pk=run.pk, turn_interrupted_at=run.turn_interrupted_at)
    rows.update(turn_interrupted_at=None, turn_interrupted_by="")
    run.turn_interrupted_at, run.turn_interrupted_by = None, ""


def _stop_budget(tick: TickContext, run: Run, kind: Wait) -> None:
    """Have its budget rest while a wait stops it, and count on after that."""
    is_stopped = rules.stops_budget(kind, run.project.waits_stop_budget)
    since = run.budget_stopped_at
    if is_stopped is (since is not None):
        return
    columns: dict[str, object] = {"budget_stopped_at": tick.now if is_stopped else None}
    rested = int(budgets.age(tick.now, since).total_seconds())
    rows = Run.objects.working().filter(pk=run.pk, budget_stopped_at=since)
    if rows.update(**columns, rested_seconds=F("rested_seconds") + rested):
        run.budget_stopped_at = tick.now if is_stopped else None
        run.rested_seconds += rested


def _keep(tick: TickContext, run: Run, found: Waiting) -> bool:
    before = Wait(run.waits)
    columns = {"waits": found.kind, "waits_at": found.since, "waits_note": found.note[:300]}
    if found.since != run.waits_at:  # what was answered to another question is no answer to this
        columns |= {"answer": "", "answered_by": "", "answered_at": None, "answered_mark": ""}
    over, is_another = 0, (found.kind, found.since) != (before, run.waits_at)
    if run.waits_at is not None and is_another and before is not Wait.QUIET:
        over = int(budgets.age(tick.now, run.waits_at).total_seconds())
    with transaction.atomic():
        rows = Run.objects.working().filter(pk=run.pk, waits=before)
        if not rows.update(**columns, waited_seconds=F("waited_seconds") + over):
            return False
        if is_another:
            announce.tell(tick.lab, *_news(run, before, found), run=run)
    for name, value in columns.items():
        setattr(run, name, value)
    run.waited_seconds += over
    return True


def _news(run: Run, before: Wait, found: Waiting) -> tuple[NoticeKind, str]:
    """What the timeline tells."""
    if found.kind is Wait.NONE:
        return NoticeKind.RUN_GOES_ON, f"the agent goes on; it {rules.past(before)}"
    # With its time, so that the next one is not taken for the same and kept from who is told outside.
    when = f", since {found.since:%H:%M:%S} UTC" if found.since else ""
    return NoticeKind.RUN_WAITS, f"{rules.sentence(found.kind, run.agent, found.note)}{when}"
