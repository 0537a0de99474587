"""Issues of the built-in tracker over the API."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Status

from runs.api import asked, etags, replies, showing
from runs.api import schemas as api_schemas
from runs.api.asked import Number, ProjectId
from runs.api.router import Router
from runs.issues import acts
from runs.issues.acts import IssueRefused, root_of
from runs.projects.api import project_of
from runs.settings import edits
from runs.web.access import username
from runs.wiring import lab
from trackers.builtin import queries

router = Router(tags=["Issues"])

SHOWN_COMMENTS = 50
LIST = "/{int:project_id}/issues"
ONE = "/{int:project_id}/issues/{int:number}"


@router.get(LIST, response=replies.look(api_schemas.Issues), summary="List issues")
def issue_list(
    request: HttpRequest, project_id: ProjectId, wanted: Query[asked.IssueFilter]
) -> api_schemas.Issues:
    """Issues, newest first; `text` is looked for in number, title and body."""
    rows = queries.issues_below(
        root_of(project_of(project_id)),
        is_open={"open": True, "closed": False}.get(wanted.state),
        label=wanted.label,
        text=wanted.text.strip(),
        below=wanted.cursor,
        limit=wanted.limit + 1,
    )
    page, last = showing.cut(rows, wanted.limit)
    return api_schemas.Issues(
        items=[showing.issue_row(row) for row in page], next=last.number if last else None
    )


@router.post(LIST, response=replies.given(api_schemas.Issue, 201), summary="Write an issue")
def issue_new(request: HttpRequest, project_id: ProjectId, given: asked.NewIssue) -> Status[Any]:
    """Write an open issue. Labels have to be among the project's labels."""
    number = acts.create(lab(), project_of(project_id), **given.model_dump(), by=username(request))
    return Status(201, _shown(project_id, number))


@router.get(
    "/{int:project_id}/labels", response=replies.look(api_schemas.LabelNames), summary="List labels"
)
def label_list(request: HttpRequest, project_id: ProjectId) -> api_schemas.LabelNames:
    """Every label that an issue of the project may carry."""
    return api_schemas.LabelNames(items=list(queries.labels(root_of(project_of(project_id)))))


@router.get(ONE, response=replies.look(api_schemas.Issue), summary="Show an issue")
def issue_show(
    request: HttpRequest, response: HttpResponse, project_id: ProjectId, number: Number
) -> api_schemas.Issue:
    """One issue with its text and its first comments. `ETag` is the mark of its title and body."""
    return _marked(response, project_id, number)


@router.patch(
    ONE,
    response=replies.edited(api_schemas.Issue),
    summary="Edit an issue",
)
def issue_edit(
    request: HttpRequest,
    response: HttpResponse,
    project_id: ProjectId,
    number: Number,
    given: asked.IssueEdit,
) -> api_schemas.Issue:
    """Replace the title, the body or both.

    With the `ETag` that was read as `If-Match` it is 412, and nothing is stored, once somebody else
    has changed them.
    """
    project, told = project_of(project_id), given.model_dump()
    seen = etags.given(request)
    try:
        acts.edit(lab(), project, number, **told, by=username(request), seen=seen)
    except edits.ChangedMeanwhile as meanwhile:
        raise etags.refused(meanwhile) from meanwhile
    return _marked(response, project_id, number)


@router.get(f"{ONE}/comments", response=replies.look(api_schemas.Comments), summary="List comments")
def comment_list(
    request: HttpRequest, project_id: ProjectId, number: Number, wanted: Query[asked.Paging]
) -> api_schemas.Comments:
    """Comments on an issue, oldest first."""
    root = root_of(project_of(project_id))
    rows = queries.comments(root, number, after=wanted.cursor or 0, limit=wanted.limit + 1)
    return showing.comments(rows, wanted.limit)


@router.post(f"{ONE}/comments", response=replies.given(api_schemas.Issue, 201), summary="Comment")
def comment_new(
    request: HttpRequest, project_id: ProjectId, number: Number, given: asked.NewComment
) -> Status[Any]:
    """Comment on an issue. The very same words sent twice in a row are kept once."""
    project = project_of(project_id)
    root_of(project)
    try:
        acts.comment(lab(), project, str(number), body=given.body, by=username(request))
    except IssueRefused as refused:
        raise IssueRefused(refused.text, field="body") from refused
    return Status(201, _shown(project_id, number))


@router.put(f"{ONE}/labels", response=replies.given(api_schemas.Issue), summary="Set the labels")
def issue_labels(
    request: HttpRequest, project_id: ProjectId, number: Number, given: asked.LabelsGiven
) -> api_schemas.Issue:
    """Make these the labels of an issue."""
    project = project_of(project_id)
    acts.set_labels(lab(), project, number, labels=given.labels, by=username(request))
    return _shown(project_id, number)


@router.put(f"{ONE}/state", response=replies.given(api_schemas.Issue), summary="Close or reopen")
def issue_state(
    request: HttpRequest, project_id: ProjectId, number: Number, given: asked.StateGiven
) -> api_schemas.Issue:
    """Close an issue, or open it again; what is so already stays so."""
    is_open = given.state == "open"
    acts.set_open(lab(), project_of(project_id), number, is_open=is_open, by=username(request))
    return _shown(project_id, number)


def _marked(response: HttpResponse, project_id: int, number: int) -> api_schemas.Issue:
    shown = _shown(project_id, number)
    return etags.mark(response, shown, {"title": shown.title, "body": shown.body})


def _shown(project_id: int, number: int) -> api_schemas.Issue:
    root = root_of(project_of(project_id))
    found = queries.issue_counted(root, number)
    comments = queries.comments(root, number, after=0, limit=SHOWN_COMMENTS + 1)
    return showing.issue(found, showing.comments(comments, SHOWN_COMMENTS))
