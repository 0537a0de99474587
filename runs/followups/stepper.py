"""The part of a launch pass that answers whoever wants to go on with an ended run."""

from __future__ import annotations

from datetime import datetime

from django.db.models import QuerySet

from runs.accounts import holds
from runs.agents import checks
from runs.core.database import prepared
from runs.core.states import AnswerCode
from runs.core.tick_context import TickContext
from runs.dispatch import eligibility, provable, reserve, start_requests
from runs.dispatch.eligibility import Queue
from runs.dispatch.reserve import Before
from runs.dispatch.rules import Refusal, Start, free_slot, refusal
from runs.followups import facts, loop_rules, rules
from runs.followups.rules import Ended
from runs.loops import options
from runs.models import AgentProfile, Run, StartRequest
from runs.spending import gathering
from trackers.base import TrackerError


def launch_pass(tick: TickContext) -> int:
    """Answer every such request, oldest first; how many runs were put into *starting*.

    A run goes on where its worktree is, so another host's requests are left to it. Under the lease of a tick, as for starts. Raises lease.Lost.
    """
    silent: dict[int, str] = {}
    return sum([_answer(tick, asked, silent) for asked in _waiting(tick.lab.host).rows()])


@prepared
def _waiting(_now: datetime, host: str) -> QuerySet[StartRequest]:
    return (
        StartRequest.objects.filter(answer="", continues__host=host)
        .select_related("project__agent", "continues__profile", "continues__project__agent")
        .order_by("pk")
    )


def _answer(tick: TickContext, asked: StartRequest, silent: dict[int, str]) -> bool:
    """`silent` are the projects whose tracker gave no answer in this pass, with its words."""
    lab, run = tick.lab, asked.continues
    assert run is not None  # noqa: S101  (asked for)
    tick.keep_lease()
    button = "Request changes" if asked.wants_changes else "Resume"
    if start_requests.is_late(lab, asked, button):
        return False
    found = _look(tick, asked, run, silent)
    if isinstance(found, Refusal):
        start_requests.refuse(lab, asked, found)
        return False
    room = reserve.room(lab, tick.settings, tick.sightings, tick.being_made)
    for obstacle in eligibility.of_room(room):
        start_requests.not_now(lab, asked, refusal(obstacle))
        return False
    start = Start(run.issue_key, free_slot(room.taken))
    before = Before(run, asked.follow_up, found.pull)
    return start_requests.take(tick, asked, start, run.issue_title, before=before)


def _look(
    tick: TickContext, asked: StartRequest, run: Run, silent: dict[int, str]
) -> Ended | Refusal:
    """What is known of the run now, or why nothing is started."""
    is_taken_up = options.is_loop(asked.loop_options) and not run.is_loop
    profile = facts.find_turn_agent(run) if is_taken_up else facts.agent(run)
    if is_taken_up and (why := loop_rules.why_not(facts.take_up(run))):
        return Refusal(AnswerCode.CANNOT_GO_ON, why)
    for obstacle in eligibility.of_project(_queue(tick, run, profile)):
        if not obstacle.only_auto:
            return refusal(obstacle)
    if run.project_id not in silent:
        try:
            found = facts.asked(tick.lab, run)
        except TrackerError as error:
            silent[run.project_id] = str(error)
    if run.project_id in silent:
        text = f"The tracker did not answer: {silent[run.project_id]} Nothing was started."
        return Refusal(AnswerCode.TRACKER_FAILED, text)
    why = rules.why_not(found, wants_changes=asked.wants_changes)
    return Refusal(AnswerCode.CANNOT_GO_ON, why) if why else found


def _queue(tick: TickContext, run: Run, profile: AgentProfile | None) -> Queue:
    """The project's side as for a start, with the agent that goes on."""
    lab, project = tick.lab, run.project
    return Queue(
        has_tracker=bool(project.tracker) and lab.tracker_for(project.tracker) is not None,
        ready=(),
        claims=(),
        active=(),
        project=project.pk,
        state=project.state,
        has_agent=profile is not None,
        agent=profile.name if profile is not None else "",
        unfit=checks.obstacle(lab, profile) if profile is not None else None,
        agent_hold=holds.words(profile, lab.now()),
        over_limit=gathering.spending(tick.settings, [project], lab.now()).hold(project),
        unprovable=provable.lacking(project),
        keys=project.keys,
    )
