"""Follows one watch session: reads its row and the timeline, and never decides anything."""

from __future__ import annotations

from runs import wiring
from runs.core.refusal import ActRefused
from runs.core.states import ProjectState
from runs.core.terminal import say, who
from runs.models import Notice, Run, Validation, WatchSession
from runs.projects import acts as projects
from runs.timeline import queries as timeline
from runs.watch import acts
from runs.watch.command import Lines, State, Summary, Told
from runs.watch.session import Request, Terms

CODE_GONE = 1
STEPS = (Request.DRAIN, Request.ABORT, Request.KILL)
SAID = {
    Request.DRAIN: "Draining: nothing new starts, what runs may finish. Ctrl-C again interrupts it.",
    Request.ABORT: "Aborting: what runs is interrupted and has ten seconds. Ctrl-C again kills it.",
    Request.KILL: "Killing what runs.",
}


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
    def open(cls, name: str, terms: Terms, lines: Lines) -> Follower | None:
        """Open a session of the named project; None while that is being cloned.

        Raises ActRefused; then nothing was opened.
        """
        project = projects.named(name)
        if project.state == ProjectState.CLONING:
            return None
        last = timeline.newest()
        try:
            session = acts.open(wiring.lab(), project, terms, by=who())
        except acts.AlreadyOpen as error:
            raise ActRefused(f"Error: {error} It is session {error.session.pk}.") from error
        except acts.WatchRefused as error:
            raise ActRefused(f"Error: {error}") from error
        lines.opened(session.pk, project.name)
        return cls(session, lines, last)

    def press(self, times: int) -> None:
        """Drain, abort or kill; asked again with the next news while the database is away."""
        self._asked = asked = step_of(times)
        if self._hand_on():
            say(SAID[asked])

    def news(self) -> int | None:
        """Tell what is new; the exit code once the session has ended."""
        if self._asked:
            self._hand_on()
        rows = WatchSession.objects.select_related("project")
        session = rows.filter(pk=self._session.pk).first()
        self._tell()
        if session is None:
            say("The project was removed, and its watch session with it.")
            return CODE_GONE
        self._session = session
        if session.is_open:
            self._tell_state(session)
            return None
        self._lines.summary(_summary(session))
        return session.code

    def _hand_on(self) -> bool:
        try:
            won = acts.ask(wiring.lab(), self._session, self._asked, by=who())
        except WatchSession.DoesNotExist:
            won = False
        self._asked = Request.NONE
        return won

    def _tell(self) -> None:
        for notice in timeline.all_after(self._last, self._project):
            self._last = notice.pk
            is_of_project = notice.watch_id is None and notice.run_id is None
            if notice.watch_id == self._session.pk or is_of_project:
                self._lines.told(_told(notice))

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


def step_of(pressed: int) -> Request:
    """What so many presses ask for; once draining, each one escalates."""
    return STEPS[min(pressed, len(STEPS)) - 1]


def _told(notice: Notice) -> Told:
    return Told(notice.at, notice.kind, notice.text, notice.issue_key, notice.run_id)


def _paused(session: WatchSession) -> str:
    """That nothing starts, why, and what to do; empty where that is not what it waits for."""
    project = session.project
    if not project.is_paused or session.request or session.reason:
        return ""
    return (
        f"{project.name} is paused: {project.streak} runs in a row failed. Nothing starts until you "
        "press Resume on the project's page; look at the failed runs first. This command waits."
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
