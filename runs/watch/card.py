"""The watch session as its card shows it: how it stands, what each button would do, and to what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Exists, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from runs.core.database import prepared_with_keys
from runs.core.states import ValidationState
from runs.dispatch import scope
from runs.models import Fixer, Project, Settings, WatchSession
from runs.models import Validation as Checked
from runs.overview.board import RunRow
from runs.validation.rules import can_repeat
from runs.watch import rules, summaries
from runs.watch.session import Phase, Poll, Request, Validation
from runs.web import addresses

_ASKED = {
    Request.DRAIN: "It drains: nothing new starts, what runs may finish.",
    Request.ABORT: "It was aborted: what runs was interrupted and has ten seconds.",
    Request.KILL: "It was killed: what runs is ended at once.",
}


@dataclass(frozen=True, slots=True)
class Button:
    """One thing that can be asked of a session, and what it would do now."""

    name: str
    label: str
    will: str
    asks: str
    url: str


@dataclass(frozen=True, slots=True)
class WatchCard:
    """A session with its active runs, counted in one statement with its counters.

    `fixers` are the agents of its project that try to mend a failed validation now. `retry_at`:
    when a tracker that ended automatic work is asked again.
    """

    session: Any
    active: int
    settings: Settings
    running: Sequence[RunRow] = ()
    needs_resume: bool = False
    fixers: int = 0
    retry_at: datetime | None = None

    @property
    def is_open(self) -> bool:
        return bool(self.session.is_open)

    @property
    def tone(self) -> str:
        """The colour of its mark; one that ended is calm unless something is wrong."""
        if self.session.is_open:
            return summaries.tone(self.session.phase)
        return "bad" if self.session.code in rules.FAILED and not self.is_mended else ""

    @property
    def is_mended(self) -> bool:
        """Whether its validation failed and, repeated by a person, is at work or has passed."""
        is_repeat = bool(self.session.last_validation_asked_by)
        state = self.session.last_validation_state if is_repeat else None
        return rules.is_mended(self.session.reason, state)

    @property
    def can_repeat(self) -> bool:
        """Whether its newest validation may be repeated."""
        state = self.session.last_validation_state
        return can_repeat(self.is_open, ValidationState(state) if state else None)

    @property
    def url(self) -> str:
        return addresses.of("runs:watch-session", self.session.project_id, self.session.pk)

    @property
    def idle(self) -> str:
        """The words of an idle session, as they are told."""
        if self.session.phase != Phase.IDLE or self.session.is_auto:
            return ""
        return rules.idle_text(Poll(0, self.session.blocked), self.settings.watch_interval)

    @property
    def held(self) -> str:
        """Why it starts nothing although something is ready."""
        return str(self.session.held_up(self.active))

    @property
    def asked(self) -> str:
        """What a person asked for; nothing once it has ended."""
        return _ASKED.get(Request(self.session.request), "") if self.session.is_open else ""

    @property
    def end(self) -> str:
        """Code and reason in words."""
        said = end_words(self.session)
        if self.session.is_open or not self.session.last_validation_asked_by:
            return said
        return f"{said}, validated again: {self.session.last_validation_state}"

    @property
    def last_validation(self) -> str:
        """How its newest validation stands, and after how many completed issues it was made."""
        state, count = self.session.last_validation_state, self.session.last_validation_count
        return f"{state} at {count} completed" if state else "none yet"

    @property
    def buttons(self) -> Sequence[Button]:
        """What may still be asked: only what outranks the request before it."""
        if not self.session.is_open:
            return ()
        return [one for one in self._all() if Request[one.name.upper()] > self.session.request]

    def button(self, name: str) -> Button:
        """What one of them would do."""
        return next(one for one in self._all() if one.name == name)

    @property
    def _works(self) -> str:
        """What of it is at work; empty for nothing."""
        runs = "1 active run" if self.active == 1 else f"{self.active} active runs"
        is_validating = self.session.validation == Validation.RUNNING
        parts = [runs if self.active else "", "the validation" if is_validating else ""]
        return " and ".join(part for part in parts if part)

    def _all(self) -> Sequence[Button]:
        works = self._works
        off = " Automatic work is turned off too." if self.session.is_auto else ""
        wait = f"waits for {works}, " if works else ""
        over = "No run is active: it ends at once (exit code 130)."
        abort = f"Interrupts {works}; ten seconds are left to end. Work is kept."
        kill = f"Kills {works} at once. Work is kept."
        what = works.replace("active ", "") or "end it"
        return (
            self._button(
                "drain",
                "Drain",
                f"Starts nothing new, {wait}validates, then ends (exit code 130).{off}",
            ),
            self._button(
                "abort",
                "Abort",
                f"{abort if works else over}{off}",
                f"Press again: {'interrupt ' if works else ''}{what}",
            ),
            self._button(
                "kill",
                "Kill",
                f"{kill if works else over}{off}",
                f"Press again: {'kill ' if works else ''}{what}",
            ),
        )

    def _button(self, name: str, label: str, will: str, asks: str = "") -> Button:
        url = addresses.of(f"runs:watch-{name}", self.session.project_id, self.session.pk)
        return Button(name, label, will, asks, url)


def with_facts(rows: QuerySet[WatchSession]) -> QuerySet[Any]:
    """Sessions with their active runs, and with how their newest validation stands."""
    newest = Checked.objects.filter(session=OuterRef("pk")).order_by("-number")
    found: QuerySet[Any] = scope.with_active(rows).annotate(
        last_validation_state=Subquery(newest.values("state")[:1]),
        last_validation_count=Subquery(newest.values("count")[:1]),
        last_validation_asked_by=Subquery(newest.values("asked_by")[:1]),
    )
    return found


def end_words(session: WatchSession) -> str:
    """How a session ended; what was not checked is never called a success of the checks."""
    if session.code is None:
        return ""
    said = "Success" if session.code == 0 else f"{session.reason[:1].upper()}{session.reason[1:]}"
    return f"{said} (exit code {session.code})"


@prepared_with_keys(1)
def _newest(_now: datetime, project: int) -> QuerySet[Any]:
    stalled = WatchSession.objects.filter(project=OuterRef("project"), needs_resume=True)
    retry_at = Subquery(stalled.order_by("-pk").values("retry_at")[:1])
    rows = with_facts(WatchSession.objects.filter(project=project))
    mending = Fixer.objects.filter(project=OuterRef("project"), end="").order_by()
    fixers = mending.values("project").annotate(number=Count("pk")).values("number")
    rows = rows.annotate(
        stalled=Exists(stalled), stalled_until=retry_at, fixers=Coalesce(Subquery(fixers), 0)
    )
    newest: QuerySet[Any] = rows.order_by("-pk")[:1]
    return newest


def of(project: Project, settings: Settings, running: Sequence[RunRow]) -> WatchCard | None:
    """The newest session of a project, which is the open one if there is one. One query.

    `running` are rows that were loaded already; those of the session are told by it.
    """
    rows = _newest().rows(keys=[project.pk])
    if not rows:
        return None
    found = rows[0]
    own = [row for row in running if row.run.watch_id == found.pk]
    needs_resume = found.stalled and project.is_auto
    return WatchCard(
        found, found.active, settings, own, needs_resume, found.fixers, found.stalled_until
    )
