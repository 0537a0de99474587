"""What pages of many projects say of watch sessions, read along with the projects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from runs.models import Project, Validation, WatchSession
from runs.overview import attention_rules
from runs.overview.need_facts import WatchNeeds
from runs.watch import rules
from runs.watch.session import Phase
from runs.web import addresses

_TONES = {
    Phase.WORKING: "live",
    Phase.PAUSED: "bad",
    Phase.VALIDATING: "info",
    Phase.DRAINING: "warn",
}
# What the list of projects says in its few letters, before it counts issues.
_SHORT = {
    Phase.PAUSED: "paused",
    Phase.WAITING: "waiting",
    Phase.VALIDATING: "validating",
    Phase.DRAINING: "draining",
}


@dataclass(frozen=True, slots=True)
class Watched:
    """A project with an open watch session, and what that is doing."""

    project: Project
    session: int
    phase: str

    @property
    def tone(self) -> str:
        return tone(self.phase)

    @property
    def url(self) -> str:
        return addresses.of("runs:watch-session", self.project.pk, self.session)


def tone(phase: str) -> str:
    """The colour of an open session's mark."""
    return _TONES.get(Phase(phase), "")


def with_open(rows: QuerySet[Project]) -> QuerySet[Any]:
    """Projects with id, version and phase of their open session, so that these cost no query."""
    found = WatchSession.objects.open().filter(project=OuterRef("pk")).order_by()
    return rows.annotate(
        open_watch=Subquery(found.values("pk")[:1]),
        watch_seen=Subquery(found.values("version")[:1]),
        watch_phase=Subquery(found.values("phase")[:1]),
    )


def with_last(rows: QuerySet[Project]) -> QuerySet[Project]:
    """Projects with how their newest session ended, for what needs a person."""
    newest = WatchSession.objects.filter(project=OuterRef("pk")).order_by("-pk")
    level = Validation.objects.filter(session=OuterRef("last_watch")).order_by("-number")
    found = rows.annotate(
        last_watch=Subquery(newest.values("pk")[:1]),
        last_watch_code=Subquery(newest.values("code")[:1]),
        last_watch_reason=Subquery(newest.values("reason")[:1]),
        last_watch_ended_at=Subquery(newest.values("ended_at")[:1]),
        last_watch_seen=Subquery(newest.values("seen_until")[:1]),
        last_watch_stalled=Subquery(newest.values("needs_resume")[:1]),
    )
    repeat = level.exclude(asked_by="")
    return found.annotate(
        last_watch_follow_up=Subquery(level.values("follow_up_key")[:1]),
        last_watch_repeat=Subquery(repeat.values("number")[:1]),
        last_watch_repeat_state=Subquery(repeat.values("state")[:1]),
    )


def lines(projects: Iterable[Project]) -> list[Watched]:
    """Those of these projects that have an open session."""
    return [
        Watched(one, session, getattr(one, "watch_phase", Phase.WORKING))
        for one in projects
        if (session := getattr(one, "open_watch", None)) is not None
    ]


def short(project: Project) -> str:
    """What a project's session is doing, when that says more than a number of issues would."""
    phase = getattr(project, "watch_phase", None)
    return _SHORT.get(Phase(phase), "") if phase else ""


def needs(project: Project, now: datetime) -> WatchNeeds | None:
    """What of a project's newest session may need somebody; None while it is open."""
    ended_at = getattr(project, "last_watch_ended_at", None)
    if ended_at is None:
        return None
    known: Any = project
    return WatchNeeds(
        known.last_watch,
        known.last_watch_code,
        known.last_watch_reason,
        attention_rules.is_seen(known.last_watch_seen, now),
        is_stalled=known.last_watch_stalled and project.is_auto,
        follow_up=known.last_watch_follow_up or "",
        repeat=known.last_watch_repeat,
        is_mended=rules.is_mended(known.last_watch_reason, known.last_watch_repeat_state),
    )
