"""What pages offer for an ended run: to go on with it, and who went on with whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from runs.core.ports import Lab
from runs.followups import facts, rules
from runs.followups.rules import Place
from runs.models import Run


@dataclass(frozen=True, slots=True)
class Box:
    """A text for the agent of a run: what it says beforehand, what was typed, what was wrong."""

    run: Run
    how: str
    text: str = ""
    errors: Mapping[str, str] = field(default_factory=dict)


def resume_box(
    lab: Lab, run: Run, text: str = rules.GO_ON, errors: Mapping[str, str] | None = None
) -> Box | None:
    """The form of Resume; None where it is not offered."""
    if run.settled_at is None or not rules.may_resume(_light(run)):
        return None
    found = facts.stored(lab, run)
    if rules.why_not(found, wants_changes=False):
        return None
    return Box(run, how(run, found.place), text, errors or {})


def how(run: Run, place: Place | None) -> str:
    """What happens when somebody goes on with a run, said before it is pressed."""
    where = "in the same worktree"
    if place is Place.BRANCH:
        where = f"in its worktree, which is made again on {run.branch}"
    agent = facts.agent(run)
    name = agent.name if agent is not None else "The agent"
    if facts.has_session(run):
        return f"{name} goes on in its own session, {where}, and is told this text."
    why = "cannot go on in an ended session" if run.agent_session else "did not tell its session"
    if run.profile is None:
        return f"Its agent is not set up any more. {name} gets the task and this text, {where}."
    return f"{name} {why}, so it gets its task again together with this text, {where}."


def _light(run: Run) -> rules.Ended:
    """What the row alone says, before anything is asked."""
    return rules.Ended(
        run.issue_key,
        run.branch,
        run.outcome,
        did_start=run.did_start,
        is_adopted=run.is_adopted,
    )


def went_on(run: Run) -> int | None:
    """The run that went on with this one, if any did."""
    if not run.outcome:
        return None
    rows = Run.objects.filter(continues=run).order_by("-pk")
    return rows.values_list("pk", flat=True).first()
