"""Notices that somebody closed the issue of a run while its agent works: told, or the run is stopped."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from django.db import transaction

from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.core.states import ClosedIssue, NoticeKind, Outcome, RunState
from runs.core.tick_context import TickContext
from runs.forges import cadence, fan_out
from runs.forges.fan_out import Root, Silence
from runs.lifecycle import outcomes
from runs.models import Project, Run
from runs.telemetry import log_context
from runs.timeline import announce
from runs.waits import closed_issue_rules as rules
from runs.waits.closed_issue_rules import AskFacts, ClosedFacts, Step

CLOSED = "issue {} was closed while its agent works. Press Stop if its work is not wanted any more"
OPEN_AGAIN = "issue {} is open again"
STOPPED = "its issue was closed while the agent worked; worktree and branch kept"
ALLOWED = "goes on though issue {} was closed"
NOT_ASKED = "Nobody is asked about it any more: {}. Nothing was changed."


class NotAskedError(ActRefused):
    """The run does not wait for a word about its closed issue."""

    code = "not_asked"


def is_asked(run: Run) -> bool:
    """Return whether a person has still to say if this run goes on, whose issue is closed."""
    return run.state == RunState.WORKING and rules.is_asked(
        _choose(run), run.issue_closed_at, run.allowed_by
    )


def allow(lab: Lab, run: Run, *, by: str) -> None:
    """Let a run go on though its issue was closed; allowed once, whoever else does at the same moment.

    Raises NotAskedError when it has ended, or its issue is open again.
    """
    with transaction.atomic():
        rows = Run.objects.working().filter(pk=run.pk, issue_closed_at__isnull=False, allowed_by="")
        if rows.update(allowed_by=by):
            text = ALLOWED.format(run.issue_key)
            announce.tell(lab, NoticeKind.RUN_STEP, text, run=run, by=by)
            return
    run.refresh_from_db()
    if run.state == RunState.WORKING and run.issue_closed_at is not None:
        return  # somebody else has said so
    why = "the run does not work now"
    if run.outcome:
        why = "the run has ended"
    elif run.issue_closed_at is None:
        why = f"issue {run.issue_key} is open again"
    raise NotAskedError(NOT_ASKED.format(why))


def look(tick: TickContext, runs: Sequence[Run]) -> list[Run]:
    """Look whether issues of working runs were closed; return the runs that this ended.

    Trackers without pull requests are left out: there the agent itself may close its issue.
    """
    groups: dict[Root, list[Run]] = defaultdict(list)
    for run in runs:
        if run.state == RunState.WORKING and not run.is_loop and not run.is_adopted:
            groups[run.project.tracker, run.project.tracker_root].append(run)
    due = {root: group for root, group in groups.items() if _is_due(tick, group[0].project)}
    if not due:
        return []
    began = tick.lab.now()
    wanted = {root: {run.issue_key for run in group} for root, group in due.items()}
    answers = fan_out.ask_roots(tick.lab, wanted, lambda tracker, some: tracker.still_open(some))
    remote = [one[0].project for one in due.values() if cadence.is_remote(tick.lab, one[0].project)]
    if remote:
        rows = Project.objects.filter(pk__in=[one.pk for one in remote])
        rows.update(issues_of_runs_asked_at=began)
    ended = []
    for root, group in due.items():
        answer = answers.get(root, Silence(""))
        found = None if isinstance(answer, Silence) else {issue.key for issue in answer}
        for run in group:
            with tick.going_on(f"run {run.pk} was not judged by its issue", **log_context.of(run)):
                if _act(tick, run, found):
                    ended.append(run)
    return ended


def _is_due(tick: TickContext, project: Project) -> bool:
    if not project.tracker or cadence.is_without_pulls(tick.lab, project):
        return False
    facts = AskFacts(
        is_local=not cadence.is_remote(tick.lab, project),
        asked_at=project.issues_of_runs_asked_at,
        hooked_at=project.issues_hooked_at,
    )
    return rules.is_due(facts, tick.lab.now())


def _act(tick: TickContext, run: Run, found: Collection[str] | None) -> bool:
    """Take the next step of one run; True when it ended."""
    is_remote = cadence.is_remote(tick.lab, run.project)
    facts = ClosedFacts(
        is_open=None if found is None else run.issue_key in found,
        closed_at=run.issue_closed_at,
        pulls_at=run.project.pulls_asked_at if is_remote else tick.now,
        choice=_choose(run),
    )
    step = rules.next_step(facts)
    if step is Step.STOP:
        return outcomes.record(tick.lab, run, Outcome.STOPPED, STOPPED, lease=tick.number)
    if step is not Step.NOTHING:
        _tell(tick, run, is_closed=step is Step.TELL)
    return False


def _choose(run: Run) -> ClosedIssue:
    """A run with which somebody went on may be about an issue that was closed before: it goes on."""
    if run.continues_id is not None or run.amends is not None:
        return ClosedIssue.GO_ON
    return ClosedIssue(run.project.on_closed_issue)


def _tell(tick: TickContext, run: Run, *, is_closed: bool) -> None:
    now = tick.lab.now()
    before: Mapping[str, object] = {"issue_closed_at": None if is_closed else run.issue_closed_at}
    rows = Run.objects.working().filter(pk=run.pk, **before)
    with transaction.atomic():
        if not rows.update(issue_closed_at=now if is_closed else None, allowed_by=""):
            return
        kind = NoticeKind.RUN_ISSUE_CLOSED if is_closed else NoticeKind.RUN_STEP
        text = CLOSED if is_closed else OPEN_AGAIN
        announce.tell(tick.lab, kind, text.format(run.issue_key), run=run)
    run.issue_closed_at, run.allowed_by = now if is_closed else None, ""
