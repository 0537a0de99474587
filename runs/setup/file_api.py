"""The files that a project brings along, over the API: listed, stored, removed; never a content."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Status
from pydantic import BaseModel, Field

from runs.api import replies
from runs.api.asked import NO_NUL, Given, ProjectId, RunId
from runs.api.router import Router
from runs.models import ProjectFile
from runs.projects.api import project_of
from runs.setup import file_acts
from runs.setup.file_rules import MOST_CHARACTERS
from runs.web.access import username
from runs.wiring import lab
from trackers.base import NotFound

router = Router(tags=["Projects"])


class SetupFile(BaseModel):
    """A file that new worktrees get. `size` is in bytes; its content is never told."""

    id: int
    path: str
    size: int
    changed_at: datetime
    changed_by: str


class SetupFiles(BaseModel):
    items: list[SetupFile]


class SetupFileGiven(Given):
    """`path` is inside the repository, such as `.env`. `content` is text of at most 256 KB."""

    path: Annotated[str, Field(max_length=MOST_CHARACTERS, pattern=NO_NUL)]
    content: Annotated[str, Field(pattern=NO_NUL)]


@router.get(
    "/{int:project_id}/files", response=replies.look(SetupFiles), summary="List a project's files"
)
def setup_file_list(request: HttpRequest, project_id: ProjectId) -> SetupFiles:
    """The files that labsite brings along into each new worktree, by path."""
    return SetupFiles(items=[_shown(row) for row in file_acts.list_files(project_of(project_id))])


@router.put(
    "/{int:project_id}/files",
    response=replies.given(SetupFile),
    summary="Store a file of a project",
)
def setup_file_store(
    request: HttpRequest, project_id: ProjectId, given: SetupFileGiven
) -> SetupFile:
    """Add a file, or replace the one of the same path. Worktrees that exist keep what they have."""
    project, by = project_of(project_id), username(request)
    return _shown(file_acts.store(lab(), project, given.path, given.content, by=by))


@router.delete(
    "/{int:project_id}/files/{int:file_id}",
    response=replies.act(None, 204),
    summary="Remove a file of a project",
)
def setup_file_remove(request: HttpRequest, project_id: ProjectId, file_id: RunId) -> Any:
    """Bring a file along no more. Worktrees that exist keep it."""
    project, by = project_of(project_id), username(request)
    if not file_acts.remove(lab(), project, file_id, by=by):
        raise NotFound(f"Project {project_id} has no file {file_id}.")
    return Status(204, None)


def _shown(row: ProjectFile) -> SetupFile:
    return SetupFile(
        id=row.pk,
        path=row.path,
        size=row.size,
        changed_at=row.changed_at,
        changed_by=row.changed_by,
    )
