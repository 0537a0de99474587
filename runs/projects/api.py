"""Projects and agents over the API."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.http import HttpRequest
from ninja import Query, Status

from runs.accounts import holds
from runs.agents import trial
from runs.api import asked, replies, showing
from runs.api import schemas as api_schemas
from runs.api.asked import AgentId, ProjectId
from runs.api.router import Router
from runs.core.ports import SeamError
from runs.dispatch import explain
from runs.kept import removal
from runs.models import AgentProfile, Forge, Project, Settings
from runs.projects import acts
from runs.watch import switch as dispatch_acts
from runs.web.access import username
from runs.web.refusals import Denied
from runs.wiring import lab
from trackers.base import NotFound

router = Router(tags=["Projects"])
agents = Router(tags=["Agents"])


def project_of(project_id: int) -> Project:
    """The project. Raises NotFound."""
    found = Project.objects.filter(pk=project_id).defer("token", "hook_secret").first()
    if found is None:
        raise NotFound(f"There is no project {project_id}.")
    return found


@router.get("", response=replies.look(api_schemas.Projects), summary="List projects")
def project_list(request: HttpRequest, wanted: Query[asked.Paging]) -> api_schemas.Projects:
    """Projects in the order in which they were added."""
    rows = Project.objects.defer("token", "hook_secret")
    page, cursor = showing.page(rows, wanted, "pk")
    return api_schemas.Projects(items=[showing.project(row) for row in page], next=cursor)


@router.post("", response=replies.given(api_schemas.Project, 201), summary="Add a project")
def project_new(request: HttpRequest, given: asked.NewProject) -> Status[Any]:
    """Add a project by a path or a clone URL; its clone goes on in the worker.

    With `forge`, an account, its issues are where its repository is.
    """
    told = given.model_dump()
    pk = told.pop("forge")
    forge = Forge.objects.filter(pk=pk).first() if pk is not None else None
    if pk is not None and forge is None:
        raise acts.ProjectRefused(f"There is no account {pk}.", field="forge")
    added = acts.add(lab(), **told, forge=forge, by=username(request))
    return Status(201, showing.project(added))


@router.get(
    "/{int:project_id}", response=replies.look(api_schemas.Project), summary="Show a project"
)
def project_show(request: HttpRequest, project_id: ProjectId) -> api_schemas.Project:
    return showing.project(project_of(project_id))


@router.get(
    "/{int:project_id}/removal",
    response=replies.look(api_schemas.Removal),
    summary="What removing a project means",
)
def project_removal(request: HttpRequest, project_id: ProjectId) -> api_schemas.Removal:
    """What a project holds, and what to stop before it can be removed. Git and tmux are asked now."""
    found = project_of(project_id)
    try:
        to_stop = removal.to_stop(lab(), found)
    except SeamError:
        to_stop = None
    return api_schemas.Removal(to_stop=to_stop, **asdict(removal.holdings(lab(), found)))


@router.delete(
    "/{int:project_id}", response=replies.act(api_schemas.Project, 202), summary="Remove a project"
)
def project_remove(request: HttpRequest, project_id: ProjectId) -> Status[Any]:
    """Remove a project from labsite; its repository elsewhere is not touched.

    The worker carries it out; the project is gone when it is no longer listed. What origin does not
    have is kept on disk, and the timeline says where. Refused while something is active.
    """
    found = project_of(project_id)
    removal.remove(lab(), found, username(request))
    return Status(202, showing.project(project_of(project_id)))


@router.post(
    "/{int:project_id}/retry", response=replies.act(api_schemas.Project, 202), summary="Clone again"
)
def project_retry(request: HttpRequest, project_id: ProjectId) -> Status[Any]:
    """Clone a project again whose clone failed."""
    if not acts.retry(lab(), project_of(project_id), username(request)):
        text = "Only a project whose clone failed can be cloned again. Nothing was changed."
        raise Denied(409, "not_failed", text)
    return Status(202, showing.project(project_of(project_id)))


@router.get(
    "/{int:project_id}/waiting",
    response=replies.look(api_schemas.WaitingIssues),
    summary="Why is this not running?",
)
def project_waiting(request: HttpRequest, project_id: ProjectId) -> api_schemas.WaitingIssues:
    """Each ready issue that nobody works on, and what it fails; by the rule that starts work.

    Tracker, git, tmux and the agent are asked now.
    """
    return showing.waiting(*explain.explain(lab(), project_of(project_id)))


@router.put(
    "/{int:project_id}/auto",
    response=replies.given(api_schemas.Project),
    summary="Work by itself or not",
)
def project_auto(
    request: HttpRequest, project_id: ProjectId, given: asked.AutoGiven
) -> api_schemas.Project:
    """Turn automatic work on or off. The failure streak stays as it is."""
    dispatch_acts.switch(lab(), project_of(project_id), is_on=given.is_auto, by=username(request))
    return showing.project(project_of(project_id))


@router.post(
    "/{int:project_id}/reset", response=replies.act(api_schemas.Project), summary="Reset the streak"
)
def project_reset(request: HttpRequest, project_id: ProjectId) -> api_schemas.Project:
    """Set the failure streak to zero; the switch stays as it is. Safe to repeat."""
    dispatch_acts.reset(lab(), project_of(project_id), by=username(request))
    return showing.project(project_of(project_id))


@agents.get("", response=replies.look(api_schemas.Agents), summary="List agents")
def agent_list(request: HttpRequest) -> api_schemas.Agents:
    """The coding programs that may be chosen, with their models and efforts."""
    settings = Settings.current()
    rows, tried = AgentProfile.objects.defer("env", "login_command"), trial.versions()
    return api_schemas.Agents(
        items=[showing.agent(row, settings, lab().now(), tried.get(row.pk, ())) for row in rows]
    )


@agents.post(
    "/{int:agent_id}/try-again",
    response=replies.act(api_schemas.Agent),
    summary="Try an agent again",
)
def agent_try_again(request: HttpRequest, agent_id: AgentId) -> api_schemas.Agent:
    """Release an agent that is held now; runs that wait for it go on. Safe to repeat."""
    row = AgentProfile.objects.filter(pk=agent_id).first()
    if row is None:
        raise NotFound(f"There is no agent {agent_id}.")
    holds.try_again(lab(), row, by=username(request))
    tried = trial.versions().get(row.pk, ())
    return showing.agent(row, Settings.current(), lab().now(), tried)
