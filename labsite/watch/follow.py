"""Follows one watch session: reads its row and the timeline, and never decides anything."""

from __future__ import annotations

from django.db import DatabaseError

from labsite.beside.person import project_named, who
from labsite.beside.refused import Refusal
from labsite.supervisor import say
from labsite.watch.lines import Lines, State, Summary, Told
from labsite.watch.refused import NotYet
from runs import wiring
from runs.core import connections
from runs.core.states import ProjectState
from runs.models import Notice, Run, Validation, WatchSession
from runs.timeline import queries as timeline
from runs.watch import acts as watches
from runs.watch.session import Request, Terms

MOST_ENTRIES = 200
CODE_GONE = 1


class Follower:
    """One session as the command sees it. The database may go and come back meanwhile."""

    def __init__(self, session: WatchSession, lines: Lines, last: int) -> None:
        self._session = session
        self._project = session.project
        self._lines = lines
        self._last = last
        self._state: State | None = None
        self._asked = Request.NONE

    @classmethod
    def open(cls, name: str, terms: Terms, lines: Lines) -> Follower:
        """Open a session of the named project. Raises Refusal, NotYet; then nothing was opened."""
        project = project_named(name)
        if project.state == ProjectState.CLONING:
            raise NotYet
        last = timeline.newest()
        try:
            session = watches.open(wiring.lab(), project, terms, by=who())
        except watches.AlreadyOpen as error:
            raise Refusal(f"Error: {error} It is session {error.session.pk}.") from error
        except watches.WatchRefused as error:
            raise Refusal(f"Error: {error}") from error
        lines.opened(session.pk, project.name)
        return cls(session, lines, last)

    def ask(self, request: Request) -> bool:
        """Hand on what was pressed; asked again with the next news while the database is away."""
        self._asked = request
        return self._hand_on()

    def news(self) -> int | None:
        """Tell what is new; the exit code once the session has ended."""
        try:
            if self._asked:
                self._hand_on()
            rows = WatchSession.objects.select_related("project")
            session = rows.filter(pk=self._session.pk).first()
            while self._tell() == MOST_ENTRIES:
                pass  # more than that was told at once
            if session is None:
                say("The project was removed, and its watch session with it.")
                return CODE_GONE
            self._session = session
            if session.is_open:
                self._tell_state(session)
                return None
            self._lines.summary(_summary(session))
            return session.code
        except DatabaseError:
            connections.renew()
            return None

    def _hand_on(self) -> bool:
        try:
            won = watches.ask(wiring.lab(), self._session, self._asked, by=who())
        except WatchSession.DoesNotExist:
            won = False
        except DatabaseError:
            connections.renew()
            return False
        self._asked = Request.NONE
        return won

    def _tell(self) -> int:
        """Tell the next entries; how many were read."""
        found = timeline.after(self._last, MOST_ENTRIES, self._project)
        for notice in found:
            self._last = notice.pk
            is_of_project = notice.watch_id is None and notice.run_id is None
            if notice.watch_id == self._session.pk or is_of_project:
                self._lines.told(_told(notice))
        return len(found)

    def _tell_state(self, session: WatchSession) -> None:
        active = Run.objects.active().filter(watch=session).count()
        state = State(
            session.phase,
            session.completed,
            session.failed,
            active,
            session.threshold,
            session.poll_failures,
            session.held_up(active),
            _paused(session),
        )
        if state != self._state:
            self._state = state
            self._lines.state(state)


def _told(notice: Notice) -> Told:
    return Told(notice.at, notice.kind, notice.text, notice.issue_key, notice.run_id)


def _paused(session: WatchSession) -> str:
    """That nothing starts, why, and what to do; empty where that is not what it waits for."""
    project = session.project
    if not project.is_paused or session.request or session.reason:
        return ""
    return (
        f"{project.name} is paused: {project.streak} runs in a row failed. Nothing starts until you "
        "press Reset on the project's page; look at the failed runs first. This command waits."
    )


def _summary(session: WatchSession) -> Summary:
    rows = Validation.objects.filter(session=session).order_by("pk")
    ended_at = session.ended_at or session.opened_at
    return Summary(
        session.pk,
        session.code or 0,
        session.reason,
        session.completed,
        session.failed,
        session.unstarted,
        session.stopped,
        [row.state for row in rows],
        ended_at - session.opened_at,
    )
