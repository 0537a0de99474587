"""Composite workflows on the pages: started, shown, stopped, a failed phase started again."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs import wiring
from runs.groups import pages as group_pages
from runs.issues.pages import read_filter
from runs.models import Project, WorkflowPhase
from runs.web import access, answers, live
from runs.web.access import act, look, username
from runs.web.live import Live
from runs.workflows import acts, pages
from runs.workflows.forms import WorkflowForm

LIST = {"workflow-rows": "workflows/_rows"}
PARTS = {
    "workflow-head": "workflows/_head",
    "workflow-phases": "workflows/_phases",
    "workflow-facts": "workflows/_facts",
    "workflow-feed": "workflows/_feed",
}
STOPPED = "The workflow was stopped. Tasks and workers go on."
OVER = "It had ended already. Nothing was changed."
AGAIN = "The phase begins again. The time that the workflow waited does not count."
NOT_HELD = "The workflow does not wait for this phase. Nothing was changed."


@require_http_methods(["GET", "POST"])
@look
def workflows(request: HttpRequest, project_id: int) -> HttpResponse:
    """The workflows of a project; who may act starts one here."""
    project = group_pages.project_of(project_id)
    if request.method == "POST":
        if not access.may_act(request.user):
            return access.refused(request)
        return _started(request, project)
    return _list(request, project, WorkflowForm())


@require_GET
@look
def workflows_live(request: HttpRequest, project_id: int) -> HttpResponse:
    """The list as it is now."""
    project = group_pages.project_of(project_id)
    return live.refresh(request, _rows(request, project))


@require_GET
@look
def workflow(request: HttpRequest, project_id: int, workflow_id: int) -> HttpResponse:
    """One workflow: its phases, each with the bar of its group."""
    project = group_pages.project_of(project_id)
    shown, at = _parts(project, workflow_id), (project_id, workflow_id)
    return live.page(request, "workflows/workflow.html", shown, "runs:workflow-live", *at)


@require_GET
@look
def workflow_live(request: HttpRequest, project_id: int, workflow_id: int) -> HttpResponse:
    """Its live parts."""
    project = group_pages.project_of(project_id)
    return live.refresh(request, _parts(project, workflow_id))


@require_POST
@act
def stop(request: HttpRequest, project_id: int, workflow_id: int) -> HttpResponse:
    """End it and the monitor of its phase."""
    project = group_pages.project_of(project_id)
    row = pages.workflow_of(project, workflow_id)
    won = acts.stop(wiring.lab(), row, username(request))
    return _answer(request, project, workflow_id, won, STOPPED if won else OVER)


@require_POST
@act
def restart(
    request: HttpRequest, project_id: int, workflow_id: int, phase_number: int
) -> HttpResponse:
    """Start a failed phase again."""
    project = group_pages.project_of(project_id)
    row = pages.workflow_of(project, workflow_id)
    phases = WorkflowPhase.objects.select_related("group")
    phase = get_object_or_404(phases, workflow=row, number=phase_number)
    back = reverse("runs:workflow", args=[project_id, workflow_id])
    try:
        won = acts.restart(wiring.lab(), row, phase, username(request))
    except acts.WorkflowRefused as refused:
        return answers.failed(request, str(refused), 409, back)
    return _answer(request, project, workflow_id, won, AGAIN if won else NOT_HELD)


def _parts(project: Project, workflow_id: int) -> Live:
    return live.of_project(project, PARTS, lambda: pages.workflow(project, workflow_id))


def _rows(request: HttpRequest, project: Project) -> Live:
    page = read_filter(request.GET).page
    return live.of_project(project, LIST, lambda: pages.workflows(project, page))


def _answer(
    request: HttpRequest, project: Project, workflow_id: int, won: bool, text: str
) -> HttpResponse:
    back = reverse("runs:workflow", args=[project.pk, workflow_id])
    found = live.regions(request, _parts(project, workflow_id))
    return answers.done(request, found, back, text, "success" if won else "info")


def _started(request: HttpRequest, project: Project) -> HttpResponse:
    form = WorkflowForm(request.POST)
    if not form.is_valid():
        return _list(request, project, form, 422)
    given = form.cleaned_data
    seconds = given["minutes"] * 60
    try:
        made = acts.start(
            wiring.lab(),
            project,
            given["name"],
            form.lines,
            by=username(request),
            ceiling_seconds=seconds,
        )
    except acts.WorkflowRefused as refused:
        form.refuse(refused.fields)
        return _list(request, project, form, 422)
    return answers.elsewhere(request, reverse("runs:workflow", args=[project.pk, made.pk]))


def _list(
    request: HttpRequest, project: Project, form: WorkflowForm, status: int = 200
) -> HttpResponse:
    shown, at = _rows(request, project), "runs:workflows-live"
    return live.page(
        request, "workflows/list.html", shown, at, project.pk, status=status, form=form
    )
