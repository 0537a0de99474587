"""What people ask of watch sessions: open one, drain, abort, kill, resume.

Nothing here ends a session: a request is stored, and the worker's next step heeds it.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import IntegrityError, transaction
from django.db.models import F

from runs.core.effects import RunEnd, ValidationEnd
from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind, Outcome, ProjectState
from runs.forges import cadence, fan_out
from runs.forges.fan_out import Silence
from runs.models import LoopIssue, Project, WatchSession
from runs.timeline import announce
from runs.validation.specs import Switches
from runs.watch import rules
from runs.watch.session import Reason, Request, Terms, Validation

_ASKED = {
    Request.DRAIN: "was asked to drain: nothing new starts, what runs may finish",
    Request.ABORT: "was aborted: what runs is interrupted and has ten seconds",
    Request.KILL: "was killed: what runs is ended at once",
}


class WatchRefused(ActRefused):
    """The session cannot be opened; the text says why."""


class AlreadyOpen(WatchRefused):
    """The project has an open session, which is `session`."""

    def __init__(self, session: WatchSession) -> None:
        super().__init__("This project has an open watch session. Nothing was started.")
        self.session = session


def open_of(project: Project) -> WatchSession | None:
    """The open session of a project."""
    return WatchSession.objects.open().filter(project=project).first()


def open(lab: Lab, project: Project, terms: Terms, by: str) -> WatchSession:
    """Open a session; the worker takes it up at once. Raises AlreadyOpen, WatchRefused."""
    if project.state != ProjectState.READY:
        raise WatchRefused(f"{ProjectState(project.state).not_ready} Nothing was started.")
    if not project.tracker:
        raise WatchRefused(
            "This project has no tracker that labsite can read. Nothing was started."
        )
    session = store(lab, project, terms, by)
    if session is not None:
        lab.bell.look(project.slug)
        return session
    before = open_of(project)
    if before is None:  # ended in the same moment
        return open(lab, project, terms, by)
    raise AlreadyOpen(before)


def store(lab: Lab, project: Project, terms: Terms, by: str = "") -> WatchSession | None:
    """Store an open session; None when the project has one, which the database decides."""
    fresh = rules.opened(terms)
    try:
        with transaction.atomic():
            session = WatchSession.objects.create(
                project=project,
                is_auto=terms.is_auto,
                is_watching=terms.is_watching,
                limit=terms.limit,
                every=terms.every,
                threshold=fresh.threshold,
                opened_by=by,
                opened_at=lab.now(),
                switches=terms.switches.to_json(),
            )
            cadence.kick(lab, project.pk)
            text = f"watch session {session.pk} was opened{_words(terms)}"
            kind = NoticeKind.WATCH_OPENED
            announce.tell(lab, kind, text, project=project, watch_id=session.pk, by=by)
    except IntegrityError:
        return None
    return session


def ask(lab: Lab, session: WatchSession, request: Request, by: str) -> bool:
    """Drain, abort or kill; False when it ended already or something stronger was asked.

    What the switch opened and a person ends turns the switch off too, or it would open another.
    """
    with transaction.atomic():
        Project.objects.hold(session.project_id)
        rows = WatchSession.objects.open().filter(pk=session.pk, request__lt=request)
        won = rows.update(
            request=request,
            asked_at=lab.now(),
            asked_by=by,
            look_at=None,
            version=F("version") + 1,
        )
        if won:
            project = session.project
            text = f"watch session {session.pk} {_ASKED[request]}"
            kind = NoticeKind.WATCH_ASKED
            announce.tell(lab, kind, text, project=project, watch_id=session.pk, by=by)
            rows_of_switch = Project.objects.filter(pk=project.pk, is_auto=True)
            if session.is_auto and rows_of_switch.update(is_auto=False):
                off = "automatic work was turned off"
                announce.tell(lab, NoticeKind.AUTO_CHANGED, off, project=project, by=by)
            transaction.on_commit(lambda: lab.bell.look(project.slug), robust=True)
    session.refresh_from_db()
    return bool(won)


def drain(lab: Lab, session: WatchSession, by: str) -> bool:
    """Start nothing more, wait for what runs, validate, end with 130."""
    return ask(lab, session, Request.DRAIN, by)


def abort(lab: Lab, session: WatchSession, by: str) -> bool:
    """Interrupt what runs, wait ten seconds at most, end with 130."""
    return ask(lab, session, Request.ABORT, by)


def kill(lab: Lab, session: WatchSession, by: str) -> bool:
    """End everything of the session at once."""
    return ask(lab, session, Request.KILL, by)


def resume(lab: Lab, project: Project, by: str) -> bool:
    """Let automatic work go on whose tracker could not be reached; False when it does."""
    with transaction.atomic():
        Project.objects.hold(project.pk)
        rows = WatchSession.objects.filter(project=project, needs_resume=True)
        won = Project.objects.filter(pk=project.pk, is_auto=True).exists() and rows.update(
            needs_resume=False
        )
        if won:
            text = "automatic work was resumed"
            if not by:
                text = "the tracker answers again, and automatic work goes on"
            announce.tell(lab, NoticeKind.AUTO_CHANGED, text, project=project, by=by)
            store(lab, project, SWITCH, by)
            transaction.on_commit(lambda: lab.bell.look(project.slug), robust=True)
    return bool(won)


def resume_by_itself(lab: Lab, projects: Sequence[int]) -> None:
    """Ask the trackers again that ended automatic work of these projects; go on with who answers.

    One that does not answer is asked again later and later, and nothing more is told of it.
    """
    rows = WatchSession.objects.to_resume(lab.now()).filter(project__in=projects)
    found = list(rows.select_related("project").order_by("pk"))
    wanted = {_root(row): row.project.ready_label for row in found}
    answers = fan_out.ask_roots(lab, wanted, lambda tracker, some: tracker.queues(some))
    for row in found:
        answer = answers.get(_root(row), Silence("nobody can ask it"))
        if isinstance(answer, Silence):
            _ask_later(lab, row, answer)
        elif resume(lab, row.project, ""):
            lab.bell.look(row.project.slug)


def _root(row: WatchSession) -> tuple[str, str]:
    return row.project.tracker, row.project.tracker_root


def _ask_later(lab: Lab, row: WatchSession, silence: Silence) -> None:
    at = lab.now() + rules.resume_wait(row.retries + 1)
    at = max(at, silence.until) if silence.until is not None else at
    rows = WatchSession.objects.filter(pk=row.pk, needs_resume=True, retries=row.retries)
    rows.update(retry_at=at, retries=F("retries") + 1)


SWITCH = Terms(is_watching=True, is_auto=True)


def switched(lab: Lab, project: Project, *, is_on: bool, by: str) -> None:
    """Let the session follow the switch, in the transaction that turned it."""
    WatchSession.objects.filter(project=project, needs_resume=True).update(needs_resume=False)
    session = WatchSession.objects.open().filter(project=project).first()
    if is_on and session is None:
        store(lab, project, SWITCH, by)
    elif is_on and session is not None and session.is_auto:
        _withdraw(lab, session)
    elif not is_on and session is not None and session.is_auto:
        ask(lab, session, Request.DRAIN, by)


def project_changed(lab: Lab, project_id: int) -> None:
    """A forge told of a change: the open session asks at its next step, unless hooks come in heaps."""
    rows = WatchSession.objects.open().filter(project=project_id)
    rows.update(look_at=None, next_poll_at=None, version=F("version") + 1)


def run_ended(lab: Lab, end: RunEnd) -> None:
    """Count a run in the session that started it; whatever the end, it has one active run less.

    Of a loop that stays each issue counts; one that ends between two has no other.
    """
    if end.watch_id is None:
        return
    more: dict[str, object] = {}
    completed, is_between = _took(end.run_id)
    is_success = None if is_between else rules.counts(end.outcome, end.did_start)
    if is_success is not None:
        more["failed"] = F("failed") + int(not is_success)  # PostgreSQL adds no boolean
        completed += 1
    elif end.outcome is Outcome.FAILED and end.was_claimed and not end.did_start:
        more["unstarted"] = F("unstarted") + 1
    elif end.outcome is Outcome.STOPPED:
        more["stopped"] = F("stopped") + 1
    if completed:  # the queue may hold what this set free
        more |= {"completed": F("completed") + completed, "next_poll_at": None}
    rows = WatchSession.objects.open().filter(pk=end.watch_id)
    rows.update(look_at=None, version=F("version") + 1, **more)


def _took(run_id: int) -> tuple[int, bool]:
    """How many issues a loop that stays has completed, and whether it has none at the moment."""
    took = LoopIssue.objects.filter(loop__run=run_id).exclude(end=LoopIssue.End.GIVEN_BACK)
    rows = list(took.values_list("end", "turns", "moved_at"))
    # One without a turn was completed by the loop that this one goes on with.
    done = sum(end == LoopIssue.End.COMPLETED and turns > 0 for end, turns, _ in rows)
    is_at_one = any(end != LoopIssue.End.COMPLETED and moved_at for end, _, moved_at in rows)
    return done, bool(rows) and not is_at_one


def validation_ended(lab: Lab, end: ValidationEnd) -> None:
    """Give a session the answer that it waits for, if it still does."""
    if end.watch_id is None:
        return
    answer = {True: Validation.PASSED, False: Validation.FAILED, None: Validation.NONE}[end.passed]
    if end.passed is False:
        # One that a person asked for again failed too: nobody has seen that yet.
        WatchSession.objects.filter(pk=end.watch_id).exclude(ended_at=None).update(seen_until=None)
    rows = WatchSession.objects.open().filter(pk=end.watch_id, validation=Validation.RUNNING)
    rows.update(validation=answer, look_at=None, version=F("version") + 1)


def _withdraw(lab: Lab, session: WatchSession) -> None:
    """The switch takes back its own drain; what was aborted or killed ends."""
    rows = WatchSession.objects.open().filter(
        pk=session.pk, request__lte=Request.DRAIN, reason__in=["", Reason.INTERRUPTED]
    )
    rows.update(
        request=Request.NONE,
        asked_at=None,
        asked_by="",
        reason="",
        look_at=None,
        next_poll_at=None,
        version=F("version") + 1,
    )
    cadence.kick(lab, session.project_id)


def _words(terms: Terms) -> str:
    if terms.is_auto:
        return " by automatic work"
    parts = [
        "it watches" if terms.is_watching else "it ends when nothing is ready",
        f"at most {terms.limit} issues" if terms.limit else "",
        f"a validation after every {terms.every}" if terms.every else "",
        *_switched(terms.switches),
    ]
    return f": {', '.join(part for part in parts if part)}"


def _switched(switches: Switches) -> list[str]:
    """What it turns off or sets of the project's checks."""
    percent, kept = switches.coverage_threshold, switches.keep_worktrees
    return [
        f"without {', '.join(sorted(switches.disabled))}" if switches.disabled else "",
        f"{percent:g} % coverage needed" if percent is not None else "",
        "clean worktrees of failures kept" if kept else "",
    ]
