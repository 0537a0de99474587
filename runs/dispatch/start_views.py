"""The Start button: asks for a run, waits a little, and gives the launch pass's answer."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_POST

from runs import wiring
from runs.core.states import AnswerCode
from runs.dispatch import start_answers, start_requests
from runs.dispatch.start_answers import STATUS
from runs.models import Project
from runs.web import answers, fragments
from runs.web.access import act, username
from runs.web.answers import Level

_LEVELS: Mapping[AnswerCode, Level] = {
    AnswerCode.PENDING: "info",
    AnswerCode.NOTHING_READY: "info",
    AnswerCode.AT_CAP: "warning",
}


@require_POST
@act
def start(request: HttpRequest, project_id: int) -> HttpResponse:
    """Start a run of the lowest ready issue, or of the one named (LAB-53 to LAB-66)."""
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
