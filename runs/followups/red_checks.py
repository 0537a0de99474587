"""Sends red checks of a forge back to the agent that delivered the pull request.

A row of `PullChecks` is made when a run delivers, looked at by the worker, and ends for good. Safe to
be killed anywhere: the follow-up is asked for before anything is stored, and a second look finds
the same request, or the run that came of it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from runs.core.database import prepared_with_keys
from runs.core.effects import RunEnd
from runs.core.ports import Lab
from runs.core.states import NoticeKind, Outcome
from runs.followups import acts, facts
from runs.followups import red_check_rules as rules
from runs.followups.acts import FollowUpRefused
from runs.followups.red_check_rules import Act, CheckFacts, Step, WatchState
from runs.models import PullChecks, Run, StartRequest
from runs.timeline import announce
from trackers.base import Ability, Check, CheckOutput, Pull, TrackerError

logger = logging.getLogger(__name__)

BY = "labsite"
MOST_AT_ONCE = 20


def watch_delivery(lab: Lab, end: RunEnd) -> None:
    """Begin to look at the checks of a run that delivered; called in the transaction of its outcome."""
    if end.outcome is not Outcome.SUCCEEDED:
        return
    delivered = _delivered().first(keys=[end.run_id])
    if delivered is None:
        return
    project_id, pull_number = delivered
    now = lab.now()
    before = PullChecks.objects.looked_at().filter(run__project=project_id)
    before.filter(run__pull_number=pull_number).update(state=WatchState.OVER, next_at=None)
    PullChecks.objects.get_or_create(run_id=end.run_id, defaults={"head_at": now, "next_at": now})


@prepared_with_keys(1)
def _delivered(_now: datetime, run: int) -> QuerySet[Run, Any]:
    """Name project and pull request of a run, where the project has its red checks sent back."""
    rows = Run.objects.filter(pk=run, pull_number__isnull=False)
    rows = rows.filter(project__sends_back_red_checks=True)
    return rows.values_list("project_id", "pull_number")


def request_looks(lab: Lab) -> None:
    """Ask for a look at each pull request that is due. The look itself waits for a forge."""
    now = lab.now()
    for row in PullChecks.objects.due(lab.host, now).order_by("next_at")[:MOST_AT_ONCE]:
        # Whoever moves the time asks; should the look be lost, the next one comes by itself.
        mine = PullChecks.objects.filter(pk=row.pk, next_at=row.next_at)
        if mine.update(next_at=now + rules.LATER):
            lab.queue.mirror(row.run_id)


def look(lab: Lab, run_id: int) -> None:
    """Look at the checks of one run's pull request, and do what follows. Safe to repeat."""
    watched = PullChecks.objects.looked_at().filter(run=run_id, run__settled_at__isnull=False)
    row = watched.select_related("run__project", "run__profile").first()
    tracker = None if row is None else lab.tracker_for(row.run.project.tracker)
    if row is None or tracker is None or Ability.CHECKS not in tracker.abilities:
        watched.update(state=WatchState.OVER, next_at=None)
        return
    try:
        pull = tracker.pull(row.run.project.tracker_root, row.run.pull_number or 0)
        checks = tracker.checks(row.run.project.tracker_root, pull.head_commit)
    except TrackerError as error:
        logger.info("checks were not read", extra={"run_id": run_id, "error": str(error)})
        _decide(lab, row, None, None)
        return
    _decide(lab, row, pull, checks)


def _decide(lab: Lab, row: PullChecks, pull: Pull | None, checks: Sequence[Check] | None) -> None:
    run, now = row.run, lab.now()
    if pull is not None and pull.head_commit != row.head:
        row.head, row.head_at, row.failed = pull.head_commit, now, []
    found = CheckFacts(
        is_on=run.project.sends_back_red_checks,
        state=pull.state if pull is not None else None,
        checks=checks,
        since_head=now - row.head_at,
        patience=run.project.no_checks_after,
        rounds=count_rounds(run),
        is_worked_on=facts.newer(run) is not None,
    )
    step = rules.decide(found)
    if step.act is Act.SEND_BACK and pull is not None and checks is not None:
        _send_back(lab, row, pull, rules.list_failed(checks), found.rounds + 1)
        return
    if step.act is Act.WAIT and row.state == WatchState.RED and not checks:
        step = Step(Act.END, WatchState.RED)  # what could not be told changes nothing
    before, row.state = row.state, step.state
    delay = rules.choose_delay(step, checks, found.since_head)
    row.next_at = None if delay is None else now + delay
    if checks:
        row.failed = [one.name for one in rules.list_failed(checks)]
    if step.state is WatchState.RED and before != WatchState.RED:
        row.reason = f"they were sent back {found.rounds} times"
    _store(lab, row, _describe(row) if row.state != before else "")


