"""Makes a run a loop when it is stored, and closes the loop with its run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Q, QuerySet

from runs.core.database import prepared_with_keys
from runs.core.effects import RunEnd, RunStart
from runs.core.ports import Lab
from runs.core.states import (
    CompletionPolicy,
    LoopState,
    NoticeKind,
    Outcome,
    RunKind,
)
from runs.followups import facts
from runs.followups.rules import GO_ON
from runs.loops import issue_of_loop, options, results, rules, stored
from runs.loops.acts import MOST_TEXT
from runs.loops.roles import Role, first_events
from runs.loops.rules import End
from runs.models import (
    AgentProfile,
    Loop,
    LoopGuidance,
    LoopRole,
    LoopTask,
    LoopTerms,
    LoopTurn,
    Project,
    Run,
    Settings,
    StartRequest,
)
from runs.timeline import announce

NO_AGENT = (
    "Choose an agent that ends by itself (one-shot): neither the project's agent nor the default "
    "one does."
)
IS_GATED = (
    "Gates prove the work of this project, and no turn of a loop can be told yet what they found. "
    "Choose the completion policy “pull request” on the page Checks first."
)
WITH_RUN = {Outcome.STOPPED: End.STOPPED, Outcome.INTERRUPTED: End.INTERRUPTED}
# What a person or a machine cut short may be gone on with where it was.
CUT_SHORT = (End.INTERRUPTED, End.LOST, End.STOPPED)
LEFT = "its run ended before it did"


def started(lab: Lab, start: RunStart) -> None:
    """Store the loop of a run of a project that works in loops, or that is taken up as one.

    In the transaction of the run. What its start request says of this loop alone is over the
    project's settings.
    """
    asked = StartRequest.objects.filter(run=start.run_id).values_list("loop_options", flat=True)
    typed = asked.first() or {}
    chosen = stored_terms(start.project_id)
    if not options.is_loop(typed) and (chosen is None or not chosen.is_on):
        return
    rows = Run.objects.select_related("continues__profile", "continues__project__agent")
    run = rows.get(pk=start.run_id)
    if run.is_adopted:
        return
    chosen = chosen or LoopTerms(project=run.project)
    before = run.continues if options.is_loop(typed) else None
    profile = facts.find_turn_agent(before) if before is not None else profile_of(chosen)
    why = _why_not(chosen, profile)
    if profile is None or why:
        announce.tell(lab, NoticeKind.RUN_WARNED, f"works without a loop. {why}", run=run)
        return
    for name, value in options.values(typed).items():
        setattr(chosen, name, value)  # not stored
    own_roles = stored.roles(typed[options.ROLES]) if options.ROLES in typed else None
    make(lab, run, chosen, profile, options.objective(typed), own_roles)


def terms_of(project_id: int) -> LoopTerms | None:
    """The loop settings of a project whose runs are loops."""
    terms = stored_terms(project_id)
    return terms if terms is not None and terms.is_on else None


def stored_terms(project_id: int) -> LoopTerms | None:
    """The loop settings of a project, be they on or off."""
    found: list[LoopTerms] = _terms_of().rows(keys=[project_id])
    return found[0] if found else None


@prepared_with_keys(1)
def _terms_of(_now: datetime, project: int) -> QuerySet[LoopTerms]:
    rows = LoopTerms.objects.select_related("project", "profile", "project__agent")
    return rows.filter(project=project).order_by("pk")[:1]


def why_not(terms: LoopTerms) -> str:
    """Why runs of a project are no loops although it wants them to be; empty when they are."""
    return _why_not(terms, profile_of(terms))


def _why_not(terms: LoopTerms, profile: AgentProfile | None) -> str:
    if terms.project.policy == CompletionPolicy.GATES:
        return IS_GATED
    return "" if profile is not None else NO_AGENT


def make(
    lab: Lab,
    run: Run,
    terms: LoopTerms,
    profile: AgentProfile,
    objective: str = "",
    roles: Sequence[Role] | None = None,
) -> Loop:
    """Store the loop of a run with these terms; one that was cut short is gone on with.

    `roles` take the place of those of its project.
    """
    if roles is None:
        roles = [one.role for one in LoopRole.objects.filter(project_id=run.project_id)]
    columns: dict[str, Any] = {
        "terms": snapshot(terms, has_roles=bool(roles)),
        "roles": stored.of_roles(roles),
        "objective": objective,
        "pending": stored.of_events(first_events(roles)),
    }
    before = Loop.objects.filter(run=run.continues).first() if run.continues else None
    if before is not None:
        columns |= {"objective": before.objective, "notes": _last_notes(lab, before)}
    if before is not None and before.end in CUT_SHORT:
        names = ("generation", "number", "counters", "pending", "limits_told")
        columns |= {name: getattr(before, name) for name in names}
        columns |= {"pending": _left_to_do(before)}
    Run.objects.filter(pk=run.pk).update(
        is_loop=True,
        profile=profile,
        agent=profile.name,
        agent_session="",
        own_budget_seconds=wall_seconds(terms),
        **_model(run, profile),
    )
    loop = Loop.objects.create(run=run, **columns)
    if terms.is_persistent and not objective:
        issue_of_loop.begin(lab, loop)
    if before is not None:
        before.guidance.filter(acknowledged_at=None).update(loop=loop, given_in=None)
        left = before.tasks.exclude(state=LoopTask.State.CLOSED)
        LoopTask.objects.bulk_create(
            LoopTask(loop=loop, number=one.number, text=one.text, state=one.state, at=one.at)
            for one in left
        )
    if run.follow_up not in ("", GO_ON):  # what a person told the agent that goes on
        text = run.follow_up[:MOST_TEXT]
        LoopGuidance.objects.create(loop=loop, text=text, by=run.started_by, at=run.requested_at)
    return loop


def _model(run: Run, profile: AgentProfile) -> dict[str, str]:
    """The columns of model and effort where the run was stored with those of another agent."""
    if profile.pk == run.profile_id:
        return {}
    settings = Settings.current()
    is_general = profile.pk == settings.agent_id
    names = ("model", "effort")
    return {name: getattr(settings, name) if is_general else "" for name in names}


def snapshot(terms: LoopTerms, *, has_roles: bool) -> dict[str, Any]:
    """The terms as a loop keeps them."""
    names: tuple[str, ...] = ("cooldown_seconds", "idle_seconds", "max_turn_seconds")
    names += ("has_tasks", "has_memories", "check_in_seconds", "answer_seconds")
    more = {name: getattr(terms, name) for name in (*names, "cleans_up", "resets_notes")}
    return {"rules": stored.of_terms(terms.terms(has_roles=has_roles)), **more}


def profile_of(terms: LoopTerms) -> AgentProfile | None:
    """The agent of its turns: one that ends by itself, or None."""
    return terms.find_turn_agent(Settings.current().agent)


def wall_seconds(terms: LoopTerms) -> int:
    """When a run is ended from outside: a turn that began in time may go on for an hour after it."""
    if terms.max_seconds is None:
        return int(timedelta(days=365).total_seconds())
    return terms.max_seconds + int(timedelta(hours=1).total_seconds())


def ended(lab: Lab, end: RunEnd) -> None:
    """Close the loop of a run that somebody or something else ended; one that was lost has no code."""
    if not end.is_loop:
        return
    rows = Loop.objects.filter(run_id=end.run_id, end="")
    why = WITH_RUN.get(end.outcome)
    closed = rows.update(
        end=(why or End.LOST).value,
        exit_code=why.code if why is not None else None,
        state=LoopState.ENDED,
        ended_at=lab.now(),
        version=F("version") + 1,
    )
    if closed:
        turns = LoopTurn.objects.filter(loop__run_id=end.run_id, ended_at=None)
        turns.update(ended_at=lab.now(), trouble=LEFT)
    issue_of_loop.ended(lab, end.run_id)
    _pause(lab, end)


def _pause(lab: Lab, end: RunEnd) -> None:
    """Automatic work goes on after a pause: before the next issue, or before a loop that stays is
    started again."""
    runs = Run.objects.filter(pk=end.run_id, kind=RunKind.AUTO)
    run = runs.select_related("loop", "project", "project__loop_terms").first()
    terms = getattr(run.project, "loop_terms", None) if run is not None else None
    if run is None or terms is None or not terms.is_on:
        return
    if terms.is_persistent:
        code = run.loop.exit_code
        pause = rules.pause_before_restart(End.LOST.code if code is None else code)
        how = "without a code" if code is None else f"with code {code}"
        seconds = int(pause.total_seconds())
        text = f"its loop ended {how}; the next one begins in {seconds} s, "
        text += "where automatic work goes on"
    else:
        pause = timedelta(seconds=terms.pause_seconds)
        how = "completed" if end.outcome is Outcome.SUCCEEDED else "ended with"
        text = f"{how} #{run.issue_key}, looking for the next one"
    until = lab.now() + pause
    earlier = Q(retry_at=None) | Q(retry_at__lt=until)
    Project.objects.filter(earlier, pk=run.project_id).update(retry_at=until)
    announce.tell(lab, NoticeKind.LOOP_STEP, text, run=run)


def _last_notes(lab: Lab, before: Loop) -> str:
    """The scratchpad of a loop as its last turn left it; as it was given it, where no file is read."""
    written = results.tail(lab, before.folder(lab.paths), results.NOTES, results.MOST_NOTES)
    if written.strip():
        return lab.mask(written)
    last = before.turns.order_by("-id").values_list("facts", flat=True).first()
    return str(last.get("scratchpad", "")) if last else before.notes


def _left_to_do(before: Loop) -> list[Any]:
    """The events that wait, with those of a last turn that was cut short."""
    last = before.turns.order_by("-id").first()
    cut = last is not None and (last.exit_code is None or last.exit_signal is not None)
    given = last.facts.get("events", []) if last is not None and cut else []
    return [*(one for one in given if one not in before.pending), *before.pending]
