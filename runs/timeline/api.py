"""The timeline over the API, in pieces. As a stream it is served by `stream`."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Query

from runs.api import asked, replies, showing
from runs.api import schemas as api_schemas
from runs.api.router import Router
from runs.projects.api import project_of
from runs.timeline import queries
from runs.web.refusals import Denied

router = Router(tags=["Timeline"])

STREAM = {
    "responses": {
        200: {
            "description": "Server-sent events: `event: entry` with an `Entry` as data and its id.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    },
    "parameters": [
        {
            "in": "header",
            "name": "Last-Event-ID",
            "required": False,
            "schema": {"type": "integer", "minimum": 0, "maximum": asked.BIGGEST_ID},
            "description": "The last entry that was seen; it counts before `after`.",
        }
    ],
}


@router.get("", response=replies.look(api_schemas.Timeline), summary="Read the timeline")
def timeline_list(request: HttpRequest, wanted: Query[asked.Following]) -> api_schemas.Timeline:
    """Entries after an id, oldest first. With `after=cursor` of the last answer none is missed."""
    project = project_of(wanted.project) if wanted.project is not None else None
    found = queries.after(wanted.after, wanted.limit, project)
    return api_schemas.Timeline(
        items=[showing.entry(row) for row in found],
        cursor=found[-1].pk if found else wanted.after,
        is_all=len(found) < wanted.limit,
    )


@router.get(
    "/stream",
    response={replies.ALWAYS | {429}: api_schemas.Problem},
    openapi_extra=STREAM,
    summary="Follow the timeline",
)
def timeline_stream(request: HttpRequest, wanted: Query[asked.From]) -> None:
    """Entries as they happen, each with its id; a comment line every ten seconds means "still here".

    Begins after the id that is given, else with what comes next. Ends when the token does, and
    after 5,000 entries: go on with Last-Event-ID.
    """
    text = "This web process serves no streams. Read GET /timeline with a cursor."
    raise Denied(503, "no_streams", text)