def count_rounds(run: Run) -> int:
    """Count how often red checks of this run's pull request were sent back."""
    asked = StartRequest.objects.filter(project=run.project_id, by=BY, wants_changes=True)
    return asked.filter(run__branch=run.branch, run__amends=run.pull_number).count()


def _send_back(
    lab: Lab, row: PullChecks, pull: Pull, failed: Sequence[Check], round_number: int
) -> None:
    """Ask for the follow-up; the row ends once a look finds the run that came of it."""
    text = rules.write_message(pull.number, pull.head_commit, failed, round_number)
    names = [one.name for one in failed]
    told = ""
    if not row.failed:  # asked for again while no run could start, it is told once
        told = f"{_subject(row)} failed ({rules.name_checks(names)}), sent back to its agent"
        told = f"{told} ({round_number} of {rules.MOST_ROUNDS})"
    row.state, row.next_at = WatchState.WATCHED, lab.now() + rules.LATER
    try:
        acts.request_changes(
            lab, row.run, text, by=BY, read_output=lambda: _read_output(lab, row.run, pull, failed)
        )
        row.failed = names
    except TrackerError as error:
        logger.info("checks were not sent back", extra={"error": str(error)})
        told = ""
    except FollowUpRefused as refused:
        told = ""
        if refused.code == "cannot_go_on":
            row.state, row.next_at = WatchState.RED, lab.now() + rules.SELDOM
            row.failed, row.reason = names, str(refused)[:500]
            told = _describe(row)
    _store(lab, row, told)


def _read_output(lab: Lab, run: Run, pull: Pull, failed: Sequence[Check]) -> str:
    """Read the ends of the logs of failed checks, as the agent is told them, without secrets."""
    tracker = lab.tracker_for(run.project.tracker)
    outputs = []
    for check in failed[: rules.READ_LOGS]:
        found = CheckOutput(why="the tracker is gone")
        try:
            if tracker is not None:
                root = run.project.tracker_root
                found = tracker.check_output(root, pull.head_commit, check)
        except TrackerError as error:
            found = CheckOutput(why=str(error))
        # Whole texts are masked, since a secret may lie where one is cut.
        log = None if found.log is None else lab.mask(rules.clean_output(found.log))
        summary = lab.mask(rules.clean_output(found.summary))
        outputs.append((check, CheckOutput(log, lab.mask(found.why), summary)))
    return rules.write_outputs(outputs, len(failed) - len(outputs))


def _store(lab: Lab, row: PullChecks, text: str) -> None:
    """Store how a row stands unless somebody ended it meanwhile, and tell the text if there is one."""
    names = ("state", "head", "head_at", "next_at", "failed", "reason")
    with transaction.atomic():
        mine = PullChecks.objects.looked_at().filter(pk=row.pk)
        if not mine.update(**{name: getattr(row, name) for name in names}):
            return
        if text:
            is_bad = row.state == WatchState.RED
            kind = NoticeKind.RUN_WARNED if is_bad else NoticeKind.RUN_STEP
            announce.tell(lab, kind, text, run=row.run)


def _subject(row: PullChecks) -> str:
    return f"the checks of pull request {row.run.pull_number}"


def _describe(row: PullChecks) -> str:
    """Describe for the timeline how checks stand; empty while there is nothing to tell."""
    of, failed = _subject(row), rules.name_checks(row.failed)
    match row.state:
        case WatchState.PASSED:
            return f"{of} passed"
        case WatchState.NO_CHECKS:
            minutes = row.run.project.no_checks_minutes
            return f"no checks ran on pull request {row.run.pull_number} within {minutes} minutes"
        case WatchState.RED:
            return f"{of} failed ({failed}) and need a person: {row.reason}"
    return ""
