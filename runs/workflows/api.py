"""Composite workflows over the API: list, start, show, stop, start a failed phase again."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from django.http import HttpRequest
from ninja import Query, Status
from pydantic import BaseModel, Field

from runs.api import replies, showing
from runs.api.asked import BIGGEST_NUMBER, NO_NUL, WHOLE, Given, Number, Paging, ProjectId, RunId
from runs.api.router import Router
from runs.groups.terms import NAME_CHARACTERS
from runs.models import Workflow, WorkflowPhase
from runs.projects.api import project_of
from runs.web.access import username
from runs.web.refusals import Denied
from runs.wiring import lab
from runs.workflows import acts
from runs.workflows.acts import CEILING_SECONDS, NewPhase
from runs.workflows.rules import PhaseState, WorkflowState
from trackers.base import NotFound

router = Router(tags=["Workflows"])

OVER = "It had ended already. Nothing was changed."
NOT_HELD = "It does not wait for this phase. Nothing was changed."
Seconds = Annotated[int, Field(ge=1, le=BIGGEST_NUMBER), WHOLE]


class GivenPhase(Given):
    """`group` names an open group. Without a timeout that of its preset counts, without a net the
    timeout and five minutes, or 15 minutes where there is no timeout."""

    name: str = Field(min_length=1, max_length=40, pattern=NO_NUL)
    group: str = Field(min_length=1, max_length=NAME_CHARACTERS, pattern=NO_NUL)
    timeout_seconds: Seconds | None = None
    net_seconds: Seconds | None = None


class NewWorkflow(Given):
    """The phases in their order."""

    name: str = Field(min_length=1, max_length=80, pattern=NO_NUL)
    phases: list[GivenPhase] = Field(min_length=1, max_length=20)
    ceiling_seconds: Seconds = CEILING_SECONDS


class PhaseShown(BaseModel):
    """`group` and `monitor` are null once they are deleted, and a monitor before the phase begins."""

    number: int
    name: str
    group: int | None
    group_name: str
    state: PhaseState
    monitor: int | None
    timeout_seconds: int | None
    net_seconds: int
    began_at: datetime | None
    ended_at: datetime | None
    completed: list[str]
    incomplete: list[str]
    timed_out: bool
    note: str


class WorkflowShown(BaseModel):
    """`note` says why it is held, or how it ended."""

    id: int
    project: int
    name: str
    state: WorkflowState
    ceiling_seconds: int
    started_at: datetime
    started_by: str
    ended_at: datetime | None
    ended_by: str
    note: str
    phases: list[PhaseShown]


class Workflows(BaseModel):
    items: list[WorkflowShown]
    next: int | None


@router.get(
    "/{int:project_id}/workflows",
    response=replies.look(Workflows),
    summary="List composite workflows",
)
def workflow_list(request: HttpRequest, project_id: ProjectId, wanted: Query[Paging]) -> Workflows:
    """The workflows of a project with their phases, newest first."""
    rows = Workflow.objects.filter(project=project_of(project_id))
    page, cursor = showing.page(rows.prefetch_related("phases"), wanted)
    return Workflows(items=[_shown(row) for row in page], next=cursor)


@router.post(
    "/{int:project_id}/workflows",
    response=replies.given(WorkflowShown, 201),
    summary="Start a composite workflow",
)
def workflow_start(
    request: HttpRequest, project_id: ProjectId, given: NewWorkflow
) -> Status[WorkflowShown]:
    """Its phases follow each other, each watched by a monitor of its own, under one ceiling."""
    phases = [
        NewPhase(one.name, one.group, one.timeout_seconds, one.net_seconds) for one in given.phases
    ]
    project, ceiling = project_of(project_id), given.ceiling_seconds
    made = acts.start(
        lab(), project, given.name, phases, by=username(request), ceiling_seconds=ceiling
    )
    return Status(201, _shown(made))


@router.get(
    "/{int:project_id}/workflows/{int:workflow_id}",
    response=replies.look(WorkflowShown),
    summary="Show a composite workflow",
)
def workflow_show(request: HttpRequest, project_id: ProjectId, workflow_id: RunId) -> WorkflowShown:
    return _shown(_workflow_of(project_id, workflow_id))


@router.post(
    "/{int:project_id}/workflows/{int:workflow_id}/stop",
    response=replies.act(WorkflowShown),
    summary="Stop a composite workflow",
)
def workflow_stop(request: HttpRequest, project_id: ProjectId, workflow_id: RunId) -> WorkflowShown:
    """Its monitor is stopped too; tasks and workers go on."""
    row = _workflow_of(project_id, workflow_id)
    if not acts.stop(lab(), row, username(request)):
        raise Denied(409, "already_ended", OVER)
    return _shown(_workflow_of(project_id, workflow_id))


@router.post(
    "/{int:project_id}/workflows/{int:workflow_id}/phases/{int:number}/restart",
    response=replies.act(WorkflowShown),
    summary="Start a failed phase again",
)
def workflow_restart(
    request: HttpRequest, project_id: ProjectId, workflow_id: RunId, number: Number
) -> WorkflowShown:
    """A workflow whose monitor failed waits until somebody does this. The wait used up no time."""
    row = _workflow_of(project_id, workflow_id)
    phase = row.phases.select_related("group").filter(number=number).first()
    if phase is None:
        raise NotFound(f"There is no phase {number} in this workflow.")
    if not acts.restart(lab(), row, phase, username(request)):
        raise Denied(409, "not_held", NOT_HELD)
    return _shown(_workflow_of(project_id, workflow_id))


def _workflow_of(project_id: int, workflow_id: int) -> Workflow:
    project = project_of(project_id)
    found = Workflow.objects.filter(pk=workflow_id, project=project).first()
    if found is None:
        raise NotFound(f"There is no workflow {workflow_id} in this project.")
    found.project = project
    return found


def _shown(row: Workflow) -> WorkflowShown:
    same = ("name", "ceiling_seconds", "started_at", "started_by", "ended_at", "ended_by", "note")
    return WorkflowShown(
        id=row.pk,
        project=row.project_id,
        state=WorkflowState(row.state),
        phases=[_phase(one) for one in row.phases.all()],
        **{name: getattr(row, name) for name in same},
    )


def _phase(row: WorkflowPhase) -> PhaseShown:
    same = ("number", "name", "group_name", "timeout_seconds", "net_seconds", "began_at")
    more = ("ended_at", "completed", "incomplete", "note")
    return PhaseShown(
        group=row.group_id,
        monitor=row.monitor_id,
        state=PhaseState(row.state),
        timed_out=row.is_timed_out,
        **{name: getattr(row, name) for name in (*same, *more)},
    )
