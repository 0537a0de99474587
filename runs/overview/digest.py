"""What the overview makes of the loaded runs: its numbers, and what needs a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import median
from urllib.parse import urlencode

from runs.accounts import held, hold_rules
from runs.core.states import Outcome, Trouble, Wait
from runs.groups import needs as group_needs
from runs.models import Project, Run
from runs.overview import attention_rules
from runs.overview.attention_rules import (
    GroupNeeds,
    NeedKind,
    ProjectNeeds,
    RunNeeds,
    WaitNeeds,
    WorkflowNeeds,
)
from runs.overview.board import RECENT, Board
from runs.spending import pages as spending_pages
from runs.waits import rules as wait_rules
from runs.watch import summaries
from runs.web import addresses
from runs.workflows import needs as workflow_needs

NEEDS = 12

_ACTIONS = {
    NeedKind.WAITS: ("runs:run", "Open run"),
    NeedKind.LATE: ("runs:settings", "Open settings"),
    NeedKind.HELD: ("runs:agent-try-again", "Try again now"),
    NeedKind.LIMIT: ("runs:project", "Open project"),
    NeedKind.CLONE: ("runs:project", "Open project"),
    NeedKind.PAUSED: ("runs:streak-reset", "Reset"),
    NeedKind.STALLED: ("runs:watch-resume", "Resume"),
    NeedKind.REFUSED: ("runs:project", "Open project"),
    NeedKind.WATCH: ("runs:watch-session", "View session"),
    NeedKind.MONITOR: ("runs:group", "Open group"),
    NeedKind.WORKFLOW: ("runs:workflow", "Open workflow"),
    NeedKind.GROUP: ("runs:group", "Open group"),
    NeedKind.CLOSED: ("runs:pull-closed", "Decide"),
    NeedKind.PULL: ("runs:pull", "Review"),
    NeedKind.RUN: ("runs:run", "Open run"),
    NeedKind.UNTIDY: ("runs:run", "Open run"),
    NeedKind.PARKED: ("runs:parked", "Open parked work"),
}
# And where those are led who may only look.
_POSTED = {NeedKind.PAUSED: "runs:project", NeedKind.STALLED: "runs:project"}
# What has ended; it stays until somebody opens or dismisses it.
_DISMISSED = {
    NeedKind.WATCH: "runs:watch-dismiss",
    NeedKind.RUN: "runs:run-dismiss",
    NeedKind.UNTIDY: "runs:run-dismiss",
}
_NEUTRAL = (
    *(Outcome.STOPPED, Outcome.INTERRUPTED, Outcome.OVER_LIMIT),
    *(Outcome.NO_CHANGE, Outcome.OBSOLETE),
)


@dataclass(frozen=True, slots=True)
class NeedRow:
    """One thing that a person has to look at, with its action and where that leads.

    `many`: the rows of several such things that are told in this one.
    """

    need: attention_rules.Need
    url: str
    label: str
    post: str = ""
    dismiss: str = ""
    ended: str = ""
    more: tuple[str, str] = ("", "")
    many: Sequence[NeedRow] = ()


@dataclass(frozen=True, slots=True)
class Needs:
    """The rows that are shown, and how many things there are."""

    rows: Sequence[NeedRow]
    total: int

    @property
    def things(self) -> Sequence[NeedRow]:
        """A row for each thing that is shown, also of those that one row tells together."""
        return [one for row in self.rows for one in row.many or [row]]

    @property
    def hidden(self) -> int:
        return self.total - len(self.things)

    @property
    def ended(self) -> int:
        """How many of them can be dismissed."""
        return sum(bool(one.ended) for one in self.things)

    @property
    def shown(self) -> str:
        """What they are about, for a button that dismisses them and nothing newer."""
        return " ".join(one.ended for one in self.things if one.ended)


@dataclass(frozen=True, slots=True)
class Stats:
    """The numbers of the overview. None where there is no fact behind one."""

    taken: int
    cap: int
    ready: int
    claimed: int
    ended: int
    success: int | None
    counted: int
    median: timedelta | None
    today: spending_pages.Today | None = None

    @property
    def slots(self) -> list[bool]:
        """One mark a slot, the taken ones first."""
        return [n < self.taken for n in range(max(self.cap, self.taken))]


def stats(picture: Board) -> Stats:
    """The numbers, from the runs of the last days that were loaded."""
    now = picture.facts.now
    ended = [run for run in picture.runs[:RECENT] if run.ended_at and run.did_start]
    week = [run for run in ended if run.ended_at and run.ended_at >= now - timedelta(days=7)]
    counted = [run for run in week if run.outcome not in _NEUTRAL]
    good = sum(run.outcome == Outcome.SUCCEEDED for run in counted)
    lengths = [run.age(now).total_seconds() for run in counted]
    return Stats(
        taken=len(picture.occupying),
        cap=picture.facts.settings.session_cap,
        ready=picture.all_free,
        claimed=len(picture.ready) - len(picture.free),
        ended=sum(1 for run in ended if run.ended_at and run.ended_at >= now - timedelta(days=1)),
        success=round(100 * good / len(counted)) if counted else None,
        counted=len(counted),
        median=timedelta(seconds=median(lengths)) if lengths else None,
        today=spending_pages.today(picture, picture.runs),
    )


def needs(picture: Board, limit: int | None = NEEDS) -> Needs:
    """What a person has to look at, the most urgent first, each with its one action.

    Within a limit of rows what repeats is told together; without one everything is apart.
    """
    now = picture.facts.now
    groups = group_needs.by_project(picture.projects, now)
    stuck = workflow_needs.by_project(picture.projects)
    found = attention_rules.needs(
        attention_rules.Picture(
            is_late=picture.facts.is_late,
            waits=[_wait(run, now) for run in picture.active if run.is_waiting],
            agents=held.needs(picture),
            limits=spending_pages.needs(picture),
            projects=[
                _project(one, now, groups.get(one.pk, ()), stuck.get(one.pk, ()))
                for one in picture.projects
            ],
            pulls=picture.pulls,
            runs=[_run(run, now) for run in picture.runs if run.ended_at is not None],
        )
    )
    rows = [(need,) for need in found] if limit is None else attention_rules.together(found)[:limit]
    return Needs([_row(some) for some in rows], len(found))


def _project(
    project: Project,
    now: datetime,
    groups: Sequence[GroupNeeds],
    workflows: Sequence[WorkflowNeeds],
) -> ProjectNeeds:
    unpushed, parked = getattr(project, "unpushed", None), getattr(project, "parked_ahead", None)
    return ProjectNeeds(
        project.pk,
        project.name,
        project.state,
        project.error,
        " ".join(project.warnings),
        is_paused=project.is_auto and project.is_paused,
        streak=project.streak,
        unpushed=unpushed or 0,
        parked=parked or 0,
        watch=summaries.needs(project, now),
        groups=groups,
        workflows=workflows,
    )


def _wait(run: Run, now: datetime) -> WaitNeeds:
    kind = Wait(run.waits)
    since = hold_rules.clock(run.waits_at or now, now)
    title = f"{run.project.name} #{run.issue_key}"
    what, advice = wait_rules.words(kind), wait_rules.advice(kind)
    if run.answered_at is not None:
        advice = f"{run.answered_by} has answered; it has not gone on yet."
    return WaitNeeds(run.pk, title, what, since, run.waits_note, advice)


def _run(run: Run, now: datetime) -> RunNeeds:
    return RunNeeds(
        run.pk,
        f"{run.project.name} #{run.issue_key}",
        run.outcome,
        attention_rules.is_seen(run.seen_until, now),
        getattr(run, "is_retried", False),
        run.did_start,
        run.reason,
        run.worktree_fate == "kept",
        run.warning,
        (run.project_id, run.project.name),
    )


def _row(some: Sequence[attention_rules.Need]) -> NeedRow:
    """The row of one thing, or of several that are alike."""
    first, alike = some[0], some[0].alike
    if len(some) == 1 or alike is None:
        return _with_action(first)
    many = [_with_action(need) for need in some]
    # By the oldest, since newer ones join it while somebody reads.
    ident, what = f"{some[-1].id}-and-more", alike.what.format(len(some))
    need = replace(first, id=ident, title=alike.title, what=what, why=alike.why)
    if first.kind is NeedKind.PULL:
        return NeedRow(need, addresses.of("runs:pulls", alike.project), "Pull requests", many=many)
    ended = " ".join(one.ended for one in many)
    dismiss = addresses.of("runs:needs-dismiss")
    narrowed = urlencode({"project": alike.project, "outcome": alike.outcome})
    url = f"{addresses.of('runs:runs')}?{narrowed}"
    return NeedRow(need, url, "Open runs", dismiss=dismiss, ended=ended, many=many)


def _with_action(need: attention_rules.Need) -> NeedRow:
    name, label = _ACTIONS[need.kind]
    if need.kind is NeedKind.LIMIT and not need.about:
        name, label = "runs:settings", "Open settings"
    url, post = need.url or addresses.of(name, *need.about), ""
    if need.kind is NeedKind.HELD:
        return NeedRow(need, addresses.of("runs:settings"), label, url, more=_help(need))
    if need.kind in _POSTED:
        url, post = addresses.of(_POSTED[need.kind], *need.about), url
    dismiss = addresses.of(_DISMISSED[need.kind], *need.about) if need.kind in _DISMISSED else ""
    ended = ""
    if dismiss:
        ended = f"{'watch' if need.kind is NeedKind.WATCH else 'run'}-{need.about[-1]}"
    return NeedRow(need, url, label, post, dismiss, ended)


def _help(need: attention_rules.Need) -> tuple[str, str]:
    """What else than waiting helps an agent that is held, and where; empty for what only time does."""
    if need.trouble is Trouble.LOGIN:
        return addresses.of("runs:agent-login", *need.about), "Log in"
    if need.trouble in (Trouble.CREDIT, Trouble.MODEL):
        return addresses.of("runs:settings"), "Settings"
    return "", ""
