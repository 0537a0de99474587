"""Runs over the API: read, start, stop. Starting asks the same launch pass as the button."""

from __future__ import annotations

from decimal import Decimal
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
from runs.history import filters, finding
from runs.history.filters import Place, Wanted
from runs.lifecycle import stop
from runs.models import Run, Settings, StartRequest
from runs.projects.api import project_of
from runs.pulls import checks
from runs.pulls import schemas as pull_schemas
from runs.stop_project import stop_project
from runs.waits import acts as wait_acts
from runs.web.access import username
from runs.web.refusals import INVALID, Denied
from runs.wiring import lab
from trackers.base import NotFound

router = Router(tags=["Runs"])
of_project = Router(tags=["Runs"])

LOST = "The run where this page began is gone. Ask for the first page again, without a cursor."
ENDED = "This run had ended already, so nothing was stopped."


@router.get("", response=replies.look(api_schemas.Runs), summary="List runs")
def run_list(request: HttpRequest, wanted: Query[asked.RunFilter]) -> api_schemas.Runs:
    """Runs, newest first unless `sort` says otherwise, by the filters of the page *History*;
    `outcome=active` shows those that have not ended.

    All pages show the list as it was when the first one was asked for. Where the run of `cursor` is
    gone and its place with it, the answer is 422: begin anew."""
    rows = held.with_profile(Run.objects.light().select_related("project")).defer("project__token")
    if wanted.issue:
        rows = rows.filter(issue_key=wanted.issue)
    settings, now = Settings.current(), lab().now()
    place = filters.placed(wanted.cursor) if wanted.cursor else Place()
    found = finding.page(_wanted(wanted), place, now, wanted.limit, rows)
    if found.is_lost:
        raise Denied(422, INVALID, LOST, {"cursor": LOST})
    last: int | str | None = found.last
    if found.last is not None and wanted.sort.key != "started":
        last = filters.cursor(found.last, place.at or now)  # in these orders runs move
    return api_schemas.Runs(
        items=[showing.run_row(row, now, settings) for row in found.runs], next=last
    )


def _wanted(given: asked.RunFilter) -> Wanted:
    return Wanted(
        project=given.project,
        outcome=given.outcome or "",
        agent=given.agent,
        model=given.model,
        person=given.person,
        since=given.since,
        until=given.until,
        text=given.text.strip(),
        least=None if given.least is None else Decimal(str(given.least)),
        most=None if given.most is None else Decimal(str(given.most)),
        sort=given.sort,
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
        stopped=stop_project(lab(), project_of(project_id), username(request))
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
