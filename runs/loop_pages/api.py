"""Loops over the API: one run's loop, its turns and guidance; a project's settings and memories."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from ninja import Query, Status

from runs.api import etags, replies, showing
from runs.api.asked import Number, Paging, ProjectId, RunId
from runs.api.router import Router
from runs.lifecycle.api import run_of
from runs.loop_pages import run_card, schemas
from runs.loop_settings import settings_acts
from runs.loop_settings.settings_acts import LoopSettingsRefused
from runs.loops import acts
from runs.models import Loop, LoopMemory, LoopRole, Project, Run
from runs.projects.api import project_of
from runs.web.access import username
from runs.wiring import lab
from trackers.base import NotFound

router = Router(tags=["Loops"])
of_project = Router(tags=["Loops"])


@router.get("/{int:run_id}/loop", response=replies.look(schemas.RunLoop), summary="Show a loop")
def loop_show(request: HttpRequest, run_id: RunId) -> schemas.RunLoop:
    """Where the loop of a run stands, and what is used of its limits."""
    return _shown(run_of(run_id))


@router.get(
    "/{int:run_id}/turns", response=replies.look(schemas.Turns), summary="List the turns of a loop"
)
def turn_list(request: HttpRequest, run_id: RunId, wanted: Query[Paging]) -> schemas.Turns:
    """Turns, newest first, without their texts."""
    page, cursor = showing.page(run_card.rows(_loop(run_of(run_id))), wanted)
    return schemas.Turns(items=[schemas.turn_summary(one) for one in page], next=cursor)


@router.get(
    "/{int:run_id}/turns/{int:generation}/{int:number}",
    response=replies.look(schemas.Turn),
    summary="Show a turn",
)
def turn_show(
    request: HttpRequest, run_id: RunId, generation: Number, number: Number
) -> schemas.Turn:
    """One turn with its prompt, its answer and its events."""
    found = _loop(run_of(run_id)).turns.filter(generation=generation, number=number).first()
    if found is None:
        raise NotFound(f"Run {run_id} has no turn {number} of generation {generation}.")
    return schemas.turn(found)


@router.get(
    "/{int:run_id}/guidance",
    response=replies.look(schemas.Guidances),
    summary="List what people told a loop",
)
def guidance_list(request: HttpRequest, run_id: RunId, wanted: Query[Paging]) -> schemas.Guidances:
    """Guidance, newest first, and whether an agent acknowledged it."""
    rows = _loop(run_of(run_id)).guidance.select_related("given_in")
    page, cursor = showing.page(rows.defer("given_in__facts", "given_in__answer"), wanted)
    return schemas.Guidances(items=[schemas.guidance(one) for one in page], next=cursor)


@router.post(
    "/{int:run_id}/guidance",
    response=replies.given(schemas.Guidance, 201),
    summary="Tell a loop something",
)
def guidance_send(request: HttpRequest, run_id: RunId, given: schemas.TextGiven) -> Any:
    """The next prompt has it, and each one until an agent acknowledges it. 409: it has ended."""
    made = acts.guide(lab(), run_of(run_id), given.text, by=username(request))
    return Status(201, schemas.guidance(made))


@router.post(
    "/{int:run_id}/loop/stop",
    response=replies.act(schemas.RunLoop),
    summary="Stop a loop after its turn",
)
def loop_stop(request: HttpRequest, run_id: RunId) -> schemas.RunLoop:
    """It ends when its turn is over. 409: it has ended, or somebody has asked for it (`already`)."""
    run = run_of(run_id)
    acts.ask_stop(lab(), run, by=username(request))
    return _shown(run)


@router.post(
    "/{int:run_id}/loop/restart",
    response=replies.act(schemas.RunLoop),
    summary="Restart a loop after its turn",
)
def loop_restart(request: HttpRequest, run_id: RunId) -> schemas.RunLoop:
    """It begins anew when its turn is over; memories and guidance stay. 409 as for a stop."""
    run = run_of(run_id)
    acts.ask_restart(lab(), run, by=username(request))
    return _shown(run)


@of_project.get(
    "/{int:project_id}/loops",
    response=replies.look(schemas.LoopSettings),
    summary="Show a project's loop settings",
)
def loop_settings_show(
    request: HttpRequest, response: HttpResponse, project_id: ProjectId
) -> schemas.LoopSettings:
    """Whether and how runs of the project are loops, and their roles. `ETag` is the mark of them all."""
    return etags.mark(response, _settings(project_of(project_id)))


@of_project.patch(
    "/{int:project_id}/loops",
    response=replies.edited(schemas.LoopSettings),
    summary="Change a project's loop settings",
)
def loop_settings_change(
    request: HttpRequest,
    response: HttpResponse,
    project_id: ProjectId,
    given: schemas.LoopSettingsGiven,
) -> schemas.LoopSettings:
    """Change terms and roles, all of it or nothing. Loops that run keep what they began with.

    With the `ETag` that was read as `If-Match` it is 412, and nothing is stored, once somebody else
    has changed them.
    """
    project = project_of(project_id)
    roles = [one.values() for one in given.roles] if "roles" in given.model_fields_set else None
    try:
        with transaction.atomic():
            Project.objects.hold(project.pk)
            etags.check(request, _settings(project))
            settings_acts.replace(lab(), project, given.values(), roles, by=username(request))
    except LoopSettingsRefused as refused:
        fields = {name.replace("profile_id", "agent"): why for name, why in refused.fields.items()}
        raise LoopSettingsRefused(refused.text, code=refused.code, fields=fields) from refused
    return etags.mark(response, _settings(project_of(project_id)))


@of_project.get(
    "/{int:project_id}/memories",
    response=replies.look(schemas.Memories),
    summary="List a project's memories",
)
def memory_list(
    request: HttpRequest, project_id: ProjectId, wanted: Query[Paging]
) -> schemas.Memories:
    """What agents and people keep for all later loops, newest first."""
    rows = LoopMemory.objects.filter(project=project_of(project_id))
    page, cursor = showing.page(rows, wanted)
    return schemas.Memories(items=[schemas.memory(one) for one in page], next=cursor)


@of_project.post(
    "/{int:project_id}/memories",
    response=replies.given(schemas.Memory, 201),
    summary="Add a memory",
)
def memory_add(request: HttpRequest, project_id: ProjectId, given: schemas.TextGiven) -> Any:
    """Keep a text for all later loops."""
    project, by = project_of(project_id), username(request)
    made = settings_acts.add_memory(lab(), project, given.text, by=by)
    return Status(201, schemas.memory(made))


@of_project.delete(
    "/{int:project_id}/memories/{int:memory_id}",
    response=replies.act(None, 204),
    summary="Remove a memory",
)
def memory_remove(request: HttpRequest, project_id: ProjectId, memory_id: RunId) -> Any:
    """Forget a text; it cannot be brought back."""
    project, by = project_of(project_id), username(request)
    if not settings_acts.remove_memory(lab(), project, memory_id, by=by):
        raise NotFound(f"Project {project_id} has no memory {memory_id}.")
    return Status(204, None)


def _shown(run: Run) -> schemas.RunLoop:
    found = _loop(run)
    return schemas.loop(found, lab().now())


def _loop(run: Run) -> Loop:
    found = Loop.objects.filter(run=run).first()
    if found is None:
        raise NotFound(f"Run {run.pk} is no loop.")
    found.run = run
    return found


def _settings(project: Project) -> schemas.LoopSettings:
    row = settings_acts.terms_row(project)
    return schemas.settings(row, list(LoopRole.objects.filter(project=project)))
