"""What pages offer for an ended run: to go on with it, to have its pull request changed, and who did."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from runs.core.ports import Lab, SeamError
from runs.core.states import TrackerKind
from runs.followups import facts, loop_rules, review, rules
from runs.followups.loop_rules import TakeUp
from runs.followups.rules import Place
from runs.models import Project, Run
from runs.web import addresses


@dataclass(frozen=True, slots=True)
class LoopChoice:
    """Going on as a loop of fresh turns: what happens then, or why it cannot be chosen."""

    how: str
    why_not: str = ""
    is_chosen: bool = False


@dataclass(frozen=True, slots=True)
class Box:
    """A text for the agent of a run: what happens with it, what was typed, what was wrong."""

    name: str
    title: str
    run: Run
    how: str
    text: str = ""
    errors: Mapping[str, str] = field(default_factory=dict)
    pull: int | None = None
    loop: LoopChoice | None = None

    @property
    def url(self) -> str:
        return addresses.of(f"runs:{self.name}", self.run.pk)


def resume_box(
    lab: Lab,
    run: Run,
    text: str = rules.GO_ON,
    errors: Mapping[str, str] | None = None,
    *,
    as_loop: bool = False,
) -> Box | None:
    """The form of Resume; None where it is not offered. `as_loop`: a loop of fresh turns was chosen."""
    if run.settled_at is None or not rules.may_resume(_light(run)):
        return None
    found = facts.stored(lab, run)
    if rules.why_not(found, wants_changes=False):
        return None
    taken_up = facts.take_up(run)
    words = f"{how(run, found.place)}."
    if taken_up.is_loop_anyway and not loop_rules.why_not(taken_up):
        words = f"It goes on as a loop. {_turn_by_turn(taken_up)} {_where(run, found.place)}."
    loop = _loop_choice(run, found.place, taken_up, as_loop=as_loop)
    return Box("resume", "Resume", run, words, text, errors or {}, loop=loop)


def _loop_choice(
    run: Run, place: Place | None, found: TakeUp, *, as_loop: bool
) -> LoopChoice | None:
    """The choice of a loop of fresh turns; None where it is not shown."""
    if not loop_rules.is_shown(found):
        return None
    how = f"{_turn_by_turn(found)} {_where(run, place)}, until the work is done or a limit is reached."
    why = loop_rules.why_not(found)
    return LoopChoice(how, why, is_chosen=as_loop and not why)


def _turn_by_turn(found: TakeUp) -> str:
    return f"{found.agent} begins each turn anew, with the issue and this text,"


def changes_box(
    lab: Lab,
    run: Run | None,
    text: str = "",
    errors: Mapping[str, str] | None = None,
    pull: int | None = None,
) -> Box | None:
    """The form of Request changes for an open pull request, by default the one that the run knows of.

    None where nobody can go on with it.
    """
    if run is None or run.settled_at is None:
        return None
    found = facts.stored(lab, run)
    found = replace(found, pull=pull or found.pull)
    if found.pull is None or rules.why_not(found, wants_changes=True):
        return None
    words = f"{how(run, found.place)}, and with {_said(lab, run, found.pull)}."
    return Box("changes", "Request changes", run, words, text, errors or {}, found.pull)


def _said(lab: Lab, run: Run, pull: int) -> str:
    """How much of the review goes along; a forge is asked for it once the button is pressed."""
    if run.project.tracker != TrackerKind.BUILTIN:
        return "what was commented on it since changes were last made"
    number = len(review.said_of(lab, run, pull))
    return {0: "no comment", 1: "1 comment of the review"}.get(
        number, f"{number} comments of the review"
    )


def how(run: Run, place: Place | None) -> str:
    """What happens when somebody goes on with a run, said before it is pressed."""
    where = _where(run, place)
    agent = facts.agent(run)
    name = agent.name if agent is not None else "The agent"
    if facts.has_session(run):
        return f"{name} goes on in its own session, {where}, with this text"
    why = "cannot go on in an ended session" if run.agent_session else "did not tell its session"
    if run.profile is None:
        return f"Its agent is not set up any more. {name} gets the task, {where}, with this text"
    return f"{name} {why}, so it gets its task again, {where}, with this text"


def _where(run: Run, place: Place | None) -> str:
    if place is Place.BRANCH:
        return f"in its worktree, which is made again on {run.branch}"
    return "in the same worktree"


def of_pull(project: Project, head: str) -> Run | None:
    """The newest run of a pull request's branch; a start that failed is none."""
    rows = Run.objects.begun().filter(project=project, branch=head)
    return rows.select_related("project__agent", "profile").order_by("-pk").first()


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
    rows = Run.objects.begun().filter(continues=run).order_by("-pk")
    return rows.values_list("pk", flat=True).first()


@dataclass(frozen=True, slots=True)
class Left:
    """What of a run is discarded when it is retried. None: could not be told."""

    commits: int | None
    is_dirty: bool | None
    has_worktree: bool
    has_branch: bool


def left(lab: Lab, run: Run) -> Left:
    """Looked at now."""
    repo, path = run.project.repo(lab.paths), Path(run.worktree or "-")
    has_branch = facts.stored(lab, run).place is not Place.GONE
    ahead, dirty = None, None
    with contextlib.suppress(SeamError):
        ahead = lab.repos.ahead(repo, run.branch, run.project.default_branch) if has_branch else 0
    has_tree = bool(run.worktree) and path.is_dir()
    with contextlib.suppress(SeamError):
        dirty = lab.repos.is_dirty(path) if has_tree else False
    return Left(ahead, dirty, has_tree, has_branch)
