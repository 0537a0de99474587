"""A project's badge over the API."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Schema
from pydantic import BaseModel, ConfigDict

from runs.api import replies
from runs.api.asked import ProjectId
from runs.api.router import Router
from runs.history import badge
from runs.projects.api import project_of
from runs.web.access import username
from runs.wiring import lab

router = Router(tags=["Projects"])


class BadgeGiven(BaseModel):
    """Whether everybody who has its address sees the badge."""

    model_config = ConfigDict(extra="forbid", strict=True)

    is_public: bool


class BadgeShown(Schema):
    """The badge of a project: what it says, and whether everybody sees it."""

    is_public: bool
    label: str
    value: str


@router.get("/{int:project_id}/badge", response=replies.look(BadgeShown), summary="Show a badge")
def badge_show(request: HttpRequest, project_id: ProjectId) -> BadgeShown:
    """The last outcome of a project, as its badge says it."""
    project = project_of(project_id)
    shown = badge.of(project, "", lab().now())
    return BadgeShown(is_public=project.is_badge_public, label=shown.label, value=shown.value)


@router.put(
    "/{int:project_id}/badge", response=replies.given(BadgeShown), summary="Publish a badge"
)
def badge_publish(request: HttpRequest, project_id: ProjectId, given: BadgeGiven) -> BadgeShown:
    """Show a project's badge to everybody who has its address, or only to those who log in."""
    project = project_of(project_id)
    badge.publish(lab(), project, is_public=given.is_public, by=username(request))
    return badge_show(request, project_id)
