"""Sessions that people drive, over the API: list, start, stop."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from django.http import HttpRequest
from ninja import Status
from pydantic import BaseModel, Field

from runs.api import replies
from runs.api.asked import NO_NUL, Given, ProjectId, RunId
from runs.api.router import Router
from runs.core.states import PersonState
from runs.manual import acts, endings
from runs.manual import rows as manual_rows
from runs.models import ManualSession
from runs.projects.api import project_of
from runs.web.access import username
from runs.web.refusals import Denied
from runs.wiring import lab
from trackers.base import NotFound

router = Router(tags=["Sessions"])

ENDED = "This session had ended already, so nothing was stopped."


class NewSession(Given):
    """The label is optional; the time is added to it."""

    label: Annotated[str, Field(max_length=32, pattern=NO_NUL)] = ""


class Session(BaseModel):
    """A session that a person drives. `warning` says what could not be tidied."""

    id: int
    label: str
    branch: str
    state: str
    by: str
    attach: str
    started_at: datetime | None
    ended_at: datetime | None
    warning: str


class Sessions(BaseModel):
    items: list[Session]


@router.get("/{int:project_id}/sessions", response=replies.look(Sessions), summary="List sessions")
def session_list(request: HttpRequest, project_id: ProjectId) -> Sessions:
    """Those that are live, and for a day those that left something to be told."""
    return Sessions(items=[_shown(one) for one in manual_rows.of(lab(), project_of(project_id))])


@router.post(
    "/{int:project_id}/sessions",
    response=replies.given(Session, 201, 202),
    summary="Start a session",
)
def session_start(
    request: HttpRequest, project_id: ProjectId, given: NewSession
) -> Status[Session]:
    """Start a session on a branch of its own. 202: it is still being made.

    502: it did not start, or ended at once; the answer says which and what became of its branch.
    """
    asked = acts.start(lab(), project_of(project_id), given.label, username(request))
    row = acts.wait(lab(), asked)
    if row.state == PersonState.ENDED:
        raise Denied(502, "start_failed", row.warning or acts.over(row))
    return Status(201 if row.state == PersonState.LIVE else 202, _of(row))


@router.post(
    "/{int:project_id}/sessions/{int:session_id}/stop",
    response=replies.act(Session),
    summary="Stop a session",
)
def session_stop(request: HttpRequest, project_id: ProjectId, session_id: RunId) -> Session:
    """End a session now. What is clean is removed, everything else is kept."""
    rows = ManualSession.objects.select_related("project")
    row = rows.filter(pk=session_id, project=project_of(project_id)).first()
    if row is None:
        raise NotFound(f"There is no session {session_id} in this project.")
    if not endings.stop(lab(), row, username(request)):
        raise Denied(409, "already_ended", ENDED)
    return _of(row)


def _of(row: ManualSession) -> Session:
    return _shown(manual_rows.with_attach(lab(), row))


def _shown(one: manual_rows.Driven) -> Session:
    row = one.row
    return Session(
        id=row.pk,
        label=row.label,
        branch=row.branch,
        state=row.state,
        by=row.by,
        attach=one.attach,
        started_at=row.started_at,
        ended_at=row.ended_at,
        warning=row.warning,
    )
