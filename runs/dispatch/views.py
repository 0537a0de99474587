"""Start, automatic work, and why a ready issue is not running."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from runs import wiring
from runs.core.ports import Lab
from runs.core.states import AnswerCode
from runs.dispatch import explain, start_answers, start_requests, why
from runs.dispatch.rules import claimable
from runs.dispatch.start_answers import STATUS
from runs.models import Project, Settings
from runs.watch import switch as acts
from runs.web import answers, fragments, live
from runs.web.access import act, look, username
from runs.web.answers import Level
from runs.web.live import Live
from runs.wiring import lab

WAITING = {"waiting": "dispatch/_waiting"}
ON = "Automatic work is on. Ready issues are started without a click, from now on."
OFF = "Automatic work is off. What runs goes on."


@require_POST
@act
def switch(request: HttpRequest, project_id: int) -> HttpResponse:
    """Turn automatic work on or off."""
    project = get_object_or_404(Project, pk=project_id)
    is_on = request.POST.get("is_on") == "on"
    try:
        acts.switch(lab(), project, is_on=is_on, by=username(request))
    except acts.AutoRefused as error:
        return answers.failed(request, str(error), 409, _back(project_id))
    return _done(request, project_id, ON if is_on else OFF)


@require_POST
@act
def reset(request: HttpRequest, project_id: int) -> HttpResponse:
    """Set the failure streak to zero."""
    project = get_object_or_404(Project, pk=project_id)
    try:
        was = acts.reset(lab(), project, by=username(request))
    except acts.AutoRefused as error:
        return answers.failed(request, str(error), 409, _back(project_id))
    text = "The failure streak is zero again." if was else "The failure streak was zero already."
    return _done(request, project_id, text)


@require_GET
@look
def waiting(request: HttpRequest, project_id: int) -> HttpResponse:
    """Why is this not running? Asked fresh, by the rule of the launch pass."""
    shown = _waiting(project_id, explain.explain)
    return live.page(request, "dispatch/waiting.html", shown, "runs:waiting-live", project_id)


@require_GET
@look
def waiting_live(request: HttpRequest, project_id: int) -> HttpResponse:
    """The same, looked at again when something was told of the project, or once a minute.

    Nobody waits for it, so all such pages of a project share what its tracker answered.
    """
    return live.refresh(request, _waiting(project_id, explain.for_pages))


def _waiting(project_id: int, told: Callable[[Lab, Project], explain.Explained]) -> Live:
    rows = Project.objects.select_related("agent").defer("token")
    project = get_object_or_404(rows, pk=project_id)

    def facts() -> dict[str, Any]:
        queue, found = told(lab(), project)
        return {
            "project": project,
            "queue": queue,
            "rows": why.rows(project, Settings.current(), found),
            "claimable": len(claimable(queue)),
        }

    seen = fragments.seen_of(project)
    return Live(f"issues:{project_id}", WAITING, facts, seen, is_asked=True)


def _done(request: HttpRequest, project_id: int, text: str) -> HttpResponse:
    regions = {}
    if answers.is_htmx(request):
        regions = fragments.regions(fragments.here(request), True, request) or {}
    return answers.done(request, regions, _back(project_id), text)


def _back(project_id: int) -> str:
    return reverse("runs:project", args=[project_id])


_LEVELS: Mapping[AnswerCode, Level] = {
    AnswerCode.PENDING: "info",
    AnswerCode.NOTHING_READY: "info",
    AnswerCode.AT_CAP: "warning",
    AnswerCode.NO_HOST: "warning",
}


@require_POST
@act
def start(request: HttpRequest, project_id: int) -> HttpResponse:
    """Start a run of the lowest ready issue, or of the one named."""
    project = get_object_or_404(Project, pk=project_id)
    lab = wiring.lab()
    wanted = request.POST.get("issue", "")[:60]
    asked = start_requests.wait(
        lab, start_requests.request(lab, project, username(request), wanted)
    )
    back = reverse("runs:project", args=[project_id])
    code = AnswerCode(asked.answer)
    if code is not AnswerCode.STARTED:
        level = _LEVELS.get(code, "error")
        return answers.failed(request, start_answers.text(asked), STATUS[code], back, level)
    regions = {}
    if answers.is_htmx(request):
        regions = fragments.regions(fragments.here(request), True, request) or {}
    return answers.done(request, regions, back, start_answers.text(asked))
