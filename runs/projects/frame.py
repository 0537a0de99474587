"""What every page of a project has on top: name, state, what holds it up, and the tabs.

All of it is read from the board that the frame of the page needs anyway, and one query more. The page,
its refresh, the answer to an act and a push render it by the same templates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, F, OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.template.loader import render_to_string

from runs import wiring
from runs.accounts import held
from runs.accounts.held import Hold
from runs.agents import pages as agent_pages
from runs.core.database import prepared_with_keys
from runs.core.states import TrackerKind
from runs.dispatch import provable
from runs.forges import tracker_card
from runs.models import Project, TaskGroup, WatchSession
from runs.overview.board import Board
from runs.projects import head_rules
from runs.projects.head_rules import HeldUp, Kind
from runs.spending import pages as spending_pages
from runs.web import addresses
from trackers.base import Ability, PullState
from trackers.builtin.models import PullRequest

HEAD, HELD_UP = "project-head", "project-held-up"


@dataclass(frozen=True, slots=True)
class Place:
    """A tab: its name, its page, and the first parts of the addresses below it."""

    key: str
    label: str
    url: str
    parts: frozenset[str]


def _place(key: str, label: str, url: str, *parts: str) -> Place:
    return Place(key, label, f"runs:{url}", frozenset(parts))


PLACES = (
    _place("overview", "Overview", "project", ""),
    _place("issues", "Issues", "issues", "issues", "waiting"),
    _place("pulls", "Pull requests", "pulls", "pulls", "closed", "bulk/pulls"),
    _place("runs", "Runs", "project-runs", "runs"),
    _place("auto", "Work that goes on by itself", "watches", "watch"),
    _place("groups", "Groups", "groups", "groups", "workflows"),
    _place("checks", "Checks", "spec", "checks", "validation"),
    _place("loops", "Loops", "loop-settings", "loops"),
    _place("parked", "Parked", "parked", "parked", "rescues", "bulk/parked"),
    _place("settings", "Settings", "project-settings", "settings", "tracker", "badge", "remove"),
)


@dataclass(frozen=True, slots=True)
class Number:
    """What a tab counts: a number or a word to see, and in words what it is."""

    shown: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True)
class Tab:
    """One tab as it is shown."""

    key: str
    label: str
    url: str
    count: Number
    is_current: bool


@dataclass(frozen=True)
class Frame:
    """Name, state and tabs of a project as they are now."""

    project: Project
    live: int
    held: int
    ready: int
    waiting: int
    held_up: Sequence[HeldUp]
    hold: Hold | None
    counts: Mapping[str, Number]

    @property
    def is_paused(self) -> bool:
        return any(one.kind is Kind.PAUSED for one in self.held_up)

    @property
    def is_blocked(self) -> bool:
        return any(one.kind is Kind.BLOCKED for one in self.held_up)

    def tabs(self, current: str) -> Sequence[Tab]:
        """The tabs in order; one without pull requests has no tab of them."""
        return [
            Tab(
                one.key,
                one.label,
                addresses.of(one.url, self.project.pk),
                self.counts.get(one.key, Number()),
                one.key == current,
            )
            for one in PLACES
            if one.key != "pulls" or _can_have_pulls(self.project)
        ]


def current(request: HttpRequest) -> str:
    """The tab that a page of a project stands below; empty where its address is below none."""
    match = request.resolver_match
    return of_route(match.route) if match is not None else ""


def of_route(route: str) -> str:
    """The tab of an address as `urls.py` writes it."""
    _, _, below = route.partition("<int:project_id>/")
    names = {below.partition("/")[0], "/".join(below.split("/")[:2])}
    return next((one.key for one in PLACES if names & one.parts), "")


def of(picture: Board, project_id: int | None) -> Frame | None:
    """The frame of a project; None where there is none.

    One query, one more where a
    limit of a day is set, two or three more where gates prove its work.
    """
    project = picture.by_id.get(project_id or 0)
    if project is None:
        return None
    asked = _asked(project)
    active = picture.active_of(project)
    waits = sum(run.is_held for run in active)
    ready = picture.free_count(project)
    counts = {
        "issues": _count(ready, "ready to start"),
        "pulls": _count(asked["pulls"], "open"),
        "runs": _count(len(active) - waits, "live"),
        "auto": _auto(project, is_stalled=asked["is_stalled"]),
        "groups": _count(asked["groups"], "open"),
        "parked": _count(project.parked or 0, "parked"),
    }
    hold = held.of_project(picture, project)
    return Frame(
        project=project,
        live=len(active) - waits,
        held=waits,
        ready=ready,
        waiting=sum(issue.is_blocked for issue in picture.ready_of(project)),
        held_up=head_rules.held_up(_facts(picture, project, asked, hold)),
        hold=hold,
        counts=counts,
    )


def regions(picture: Board, project_id: int | None, can_act: bool) -> dict[str, str]:
    """The live parts of the frame by the ids of their elements."""
    frame = of(picture, project_id)
    if frame is None:
        return {}
    context = {"frame": frame, "can_act": can_act, "now": picture.facts.now}
    found: dict[str, str] = {
        HEAD: render_to_string("projects/_head.html", context),
        HELD_UP: render_to_string("projects/_held_up.html", context),
    }
    for key, count in frame.counts.items():
        about = {"key": key, "count": count}
        found[f"tab-{key}"] = render_to_string("projects/_tab_count.html", about)
    return found


_ASKED = ("failed_at", "failed_issue", "stalled", "stalled_since", "groups")


def _asked(project: Project) -> Mapping[str, Any]:
    """What of the head no board holds: in one query."""
    is_here = bool(project.tracker == TrackerKind.BUILTIN and project.tracker_root)
    root = int(project.tracker_root) if is_here else 0
    rows = _unheard(is_here).rows(keys=(project.pk, root))
    names = (*_ASKED, "pulls") if is_here else _ASKED
    told = dict(zip(names, rows[0] if rows else [None] * len(names), strict=True))
    pulls_now = told["pulls"] or 0 if is_here else len(project.pulls_seen)
    return {
        **told,
        "pulls": pulls_now,
        "groups": told["groups"] or 0,
        "is_stalled": told["stalled"] is not None,
    }


@prepared_with_keys(2)
def _unheard(_now: datetime, project: int, root: int, is_here: bool) -> QuerySet[Project, Any]:
    mine = OuterRef("pk")
    stalled = WatchSession.objects.filter(project=mine, needs_resume=True).order_by("-pk")
    groups: Any = TaskGroup.objects.filter(project=mine, closed_at=None).order_by()
    groups = groups.values("project").annotate(number=Count("pk")).values("number")
    found: dict[str, Any] = {
        "failed_at": F("last_failure__ended_at"),
        "failed_issue": F("last_failure__issue_key"),
        "stalled": Subquery(stalled.values("pk")[:1]),
        "stalled_since": Subquery(stalled.values("ended_at")[:1]),
        "groups": Subquery(groups),
    }
    if is_here:
        pulls: Any = PullRequest.objects.filter(root_id=root, state=PullState.OPEN).order_by()
        pulls = pulls.values("root").annotate(number=Count("pk")).values("number")
        found["pulls"] = Subquery(pulls)
    row = Project.objects.filter(pk=project).order_by().annotate(**found)
    return row.values_list(*found)


def _facts(
    picture: Board, project: Project, asked: Mapping[str, Any], hold: Hold | None
) -> head_rules.Facts:
    return head_rules.Facts(
        state=project.state,
        is_auto=project.is_auto,
        streak=project.streak,
        is_streak_full=project.is_paused,
        failed_at=asked["failed_at"],
        failed_issue=asked["failed_issue"] or "",
        failed_run=project.last_failure_id,
        is_stalled=asked["is_stalled"],
        stalled_since=asked["stalled_since"],
        has_tracker=bool(project.tracker),
        hold=f"{hold.name}: {hold.words}." if hold is not None else "",
        missing_agent=agent_pages.missing(picture, project),
        logged_out_agent=agent_pages.logged_out(picture, project),
        limit=spending_pages.hold_of(picture, project),
        checks=provable.lacking(project),
    )


def _auto(project: Project, *, is_stalled: bool) -> Number:
    """The word beside *Work that goes on by itself*: off has none."""
    is_open = getattr(project, "open_watch", None) is not None
    if (project.is_paused and (project.is_auto or is_open)) or (is_stalled and project.is_auto):
        return Number("paused")
    return Number("on") if project.is_auto or is_open else Number()


def _count(number: int, words: str) -> Number:
    return Number(str(number), words) if number else Number()


def _can_have_pulls(project: Project) -> bool:
    return not tracker_card.lacks(wiring.lab(), project, Ability.PULLS)
