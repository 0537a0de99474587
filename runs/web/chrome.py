"""The frame around every page: projects, live runs, the age of the last tick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from runs import wiring
from runs.core.states import ProjectState
from runs.models import Project
from runs.overview import board
from runs.overview.board import Board
from runs.watch import summaries
from runs.web import access, addresses, shortcuts

SECTIONS = {
    "digest": "overview",
    "needs": "overview",
    "night": "history",
    "run": "history",
    "shortcuts": "search",
    "person": "people",
    "person-new": "people",
    "person-link": "people",
    "password": "account",
    "token-new": "account",
    "passkey-new": "account",
    "agent-login": "settings",
    "agent-trial": "settings",
    "agent-try": "settings",
    "forges": "settings",
    "forge": "settings",
    "forge-new": "settings",
    "hosts": "settings",
    "host-give-up": "settings",
    "host-remove": "settings",
    "notices": "account",
    "notice-address": "account",
    "notice-address-new": "account",
    "device-new": "account",
    "notice-times": "account",
}


@dataclass(frozen=True, slots=True)
class NavProject:
    """One line of the project list."""

    pk: int
    name: str
    tone: str
    note: str

    @property
    def url(self) -> str:
        return addresses.of("runs:project", self.pk)


@dataclass(frozen=True, slots=True)
class Chrome:
    """What the frame shows. `section` and `project_id` mark where the reader is."""

    now: datetime
    projects: list[NavProject]
    live_count: int
    last_tick_at: datetime | None
    last_error: str
    is_late: bool
    tick_seconds: int
    refresh_seconds: int
    last_notice: int
    can_act: bool
    logged_out: tuple[tuple[int, str], ...] = ()
    section: str = ""
    project_id: int | None = None
    board: Board | None = None

    @property
    def topic(self) -> str:
        """What a page without live parts of its own listens to: the frame, below a project its too."""
        return f"issues:{self.project_id}" if self.project_id is not None else "chrome"

    @property
    def now_ms(self) -> int:
        """The product's clock, so that ages do not depend on the browser's."""
        return int(self.now.timestamp() * 1000)

    @property
    def live_url(self) -> str:
        """Where a page without live parts of its own refreshes its frame."""
        if self.project_id is not None:
            return reverse("runs:project-frame-live", args=[self.project_id])
        return reverse("runs:live")

    @property
    def go(self) -> str:
        """Where the keys after `g` lead."""
        return shortcuts.go(self.project_id)


def of(picture: Board, can_act: bool, request: HttpRequest | None = None) -> Chrome:
    """The frame for a board that was loaded already; without a request nothing is marked."""
    section, project_id = where(request)
    facts = picture.facts
    return Chrome(
        now=facts.now,
        projects=[_nav(picture, project) for project in picture.projects],
        live_count=len(picture.occupying),
        last_tick_at=facts.last_tick_at,
        last_error=facts.last_error,
        is_late=facts.is_late,
        tick_seconds=facts.settings.tick_seconds,
        refresh_seconds=facts.settings.refresh_seconds,
        last_notice=facts.last_notice,
        can_act=can_act,
        logged_out=_logged_out(picture),
        section=section,
        project_id=project_id,
        board=picture,
    )


def _logged_out(picture: Board) -> tuple[tuple[int, str], ...]:
    """Key and name of the agents in use that were logged out when they were asked last."""
    agent = picture.facts.settings.agent
    found = {agent.pk: agent.name} if agent and agent.is_logged_in is False else {}
    for project in picture.projects:
        if project.agent_id and getattr(project, "agent_logged_in", None) is False:
            found[project.agent_id] = getattr(project, "agent_name", "")
    return tuple(sorted(found.items(), key=lambda one: one[1]))


def where(request: HttpRequest | None) -> tuple[str, int | None]:
    """The section and the project that a request is about."""
    match = request.resolver_match if request is not None else None
    if match is None:
        return "", None
    name = match.url_name or ""
    section = SECTIONS.get(name, "history" if name.startswith("run-") else name)
    project = match.kwargs.get("project_id") if name != "run" else None
    return section, project if isinstance(project, int) else None


def context(request: HttpRequest) -> Mapping[str, object]:
    """Context processor: `now`, `can_act`, and the frame, which costs nothing unless it is shown."""
    if not access.may_look(request.user):
        return {"chrome": None}
    can_act = SimpleLazyObject(lambda: access.may_act(request.user))
    return {
        "now": wiring.lab().now(),
        "can_act": can_act,
        "chrome": SimpleLazyObject(lambda: of(board.load(wiring.lab()), bool(can_act), request)),
    }


def _nav(picture: Board, project: Project) -> NavProject:
    active = picture.active_of(project)
    live = sum(not run.is_held for run in active)
    if project.state == ProjectState.FAILED:
        return NavProject(project.pk, project.name, "bad", "failed")
    if project.state == ProjectState.CLONING:
        return NavProject(project.pk, project.name, "", "cloning")
    if project.state == ProjectState.REMOVING:
        return NavProject(project.pk, project.name, "", "being removed")
    is_paused = project.is_auto and project.is_paused
    tone = "bad" if is_paused else "warn" if project.warnings else "live" if live else ""
    ready = picture.free_count(project)
    note = summaries.short(project) or _note(live, ready, len(active) - live, project)
    return NavProject(project.pk, project.name, tone, note)


def _note(live: int, ready: int, held: int, project: Project) -> str:
    if ready:
        return f"{ready} ready"
    if live:
        return f"{live} live"
    if held:
        return f"{held} held"
    if getattr(project, "open_watch", None) is not None:
        return "watching"
    return f"{project.parked} parked" if project.parked else "idle"
