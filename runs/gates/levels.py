"""Accepted runs that wait for their run level: how each stands, and have it proven again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.core.states import Outcome, ProjectState, ValidationState
from runs.gates import level_rules
from runs.gates.level_rules import Level, LevelFacts, Standing
from runs.models import Project, Run, Validation, WatchSession
from runs.validation import acts as validation_acts
from runs.watch.session import Request

PROVEN = (Outcome.SUCCEEDED, Outcome.NO_CHANGE, Outcome.OBSOLETE)
AT_ONCE = 50
_COLUMNS = (
    *("run", "session", "state", "reason", "follow_up_key", "began_at", "left_out"),
    "pk",
)


class ProveRefusedError(ActRefused):
    """No run level was begun; the text says why."""


def find_waiting_runs(project: Project) -> QuerySet[Run]:
    """Return the accepted runs of a project whose issue nobody has asked to be closed, newest first."""
    rows = Run.objects.filter(project=project, outcome__in=PROVEN, attempts__gte=1)
    rows = rows.exclude(outcome=Outcome.SUCCEEDED, accepted_commit="")
    return rows.filter(close_asked_at=None, closed_at=None).order_by("-pk")


def is_waiting(run: Run) -> bool:
    """Return whether a run was accepted and nobody has asked to close its issue.

    Accepted work that a person discarded has no accepted commit any more, and waits for nothing.
    """
    if not run.attempts or run.outcome not in PROVEN or run.close_asked_at is not None:
        return False
    return bool(run.accepted_commit) or run.outcome != Outcome.SUCCEEDED


def read_levels(runs: Sequence[Run]) -> Mapping[int, Level]:
    """Return how those of these runs stand that were accepted and whose issue is not to be closed yet.

    Two queries at most where any waits, else none; none either for those of a session that their
    project, if it was read so, is known to have open.
    """
    found = {run.pk: Level(Standing.COMES) for run in runs if is_waiting(run)}
    asked = [run for run in runs if run.pk in found and not _is_known_open(run)]
    if not asked:
        return found
    sessions = _sessions({run.watch_id for run in asked if run.watch_id is not None})
    about = Q(run__in=[run.pk for run in asked])
    if sessions:
        about |= Q(session__in=sessions)
    rows = Validation.objects.filter(about).order_by("pk").values_list(*_COLUMNS)
    own: dict[int, Any] = {}
    of_session: dict[int, Any] = {}
    for row in rows:
        if row[0] is not None:
            own[row[0]] = row
        else:
            of_session[row[1]] = row
    for run in asked:
        session = sessions.get(run.watch_id or 0)
        both = (own.get(run.pk), _covering(run, of_session.get(run.watch_id or 0)))
        row = max((one for one in both if one is not None), key=_rank, default=None)
        found[run.pk] = level_rules.level(_facts(run, session, row))
    return found


def _rank(row: Any) -> tuple[bool, int]:
    """One that runs may still pass, whatever a younger one said; else the newest counts."""
    return row[2] == ValidationState.RUNNING, row[-1]


def _is_known_open(run: Run) -> bool:
    return run.watch_id is not None and getattr(run.project, "open_watch", None) == run.watch_id


def _sessions(wanted: set[int]) -> Mapping[int, WatchSession]:
    if not wanted:
        return {}
    columns = ("ended_at", "reason", "request", "asked_by")
    return WatchSession.objects.only(*columns).in_bulk(wanted)


def _covering(run: Run, row: Any) -> Any:
    """A session's newest run level, if it began after the run was accepted."""
    if row is None or run.ended_at is None or row[5] < run.ended_at:
        return None
    return row


def _facts(run: Run, session: WatchSession | None, row: Any) -> LevelFacts:
    _, _, state, reason, follow_up, _, left_out, _ = row or (None,) * len(_COLUMNS)
    name = f"issue {run.issue_key}: "
    why = next((one.removeprefix(name) for one in left_out or () if one.startswith(name)), "")
    has_own = row is not None and row[0] is not None
    return LevelFacts(
        run.issue_key,
        run.branch,
        run.accepted_commit or None,
        run.project.default_branch,
        ValidationState(state) if state else None,
        reason or "",
        session is not None and session.ended_at is None and not has_own,
        "" if session is None or has_own else _ended(session),
        why,
        follow_up or "",
    )


def _ended(session: WatchSession) -> str:
    """How a session ended, as a sentence goes on."""
    if session.ended_at is None:
        return ""
    by = f" by {session.asked_by}" if session.asked_by else ""
    if session.request == Request.KILL:
        return f"{session.pk} was killed{by}"
    if session.request == Request.ABORT:
        return f"{session.pk} was aborted{by}"
    return f"{session.pk} ended ({session.reason})"


def prove(lab: Lab, run: Run, by: str) -> Validation:
    """Begin another run level about an accepted run alone; the one that is at work if there is one.

    Its issue is closed when it passes. Safe to repeat and to race: there are never two at once.
    Raises ProveRefusedError.
    """
    with transaction.atomic():
        Project.objects.hold(run.project_id)
        run = Run.objects.select_related("project").get(pk=run.pk)
        newest = run.validations.order_by("-number").first()
        if newest is not None and newest.is_running:
            return newest
        why = _why_not(run)
        if why:
            raise ProveRefusedError(why, code="nothing_to_prove")
        return validation_acts.begin_again_for_run(lab, run, by=by)


def prove_all(lab: Lab, project: Project, by: str) -> int:
    """The same for all runs of a project that no session and no run level proves any more; how many."""
    rows = list(find_waiting_runs(project).select_related("project")[:AT_ONCE])
    found = read_levels(rows)
    over = [run for run in rows if found[run.pk].standing is Standing.OVER]
    for run in over:
        prove(lab, run, by)
    return len(over)


def _why_not(run: Run) -> str:
    key = run.issue_key
    if run.closed_at is not None or run.close_asked_at is not None:
        return f"Issue {key} is closed or being closed already, so nothing is left to prove."
    if not is_waiting(run):
        return "The gates did not accept this run, so there is nothing to prove. Nothing was begun."
    if run.project.state != ProjectState.READY:
        return f"{ProjectState(run.project.state).not_ready} Nothing was begun."
    if not run.project.has_gates:
        return (
            "This project has no gates any more, so nothing was begun. Close the issue yourself, or "
            "choose gates on its page Checks again."
        )
    if read_levels([run])[run.pk].standing is Standing.COMES:
        return f"Watch session {run.watch_id} validates it. Nothing was begun."
    return ""
