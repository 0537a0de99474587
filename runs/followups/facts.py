"""What is known of a run that somebody wants to go on with: rows, git, its tracker."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from django.db.models import Q

from runs.agents import orders
from runs.core.ports import Lab, SeamError
from runs.core.states import AgentMode, Outcome
from runs.followups.loop_rules import TakeUp
from runs.followups.rules import Ended, Place
from runs.loops import options
from runs.models import AgentProfile, Discarding, LoopTerms, Run, Settings, StartRequest
from trackers.account import awaited
from trackers.base import Ability, PullState, Tracker, Unreachable, best_pull

logger = logging.getLogger(__name__)

MOST_BEFORE = 100  # runs that went on one after the other


def stored(lab: Lab, run: Run) -> Ended:
    """What labsite knows by itself, and git here."""
    return Ended(
        key=run.issue_key,
        branch=run.branch,
        outcome=run.outcome,
        did_start=run.did_start,
        is_settled=run.settled_at is not None,
        is_here=run.host == lab.host,
        is_adopted=run.is_adopted,
        newer=newer(run),
        is_discarding=Discarding.objects.filter(
            project=run.project_id, branch=run.branch, error=""
        ).exists(),
        place=_place(lab, run),
        pull=pull_of(run),
        pull_state="open",
    )


def asked(lab: Lab, run: Run) -> Ended:
    """The same with what its tracker says now. Raises TrackerError."""
    found = stored(lab, run)
    tracker = lab.tracker_for(run.project.tracker) if run.project.tracker else None
    if tracker is None:
        return found
    with awaited():
        return _of_tracker(tracker, run, replace(found, pull=None, pull_state=""))


def _of_tracker(tracker: Tracker, run: Run, found: Ended) -> Ended:
    root = run.project.tracker_root
    issues = tracker.still_open({root: [run.issue_key]}).get(root)
    if issues is None:
        raise _trouble(tracker, root)
    found = replace(found, is_issue_open=any(one.key == run.issue_key for one in issues))
    if Ability.PULLS not in tracker.abilities:
        return found
    pulls = tracker.pulls({root: [run.branch]}).get(root)
    if pulls is None:
        raise _trouble(tracker, root)
    began = _began(run)
    mine = [
        one
        for one in pulls
        if one.state is PullState.OPEN or one.created_at is None or one.created_at >= began
    ]
    pull = best_pull(mine, run.branch)
    if pull is None:
        return found
    return replace(found, pull=pull.number, pull_state=pull.state.value)


def _began(run: Run) -> datetime:
    """When the issue was claimed of which this run is a part; what was merged before is of another."""
    for _ in range(MOST_BEFORE):
        if run.continues is None:
            break
        run = run.continues
    return run.requested_at


def _trouble(tracker: Tracker, root: str) -> Exception:
    return tracker.trouble(root) or Unreachable("The tracker could not be read.")


def pull_of(run: Run) -> int | None:
    """The pull request that a run delivered, or was to change."""
    return run.pull_number or run.amends


def newer(run: Run) -> int | None:
    """The newest run of the same issue that came after this one; a start that failed is none."""
    rows = Run.objects.begun().filter(
        project=run.project_id, issue_key=run.issue_key, pk__gt=run.pk
    )
    return rows.order_by("-pk").values_list("pk", flat=True).first()


def agent(run: Run) -> AgentProfile | None:
    """Which agent would go on: the run's own while there is one."""
    return run.profile or run.project.agent or Settings.current().agent


def has_session(run: Run) -> bool:
    """Whether its agent can be started in the session that it had."""
    return orders.goes_on(run, run.agent_session)


def take_up(run: Run) -> TakeUp:
    """What decides whether it is taken up as a loop of fresh turns."""
    terms = _loop_terms(run)
    found = _find_turn_agent(run, terms)
    can_resume = has_session(run)
    return TakeUp(
        is_loop=run.is_loop,
        is_gated=run.project.has_gates,
        is_loop_anyway=(terms is not None and terms.is_on) or was_taken_up(run),
        can_resume=can_resume,
        has_failed=can_resume and _has_failed(run),
        agent=found.name if found is not None else "",
    )


def find_turn_agent(run: Run) -> AgentProfile | None:
    """Whose turns take a run up: the agent of its project's loops, else the one that would go on.

    None where neither ends by itself. A project that works in loops has said whose they are.
    """
    return _find_turn_agent(run, _loop_terms(run))


def was_taken_up(run: Run) -> bool:
    """Whether a run is a loop because it was asked for as one; who goes on with it is one too."""
    if not run.is_loop:
        return False
    asked = StartRequest.objects.filter(run=run).values_list("loop_options", flat=True)
    return any(options.is_loop(one) for one in asked)


def _loop_terms(run: Run) -> LoopTerms | None:
    """The loop settings of its project, be they on or off."""
    terms = LoopTerms.objects.filter(project=run.project_id)
    return terms.select_related("profile", "project__agent").first()


def _find_turn_agent(run: Run, terms: LoopTerms | None) -> AgentProfile | None:
    found = terms.find_turn_agent(Settings.current().agent) if terms is not None else None
    if terms is not None and terms.is_on:
        return found
    own = found or agent(run)
    return own if own is not None and own.mode == AgentMode.ONE_SHOT else None


def _has_failed(run: Run) -> bool:
    """Whether its agent's session could not be gone on with, by itself or in a run that went on."""
    tried = Run.objects.filter(Q(pk=run.pk) | Q(continues=run))
    return tried.filter(outcome=Outcome.FAILED, resume_failures__gt=0).exists()


def _place(lab: Lab, run: Run) -> Place | None:
    try:
        tip = lab.repos.tip(run.project.repo(lab.paths), f"refs/heads/{run.branch}")
    except SeamError as error:
        logger.info("branch was not looked at", extra={"run_id": run.pk, "error": str(error)})
        return None
    if tip is None:
        return Place.GONE
    is_there = bool(run.worktree) and Path(run.worktree).is_dir()
    return Place.WORKTREE if is_there else Place.BRANCH
