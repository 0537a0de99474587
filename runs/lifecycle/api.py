"""Runs over the API: read, start, stop. Starting asks the same launch pass as the button."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Query, Status

from runs.accounts import held
from runs.api import asked, replies, showing
from runs.api import schemas as api_schemas
from runs.api.asked import ProjectId, RunId
from runs.api.router import Router
from runs.core.states import AnswerCode, RunState
from runs.dispatch import start_answers, start_requests
from runs.lifecycle import stop
from runs.models import Run, Settings, StartRequest
from runs.overview import queries
from runs.projects.api import project_of
from runs.pulls import checks
from runs.pulls import schemas as pull_schemas
from runs.waits import acts as wait_acts
from runs.web.access import username
from runs.web.refusals import Denied
from runs.wiring import lab
from trackers.base import NotFound

router = Router(tags=["Runs"])
of_project = Router(tags=["Runs"])

ENDED = "This run had ended already, so nothing was stopped."


@router.get("", response=replies.look(api_schemas.Runs), summary="List runs")
def run_list(request: HttpRequest, wanted: Query[asked.RunFilter]) -> api_schemas.Runs:
    """Runs, newest first; `outcome=active` shows those that have not ended."""
    outcome = wanted.outcome or ""
    rows = queries.narrowed_runs(outcome, wanted.project, wanted.cursor, wanted.issue)
    rows = held.with_profile(rows.select_related("project"))
    found = rows.defer("project__token")
    page, last = showing.cut(list(found[: wanted.limit + 1]), wanted.limit)
    settings, now = Settings.current(), lab().now()
    return api_schemas.Runs(
        items=[showing.run_row(row, now, settings) for row in page],
        next=last.pk if last else None,
    )


@router.get("/{int:run_id}", response=replies.look(api_schemas.Run), summary="Show a run")
def run_show(request: HttpRequest, run_id: RunId) -> api_schemas.Run:
    """One run with its task and the end of its screen."""
    return shown(run_id)


@router.get(
    "/{int:run_id}/pull", response=replies.look(pull_schemas.RunPull), summary="Show a run's pull"
)
def run_pull(request: HttpRequest, run_id: RunId) -> pull_schemas.RunPull:
    """The run's pull request as its tracker tells of it now, and what was checked on its head.

    `checks` is null where they could not be read, and `trouble` says why.
    """
    looked = checks.look(lab(), run_of(run_id))
    return pull_schemas.run_pull(looked.pull, looked.checks, looked.trouble)


@router.post("/{int:run_id}/stop", response=replies.act(api_schemas.Run), summary="Stop a run")
def run_stop(request: HttpRequest, run_id: RunId) -> api_schemas.Run:
    """End a run now. Worktree and branch are kept; it is neither success nor failure."""
    if not stop.stop(lab(), run_of(run_id), username(request)):
        raise Denied(409, "already_ended", ENDED)
    return shown(run_id)


@of_project.post(
    "/{int:project_id}/runs",
    response=replies.given(api_schemas.Started, 201, 202),
    summary="Start a run",
)
def run_start(request: HttpRequest, project_id: ProjectId, given: asked.StartGiven) -> Status[Any]:
    """Start a run of the lowest ready issue, or of the one named, as the button does.

    Waits up to 5 s. 201: an agent works. 202: not yet; with a run in the answer its worktree is
    being made, without one the worker has not answered, and the start is written down. The timeline
    tells how it went.
    """
    outside, project = lab(), project_of(project_id)
    return started(start_requests.request(outside, project, username(request), given.issue or ""))


def started(request: StartRequest) -> Status[Any]:
    """The answer to whoever asked for a run, after a wait of 5 s at most. Raises Denied."""
    outside = lab()
    row = start_requests.wait(outside, request)
    code, text = AnswerCode(row.answer), start_answers.text(row)
    if code not in (AnswerCode.PENDING, AnswerCode.STARTED):
        raise Denied(start_answers.STATUS[code], code.value, text)
    shown = None
    if row.run is not None:
        shown = showing.run_row(row.run, outside.now(), Settings.current())
    if code is AnswerCode.PENDING:
        return Status(202, api_schemas.Started(code="", text=text, request=row.pk, run=shown))
    status = 202 if row.run is not None and row.run.state == RunState.STARTING else 201
    return Status(status, api_schemas.Started(code="started", text=text, request=row.pk, run=shown))


@of_project.post(
    "/{int:project_id}/stop-all", response=replies.act(api_schemas.Stopped), summary="Stop all runs"
)
def stop_all(request: HttpRequest, project_id: ProjectId) -> api_schemas.Stopped:
    """End every run of one project, each by the same neutral Stop."""
    return api_schemas.Stopped(
        stopped=stop.stop_all(lab(), project_of(project_id), username(request))
    )


def run_of(run_id: int) -> Run:
    """A run with its project and its agent's account. Raises NotFound."""
    found = held.with_profile(Run.objects.select_related("project").filter(pk=run_id)).first()
    if found is None:
        raise NotFound(f"There is no run {run_id}.")
    return found


def shown(run_id: int) -> api_schemas.Run:
    """One run as it is now, with how it may be answered."""
    found, outside = run_of(run_id), lab()
    form = wait_acts.form(outside, found)
    return showing.run(found, outside.now(), Settings.current(), form)
