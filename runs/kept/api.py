"""Kept work over the API: what is parked, discard, what was rescued, restore."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest
from ninja import Path, Query

from runs.api import asked, replies, showing
from runs.api.asked import ProjectId
from runs.api.router import Router
from runs.kept import discard, parked, restore, schemas
from runs.models import Rescue
from runs.projects.api import project_of
from runs.web.access import username
from runs.web.refusals import Denied
from runs.wiring import lab
from trackers.base import NotFound

router = Router(tags=["Kept work"])

RescueId = Annotated[int, Path(ge=1, le=asked.BIGGEST_ID)]


@router.get(
    "/{int:project_id}/parked",
    response=replies.act(schemas.ParkedPage),
    summary="List parked branches",
)
def parked_list(
    request: HttpRequest, project_id: ProjectId, wanted: Query[schemas.Page]
) -> schemas.ParkedPage:
    """Branches that no live session owns, asked of git now, newest first, 20 on a page."""
    found = parked.listing(lab(), project_of(project_id), wanted.page)
    if found.error:
        raise Denied(
            502,
            "no_answer",
            f"Parked work could not be listed ({found.error}). Nothing was changed.",
        )
    return schemas.ParkedPage(
        items=[schemas.parked(one) for one in found.entries],
        total=found.total,
        next=found.page + 1 if found.has_more else None,
        pulls_error=found.pulls_error,
    )


@router.post(
    "/{int:project_id}/parked/discard",
    response=replies.given(schemas.Rescue),
    summary="Discard a parked branch",
)
def parked_discard(
    request: HttpRequest, project_id: ProjectId, given: schemas.DiscardGiven
) -> schemas.Rescue:
    """Remove a parked branch and its worktree, whatever their state; the rescue that holds both.

    Its branch on origin goes too, rescued as well, and an open pull request of it is closed; what
    origin does not let go is told on the timeline. Work that the gates accepted and whose issue
    labsite has still to close is refused (`accepted`) unless `even_accepted` is given; that issue
    stays open then. Large files are rescued first, so the answer may
    take minutes.
    """
    by, patient = username(request), lambda _: None
    project = project_of(project_id)
    done = discard.discard(lab(), project, given.branch, by, patient, given.even_accepted)
    return schemas.rescue(done.rescue)


@router.get(
    "/{int:project_id}/rescues",
    response=replies.look(schemas.Rescues),
    summary="List rescues",
)
def rescue_list(
    request: HttpRequest, project_id: ProjectId, wanted: Query[asked.Paging]
) -> schemas.Rescues:
    """What was kept before it was removed, newest first."""
    rows = Rescue.objects.filter(project=project_of(project_id))
    page, cursor = showing.page(rows, wanted)
    return schemas.Rescues(items=[schemas.rescue(row) for row in page], next=cursor)


@router.post(
    "/{int:project_id}/rescues/{int:rescue_id}/restore",
    response=replies.act(schemas.Rescue),
    summary="Restore a rescue",
)
def rescue_restore(
    request: HttpRequest, project_id: ProjectId, rescue_id: RescueId
) -> schemas.Rescue:
    """Make a rescued branch again, and its worktree if it had one."""
    rows = Rescue.objects.select_related("project").filter(pk=rescue_id)
    found = rows.filter(project=project_of(project_id)).first()
    if found is None:
        raise NotFound(f"There is no rescue {rescue_id}.")
    restore.restore(lab(), found, username(request))
    found.refresh_from_db()
    return schemas.rescue(found)
