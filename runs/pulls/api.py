"""Pull requests of the built-in tracker over the API."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Query, Status

from runs.api import asked, replies, showing
from runs.api.asked import Number, ProjectId
from runs.api.router import Router
from runs.issues.acts import root_of
from runs.projects.api import project_of
from runs.pulls import acts, comments, mergeable, merging, proofs, schemas
from runs.web.access import username
from runs.web.refusals import Denied
from runs.wiring import lab
from trackers.builtin import queries

router = Router(tags=["Pull requests"])

LIST = "/{int:project_id}/pulls"
ONE = "/{int:project_id}/pulls/{int:number}"


@router.get(LIST, response=replies.look(schemas.Pulls), summary="List pull requests")
def pull_list(
    request: HttpRequest, project_id: ProjectId, wanted: Query[asked.PullFilter]
) -> schemas.Pulls:
    """Pull requests, newest first; *ended* ones are merged or closed."""
    rows = queries.pulls_below(
        root_of(project_of(project_id)),
        is_open={"open": True, "ended": False}.get(wanted.state),
        below=wanted.cursor,
        limit=wanted.limit + 1,
    )
    page, last = showing.cut(rows, wanted.limit)
    return schemas.Pulls(
        items=[showing.pull_row(row) for row in page], next=last.number if last else None
    )


@router.get(ONE, response=replies.look(schemas.Pull), summary="Show a pull request")
def pull_show(request: HttpRequest, project_id: ProjectId, number: Number) -> schemas.Pull:
    return showing.pull(queries.pull(root_of(project_of(project_id)), number))


@router.post(f"{ONE}/close", response=replies.act(schemas.Pull), summary="Close without merging")
def pull_close(request: HttpRequest, project_id: ProjectId, number: Number) -> schemas.Pull:
    """Close a pull request unmerged. Its branch stays."""
    project = project_of(project_id)
    if not acts.close(lab(), project, number, by=username(request)):
        text = f"Pull request {number} was not open any more. Nothing was changed."
        raise Denied(409, "not_open", text)
    return showing.pull(queries.pull(project.tracker_root, number))


@router.get(
    f"{ONE}/merge",
    response=replies.look(schemas.Mergeable),
    summary="Ask whether it can be merged",
)
def pull_mergeable(
    request: HttpRequest, project_id: ProjectId, number: Number
) -> schemas.Mergeable:
    """What the merge button would say, by origin as it was last fetched."""
    project = project_of(project_id)
    pull = queries.pull(root_of(project), number)
    facts = mergeable.facts_of(lab(), project, pull)
    return showing.mergeable(facts, proofs.load_proof(project, pull.head, facts.head_tip))


@router.post(
    f"{ONE}/merge", response=replies.given(schemas.MergeDone), summary="Merge a pull request"
)
def pull_merge(
    request: HttpRequest, project_id: ProjectId, number: Number, given: asked.MergeGiven
) -> schemas.MergeDone:
    """Move the base forward, or give it a merge commit; close the issues that are named.

    409 says why not (`conflict`, `head_gone`, `head_moved`, `protected`, `busy`, `merged`, …), and
    then nothing was changed. `checks_failed`, `checks_missing`, `checks_running`: send that state as
    `checks` to merge all the same, where the project allows it. 502: origin did not answer; ask again.
    """
    project = project_of(project_id)
    by = username(request)
    seen = merging.Seen(given.head, given.into, given.checks)
    done = merging.merge(lab(), project, number, by=by, seen=seen)
    pull = showing.pull(queries.pull(project.tracker_root, number))
    return schemas.MergeDone(pull=pull, closed_issues=list(done.closed))


@router.get(
    f"{ONE}/comments",
    response=replies.look(schemas.PullComments),
    summary="List comments on a pull request",
)
def pull_comment_list(
    request: HttpRequest, project_id: ProjectId, number: Number, wanted: Query[asked.Paging]
) -> schemas.PullComments:
    """Comments on the whole and on lines, oldest first."""
    pull = queries.pull(root_of(project_of(project_id)), number)
    rows = queries.pull_comments(pull, after=wanted.cursor or 0, limit=wanted.limit + 1)
    page, last = showing.cut(rows, wanted.limit)
    return schemas.PullComments(
        items=[showing.pull_comment(row) for row in page], next=last.pk if last else None
    )


@router.post(
    f"{ONE}/comments",
    response=replies.given(schemas.PullComment, 201),
    summary="Comment on a pull request",
)
def pull_comment_new(
    request: HttpRequest, project_id: ProjectId, number: Number, given: asked.NewPullComment
) -> Status[Any]:
    """Comment on the whole, or on a line that the diff shows. Sent twice in a row, it is kept once."""
    project = project_of(project_id)
    try:
        key = comments.comment(lab(), project, number, **given.model_dump(), by=username(request))
    except comments.PullRefused as refused:
        field = "body" if refused.field == "comment" else refused.field
        raise comments.PullRefused(refused.text, field=field) from refused
    found = queries.pull_comments(
        queries.pull(project.tracker_root, number), after=key - 1, limit=1
    )
    return Status(201, showing.pull_comment(found[0]))
