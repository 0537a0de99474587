"""Trackers and accounts on forges over the API: the same verbs as the pages."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Path, Query, Status

from runs.api import asked, etags, replies, showing
from runs.api.asked import ProjectId
from runs.api.gate import check_administering, token_of
from runs.api.router import Router
from runs.forges import acts, hooks, pages, schemas, switching, tracker_card
from runs.forges.switching import Wanted
from runs.models import Forge, HookDelivery, Project, Settings
from runs.projects.api import project_of
from runs.settings.edits import ChangedMeanwhile
from runs.web.access import username
from runs.wiring import lab
from trackers.base import NotFound

router = Router(tags=["Trackers"])
accounts = Router(tags=["Trackers"])

ForgeId = Annotated[int, Path(ge=1, le=asked.BIGGEST_ID)]


def forge_of(forge_id: int) -> Forge:
    """The account. Raises NotFound."""
    found = Forge.objects.filter(pk=forge_id).first()
    if found is None:
        raise NotFound(f"There is no account {forge_id}.")
    return found


@accounts.get("", response=replies.look(schemas.Forges), summary="List accounts on forges")
def forge_list(request: HttpRequest) -> schemas.Forges:
    """Every account with its quota and what was asked within 24 hours; no credential."""
    lines = [line for line in pages.lines(lab().now()) if line.forge is not None]
    return schemas.Forges(
        items=[schemas.forge(line) for line in lines],
        people_percent=Settings.current().people_percent,
    )


@accounts.post("", response=replies.given(schemas.Forge, 201), summary="Add an account")
def forge_new(request: HttpRequest, given: schemas.NewForge) -> Status[Any]:
    """Keep an account on a forge. For admins only."""
    check_administering(token_of(request))
    made = acts.add(
        lab(),
        name=given.name,
        kind=given.kind,
        web=given.web,
        api=given.api,
        credential=given.credential,
        by=username(request),
    )
    return Status(201, _shown(made.pk))


@accounts.put("/{int:forge_id}", response=replies.given(schemas.Forge), summary="Change an account")
def forge_edit(request: HttpRequest, forge_id: ForgeId, given: schemas.ForgeGiven) -> schemas.Forge:
    """Change an account; without a credential it keeps its own. For admins only."""
    check_administering(token_of(request))
    acts.edit(
        lab(),
        forge_of(forge_id),
        name=given.name,
        web=given.web,
        api=given.api,
        credential=given.credential,
        by=username(request),
    )
    return _shown(forge_id)


@accounts.delete("/{int:forge_id}", response=replies.act(None, 204), summary="Remove an account")
def forge_remove(request: HttpRequest, forge_id: ForgeId) -> Status[Any]:
    """Forget an account that no project uses, and its credential. For admins only."""
    check_administering(token_of(request))
    acts.remove(lab(), forge_of(forge_id), by=username(request))
    return Status(204, None)


@router.get(
    "/{int:project_id}/tracker",
    response=replies.look(schemas.Tracker),
    summary="Show where the issues are",
)
def tracker_show(
    request: HttpRequest, response: HttpResponse, project_id: ProjectId
) -> schemas.Tracker:
    """A project's tracker, what it can do, and what was heard of it last. Nobody is asked.

    `ETag` is the mark of what can be chosen.
    """
    return _marked(response, project_of(project_id))


@router.put(
    "/{int:project_id}/tracker",
    response=replies.edited(schemas.Tracker),
    summary="Change the tracker",
)
def tracker_choose(
    request: HttpRequest,
    response: HttpResponse,
    project_id: ProjectId,
    given: schemas.TrackerGiven,
) -> schemas.Tracker:
    """Have a project's issues elsewhere, or name its labels anew. Refused while runs are active.

    Issues that labsite keeps itself stay, hidden, until the project comes back to them. With the
    `ETag` that was read as `If-Match` it is 412 once somebody else has changed them.
    """
    told = given.model_dump()
    pk = told.pop("forge")
    wanted = Wanted(forge=forge_of(pk) if pk is not None else None, **told)
    project, who, seen = project_of(project_id), username(request), etags.given(request)
    try:
        switching.choose(lab(), project, wanted, by=who, seen=seen)
    except ChangedMeanwhile as meanwhile:
        raise etags.refused(meanwhile) from meanwhile
    return _marked(response, project_of(project_id))


def _marked(response: HttpResponse, project: Project) -> schemas.Tracker:
    return etags.mark(response, _tracker(project), switching.stored(project))


@router.post(
    "/{int:project_id}/tracker/examine",
    response=replies.act(schemas.Findings),
    summary="Test the connection",
)
def tracker_examine(request: HttpRequest, project_id: ProjectId) -> schemas.Findings:
    """Try what labsite needs of the tracker, in words. Nothing is changed there."""
    return schemas.findings(acts.examine(lab(), project_of(project_id)))


@router.post(
    "/{int:project_id}/tracker/label",
    response=replies.act(schemas.Tracker),
    summary="Make the ready label",
)
def tracker_label(request: HttpRequest, project_id: ProjectId) -> schemas.Tracker:
    """Make the label that marks ready issues. Safe to repeat."""
    acts.create_ready_label(lab(), project_of(project_id), by=username(request))
    return _tracker(project_of(project_id))


@router.get(
    "/{int:project_id}/hooks",
    response=replies.look(schemas.Deliveries),
    summary="List deliveries of the webhook",
)
def hook_list(
    request: HttpRequest, project_id: ProjectId, wanted: Query[asked.Paging]
) -> schemas.Deliveries:
    """Signed deliveries of the last thirty days, newest first, with what each did."""
    rows = HookDelivery.objects.filter(project=project_of(project_id))
    page, cursor = showing.page(rows, wanted)
    return schemas.Deliveries(items=[schemas.delivery(row) for row in page], next=cursor)


@router.post(
    "/{int:project_id}/hooks/secret",
    response=replies.act(schemas.HookSecret, 201),
    summary="Make a secret for the webhook",
)
def hook_secret(request: HttpRequest, project_id: ProjectId) -> Status[Any]:
    """A new secret, shown only now; the old one ends at once. For admins only."""
    check_administering(token_of(request))
    project = project_of(project_id)
    secret = hooks.make_secret(lab(), project, by=username(request))
    made = schemas.HookSecret(secret=secret, hook_path=tracker_card.hook_path(project))
    return Status(201, made)


def _tracker(project: Project) -> schemas.Tracker:
    return schemas.tracker(tracker_card.of(lab(), project, Settings.current()))


def _shown(forge_id: int) -> schemas.Forge:
    lines = pages.lines(lab().now())
    return next(schemas.forge(one) for one in lines if one.forge and one.forge.pk == forge_id)
