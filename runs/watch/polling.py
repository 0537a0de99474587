"""The poll of watch sessions: the launch pass's answer is told to each, and what may start then."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import F

from runs.core.ports import Lab
from runs.core.states import NoticeKind
from runs.core.tick_context import TickContext
from runs.dispatch import rules as dispatch_rules
from runs.dispatch.eligibility import Queue
from runs.forges import cadence, fan_out
from runs.forges.cadence_rules import AT_ONCE
from runs.models import Settings, WatchSession
from runs.timeline import announce
from runs.watch import stepper
from runs.watch.session import Do, Poll, Step
from trackers.base import Tracker, TrackerError

logger = logging.getLogger(__name__)

MOST_HELD = 300


def claim(lab: Lab, settings: Settings, rows: Sequence[Any]) -> list[Any]:
    """Note the next poll before the queues are asked: one ready query a poll, whoever else ticks.

    Those that somebody else changed in the same moment are left out.
    """
    for row in rows:
        row.next_poll_at = lab.now() + stepper.of(row, settings).terms.poll_every
        row.look_at, row.version = row.next_poll_at, row.version + 1
    lost = {row.pk for row in stepper.store_all(rows)}
    return [row for row in rows if row.pk not in lost]


def hold_back(lab: Lab, rows: Sequence[WatchSession]) -> None:
    """Hooks that come in heaps wake every few seconds: what was asked just now is asked again soon."""
    soon = lab.now() + AT_ONCE
    woken = [row.pk for row in rows if cadence.is_woken(row.project)]
    if woken:
        held = WatchSession.objects.open().filter(pk__in=woken)
        held.update(next_poll_at=soon, look_at=soon, version=F("version") + 1)


def answered(
    tick: TickContext, rows: Sequence[Any], queues: Sequence[Queue]
) -> Mapping[int, int | None]:
    """Tell each session what its queue said; the projects that may start runs, and how many more.

    The quiet answers, which are nearly all, are stored together.
    """
    lab, by_project = tick.lab, {queue.project: queue for queue in queues}
    polls = {row.pk: poll_of(by_project[row.project_id]) for row in rows}
    for row in rows:
        if polls[row.pk].ready is None and not polls[row.pk].is_repeat:
            _tell_failure(lab, row, by_project[row.project_id])
    steps = [(row, stepper.decide(tick, row, polls[row.pk])) for row in rows]
    # What is told as idle is not quiet, so it is decided below, with the number of open issues.
    polls |= _with_blocked(lab, [row for row, done in steps if done.notice])
    quiet = [one for one in steps if _is_quiet(one[1])]
    lost = _store_quiet(lab, quiet)
    may = {row.project_id: done.most for row, done in quiet if done.do is Do.START}
    for row, done in steps:
        if row.pk in lost:
            may.pop(row.project_id, None)
        if (row.pk in lost and stepper.read_again(row)) or not _is_quiet(done):
            with tick.going_on(f"watch session {row.pk} was not stepped", watch=row.pk):
                later = stepper.advance(tick, row, polls[row.pk])
                if later is not None and later.do is Do.START:
                    may[row.project_id] = later.most
    return may


def _is_quiet(done: Step) -> bool:
    return done.do in (Do.WAIT, Do.START) and not done.notice


def _store_quiet(lab: Lab, steps: Sequence[tuple[Any, Step]]) -> Collection[int]:
    """Store these steps together; the sessions that somebody else changed meanwhile."""
    for row, done in steps:
        for name, value in stepper.changes(lab, row, done).items():
            setattr(row, name, value)
        row.version += 1
    return {row.pk for row in stepper.store_all([row for row, _ in steps])}


def poll_of(queue: Queue) -> Poll:
    """What the launch pass's answer means for a session: how many issues it could start.

    Claims that git did not list leave an issue ready: could not tell ends nothing.
    """
    if queue.ready is None:
        return Poll(None, is_repeat=queue.was_not_asked)
    return Poll(len(dispatch_rules.hopeful(queue)))


def note_held(rows: Mapping[int, Any], why: Mapping[int, str]) -> None:
    """Keep for their pages why sessions start nothing although something is ready; by project."""
    for project, text in why.items():
        row, text = rows[project], text[:MOST_HELD]
        if row.held != text:
            mine = WatchSession.objects.open().filter(pk=row.pk)
            mine.update(held=text, version=F("version") + 1)


def _tell_failure(lab: Lab, row: WatchSession, queue: Queue) -> None:
    """A poll that failed is told each time: there are three at most."""
    said = queue.tracker_error or "it gave no reason"
    text = f"watch session {row.pk} could not ask the tracker for ready issues: {said}"
    with transaction.atomic():
        if (
            WatchSession.objects.open().select_for_update(no_key=True).filter(pk=row.pk).first()
            is not None
        ):
            kind = NoticeKind.WATCH_POLL_FAILED
            announce.tell(lab, kind, text, project=row.project, watch_id=row.pk)


def _with_blocked(lab: Lab, rows: Sequence[Any]) -> Mapping[int, Poll]:
    """The answers that are told as idle, with the number of open issues."""
    if not rows:
        return {}
    roots = {(row.project.tracker, row.project.tracker_root): row.pk for row in rows}
    counts = fan_out.ask_roots(lab, roots, _open_counts)
    found = {}
    for row in rows:
        count = counts.get((row.project.tracker, row.project.tracker_root))
        found[row.pk] = Poll(0, count if isinstance(count, int) else None)
    return found


def _open_counts(tracker: Tracker, roots: Mapping[str, object]) -> Mapping[str, int | None]:
    """Open issues by root; None where the tracker does not say."""
    found: dict[str, int | None] = {}
    for root in roots:
        try:
            found[root] = tracker.open_count(root)
        except TrackerError as error:
            logger.info("open issues were not counted", extra={"root": root, "error": str(error)})
            found[root] = None
    return found
