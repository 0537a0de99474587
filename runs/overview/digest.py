"""What the overview makes of the loaded runs: its numbers, and what needs a person."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import median
from urllib.parse import urlencode

from runs.accounts import held, hold_rules
from runs.bulk import rules as bulk_rules
from runs.core.states import GateTurn, Outcome, Trouble, Wait
from runs.gates import levels
from runs.gates.level_rules import Level
from runs.groups import needs as group_needs
from runs.models import Project, Run
from runs.overview import attention_rules, hiding_rules, outage_rules
from runs.overview.attention_rules import Need, NeedKind
from runs.overview.board import MOST_UNSEEN, RECENT, Board
from runs.overview.hiding_rules import Hidden
from runs.overview.need_facts import (
    GroupNeeds,
    HostNeeds,
    Picture,
    ProjectNeeds,
    RunNeeds,
    WaitNeeds,
    WorkflowNeeds,
)
from runs.spending import pages as spending_pages
from runs.waits import closed_issues
from runs.waits import rules as wait_rules
from runs.watch import summaries
from runs.web import addresses
from runs.workflows import needs as workflow_needs

NEEDS = 8
CLOSED_WITHIN = timedelta(minutes=5)

_ACTIONS = {
    NeedKind.WAITS: ("runs:run", "Answer"),
    NeedKind.ACCEPTANCE: ("runs:run-checks", "Look"),
    NeedKind.ISSUE_CLOSED: ("runs:run", "Decide"),
    NeedKind.LATE: ("runs:settings", "Open settings"),
    NeedKind.HOST: ("runs:host-give-up", "Give up its runs"),
    NeedKind.HELD: ("runs:agent-try-again", "Try again now"),
    NeedKind.LIMIT: ("runs:project", "Open project"),
    NeedKind.CLONE: ("runs:project", "Open project"),
    NeedKind.PAUSED: ("runs:streak-reset", "Resume"),
    NeedKind.STALLED: ("runs:watch-resume", "Resume"),
    NeedKind.REFUSED: ("runs:project", "Open project"),
    NeedKind.WATCH: ("runs:watch-session", "View session"),
    NeedKind.MONITOR: ("runs:group", "Open group"),
    NeedKind.WORKFLOW: ("runs:workflow", "Open workflow"),
    NeedKind.GROUP: ("runs:group", "Open group"),
    NeedKind.CLOSED: ("runs:pull-closed", "Decide"),
    NeedKind.PULL: ("runs:pull", "Review"),
    NeedKind.RUN: ("runs:run", "Open run"),
    NeedKind.GATE: ("runs:run-checks", "Open checks"),
    NeedKind.LEVEL: ("runs:run-prove", "Validate again"),
    NeedKind.UNCLOSED: ("runs:run", "Open run"),
    NeedKind.UNTIDY: ("runs:run", "Open run"),
    NeedKind.PARKED: ("runs:parked", "Open parked work"),
}
_WAYS = {NeedKind.GATE: (("runs:resume", "Resume"), ("runs:retry", "Retry"))}
# And where those are led who may only look.
_POSTED = {
    NeedKind.PAUSED: "runs:project",
    NeedKind.STALLED: "runs:project",
    NeedKind.LEVEL: "runs:run-checks",
}
_NEUTRAL = (
    *(Outcome.STOPPED, Outcome.INTERRUPTED, Outcome.OVER_LIMIT),
    *(Outcome.NO_CHANGE, Outcome.OBSOLETE),
)


@dataclass(frozen=True, slots=True)
class NeedRow:
    """One thing that a person has to look at, with its action and where that leads.

    `many`: the rows of several such things that are told in this one. `ways`: what somebody who
    may act chooses from in place of the one action, each on a page that asks first.
    """

    need: Need
    url: str
    label: str
    post: str = ""
    more: tuple[str, str] = ("", "")
    many: Sequence[NeedRow] = ()
    ways: Sequence[tuple[str, str]] = ()

    @property
    def things(self) -> Sequence[NeedRow]:
        """A row for each thing that it tells of."""
        return self.many or [self]

    @property
    def shown(self) -> str:
        """What it tells of as it is now, for acts that mean this and nothing newer."""
        return " ".join(f"{one.need.id}.{one.need.facts}" for one in self.things)

    @property
    def is_over(self) -> bool:
        """Whether all that it tells of has ended."""
        return all(one.need.is_over for one in self.things)


@dataclass(frozen=True, slots=True)
class HiddenRow:
    """Something that a person has hidden; `until` is None where they dismissed it."""

    need: Need
    url: str
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Needs:
    """The rows that are shown, how many things are on the list, and what is hidden from it.

    `found` is everything, hidden or not. `is_cut`: more runs ended badly than are looked at.
    """

    rows: Sequence[NeedRow]
    total: int
    hidden: Sequence[HiddenRow] = ()
    found: Sequence[Need] = ()
    is_cut: bool = False

    @property
    def beyond(self) -> int:
        """How many of the list are not shown."""
        return self.total - sum(len(row.things) for row in self.rows)

    @property
    def snoozed(self) -> int:
        return sum(row.until is not None for row in self.hidden)

    @property
    def dismissed(self) -> int:
        return len(self.hidden) - self.snoozed

    @property
    def ended(self) -> Sequence[NeedRow]:
        """What is shown and can be dismissed."""
        return [one for row in self.rows for one in row.things if one.need.is_over]

    @property
    def shown(self) -> str:
        """The same, for a button that dismisses it and nothing newer."""
        return " ".join(one.shown for one in self.ended)


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


def needs(picture: Board, marks: Collection[Hidden] = (), limit: int | None = NEEDS) -> Needs:
    """What a person has to look at, the most urgent first, each with its one action.

    Within a limit of rows what repeats is told together; without one everything is apart.
    `marks`: what this person has hidden.
    """
    found = _found(picture)
    shown, hidden = hiding_rules.split(found, marks, picture.facts.now)
    rows = [(need,) for need in shown] if limit is None else attention_rules.together(shown)[:limit]
    unseen = sum(_is_unseen(run) for run in picture.runs)
    return Needs(
        [_row(some) for some in rows],
        len(shown),
        [HiddenRow(need, _with_action(need).url, mark.until) for need, mark in hidden],
        found,
        is_cut=unseen >= MOST_UNSEEN,
    )


def _is_unseen(run: Run) -> bool:
    is_bad = run.outcome in attention_rules.BAD or bool(run.outcome and run.warning)
    return is_bad and run.seen_until is None


def _found(picture: Board) -> list[Need]:
    """Everything that needs somebody, whoever asks."""
    now = picture.facts.now
    groups = group_needs.by_project(picture.projects, now)
    stuck = workflow_needs.by_project(picture.projects)
    standing = levels.read_levels(picture.runs)
    return attention_rules.needs(
        Picture(
            is_late=picture.facts.is_late,
            late_since=picture.facts.last_tick_at,
            waits=[
                *(_wait(run, now) for run in picture.active if run.is_waiting),
                *(_ask(run, now) for run in picture.active if run.gate_turn == GateTurn.ASKING),
                *(_closed(run, now) for run in picture.active if closed_issues.is_asked(run)),
            ],
            hosts=[
                HostNeeds(
                    one.id, one.name, one.runs, hold_rules.clock(one.seen_at, now), one.seen_at
                )
                for one in picture.silent
            ],
            agents=held.needs(picture),
            limits=spending_pages.needs(picture),
            projects=[
                _project(one, now, groups.get(one.pk, ()), stuck.get(one.pk, ()))
                for one in picture.projects
            ],
            pulls=picture.pulls,
            runs=[
                _run(run, now, standing.get(run.pk))
                for run in picture.runs
                if run.ended_at is not None
            ],
        )
    )


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
        " ".join(_warnings(project, now)),
        is_paused=project.is_auto and project.is_paused,
        streak=project.streak,
        last_failure=project.last_failure_id or 0,
        unpushed=unpushed or 0,
        parked=parked or 0,
        watch=summaries.needs(project, now),
        groups=groups,
        workflows=workflows,
    )


def _warnings(project: Project, now: datetime) -> list[str]:
    """What is the matter with it that somebody can do something about."""
    if outage_rules.is_calm(project.silent_since, now):
        return [text for text in (project.origin_warning,) if text]
    return project.warnings


def _wait(run: Run, now: datetime) -> WaitNeeds:
    kind = Wait(run.waits)
    since = hold_rules.clock(run.waits_at or now, now)
    title = f"{run.project.name} #{run.issue_key}"
    what, advice = wait_rules.words(kind), wait_rules.advice(kind)
    if run.answered_at is not None:
        advice = f"{run.answered_by} has answered; it has not gone on yet."
    return WaitNeeds(run.pk, title, what, since, run.waits_note, advice, run.waits_at)


def _ask(run: Run, now: datetime) -> WaitNeeds:
    since, title = (
        hold_rules.clock(run.checking_at or now, now),
        f"{run.project.name} #{run.issue_key}",
    )
    advice = "It changes the checks themselves. Accept it or send it back, on its page Checks."
    what = "passed its gates and waits for you"
    return WaitNeeds(run.pk, title, what, since, "", advice, run.checking_at, is_at_gates=True)


def _closed(run: Run, now: datetime) -> WaitNeeds:
    title, at = f"{run.project.name} #{run.issue_key}", run.issue_closed_at
    what = "works though its issue was closed at"
    advice = "It works on meanwhile. Let it go on, or stop it: worktree and branch are kept then."
    since = hold_rules.clock(at or now, now)
    return WaitNeeds(run.pk, title, what, since, "", advice, at, is_closed=True)


def _run(run: Run, now: datetime, level: Level | None) -> RunNeeds:
    asked_at = run.close_asked_at if run.closed_at is None else None
    is_late = asked_at is not None and now - asked_at >= CLOSED_WITHIN
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
        run.attempts,
        level if level and level.standing.needs_somebody else None,
        hold_rules.clock(asked_at, now) if is_late and asked_at else "",
    )


def _row(some: Sequence[Need]) -> NeedRow:
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
    if first.kind is NeedKind.LEVEL:
        url = f"{addresses.of('runs:history')}?{urlencode({'project': alike.project})}"
        post = addresses.of("runs:project-prove", alike.project)
        return NeedRow(need, url, "Validate all", post, many=many)
    narrowed = urlencode({"project": alike.project, "outcome": alike.outcome})
    url = f"{addresses.of('runs:history')}?{narrowed}"
    return NeedRow(need, url, "Open runs", many=many, ways=[_again(some)])


def _again(some: Sequence[Need]) -> tuple[str, str]:
    """Where all of these runs are tried again, after one question; of very many, as many as may go."""
    runs = [run for need in some for run in need.about][: bulk_rules.MOST]
    label = "Try all again" if len(runs) == len(some) else f"Try {len(runs)} again"
    asked = urlencode({"from": "needs", "item": runs}, doseq=True)
    return f"{addresses.of('runs:bulk-runs', 'retry')}?{asked}", label


def _with_action(need: Need) -> NeedRow:
    name, label = _ACTIONS[need.kind]
    if need.kind is NeedKind.LIMIT and not need.about:
        name, label = "runs:settings", "Open settings"
    url, post = need.url or addresses.of(name, *need.about), ""
    if need.kind is NeedKind.HOST:
        return NeedRow(need, addresses.of("runs:hosts"), "Open hosts", ways=[(url, label)])
    if need.kind is NeedKind.HELD:
        return NeedRow(need, addresses.of("runs:settings"), label, url, more=_help(need))
    if need.kind in _POSTED:
        url, post = addresses.of(_POSTED[need.kind], *need.about), url
    ways = [(addresses.of(name, *need.about), label) for name, label in _WAYS.get(need.kind, ())]
    more = (addresses.of("runs:run", need.run), "Open run") if need.run else ("", "")
    return NeedRow(need, url, label, post, more, ways=ways)


def _help(need: Need) -> tuple[str, str]:
    """What else than waiting helps an agent that is held, and where; empty for what only time does."""
    if need.trouble is Trouble.LOGIN:
        return addresses.of("runs:agent-login", *need.about), "Log in"
    if need.trouble in (Trouble.CREDIT, Trouble.MODEL):
        return addresses.of("runs:settings"), "Settings"
    return "", ""
