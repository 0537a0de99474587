"""Going on with ended runs over the API: as the buttons, by the same launch pass."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Status

from runs.api import asked, replies
from runs.api import schemas as api_schemas
from runs.api.asked import RunId
from runs.api.router import Router
from runs.core.states import AnswerCode
from runs.dispatch import start_answers, start_requests
from runs.followups import acts, views
from runs.lifecycle.api import started
from runs.models import StartRequest
from runs.web.access import username
from runs.web.refusals import Denied
from runs.wiring import lab

router = Router(tags=["Runs"])


@router.post(
    "/{int:run_id}/resume",
    response=replies.given(api_schemas.Started, 201, 202),
    summary="Resume a run",
)
def run_resume(request: HttpRequest, run_id: RunId, given: asked.FollowUp) -> Status[Any]:
    """Go on with a run that ended without a delivery, in a new run, as the button does.

    Same branch, same worktree, and the agent's own session where it can go on in one; otherwise it
    gets its task again together with the text, or is taken up as a loop of fresh turns (`as_loop`).
    Waits and answers as starting a run does.
    """
    found = views.run_of(run_id)
    asked_for = acts.resume(lab(), found, given.text, by=username(request), as_loop=given.as_loop)
    return started(asked_for)


@router.post(
    "/{int:run_id}/changes",
    response=replies.given(api_schemas.Started, 201, 202),
    summary="Request changes of a run",
)
def run_changes(request: HttpRequest, run_id: RunId, given: asked.Changes) -> Status[Any]:
    """Have the open pull request of a run changed: a new run goes on, on the same branch.

    Its agent is told the text and what was commented on the pull request. The run succeeds when its
    agent says that it is done and origin has new commits.
    """
    found = views.run_of(run_id)
    return started(acts.request_changes(lab(), found, given.text, by=username(request)))


@router.post(
    "/{int:run_id}/retry", response=replies.act(api_schemas.Retried, 202), summary="Retry a run"
)
def run_retry(request: HttpRequest, run_id: RunId) -> Status[Any]:
    """Discard what an ended run left, rescued first, then start its issue from scratch.

    Refused before anything is removed where no run could start. `request` is null while the work is
    being discarded; the run starts by itself then. The timeline tells how it went.
    """
    run = views.run_of(run_id)
    found = acts.retried(lab(), run, acts.retry(lab(), run, by=username(request)))
    if not isinstance(found, StartRequest):
        if found.error:
            raise Denied(502, "no_answer", f"Its work was not discarded: {found.error}")
        return Status(202, api_schemas.Retried(text=views.DISCARDING, request=None, run=None))
    asked_for = start_requests.wait(lab(), found)
    code = AnswerCode(asked_for.answer)
    text = start_answers.text(asked_for)
    if code not in (AnswerCode.PENDING, AnswerCode.STARTED):
        raise Denied(start_answers.STATUS[code], code.value, text)
    return Status(202, api_schemas.Retried(text=text, request=asked_for.pk, run=asked_for.run_id))
