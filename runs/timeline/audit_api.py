"""Who did what, over the API: for keeping it elsewhere, or for asking one question of it."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Query

from runs.api import asked, replies, showing
from runs.api import schemas as api_schemas
from runs.api.gate import token_of
from runs.api.router import Router
from runs.timeline import audit
from runs.timeline.audit import Wanted
from runs.web import access
from runs.web.refusals import Denied

router = Router(tags=["Timeline"])


@router.get(
    "",
    response={**replies.look(api_schemas.Acts), 403: api_schemas.Problem},
    summary="Read who did what",
)
def audit_list(request: HttpRequest, wanted: Query[asked.AuditFilter]) -> api_schemas.Acts:
    """What people did, newest first, for those who may act. Days are whole ones, in UTC."""
    if not access.may_act(token_of(request).user):
        raise Denied(403, "not_allowed", access.ONLY_ACTORS)
    rows = audit.acts(
        Wanted(
            by=wanted.by,
            kind=wanted.kind or "",
            project=wanted.project,
            since=wanted.since,
            until=wanted.until,
            text=wanted.text,
            before=wanted.cursor,
        ),
        wanted.limit + 1,
    )
    page, last = showing.cut(rows, wanted.limit)
    return api_schemas.Acts(
        items=[showing.entry(row) for row in page], next=last.pk if last else None
    )
