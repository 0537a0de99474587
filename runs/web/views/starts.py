"""The Start button: asks for a run, waits a little, and gives the launch pass's answer."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_POST

from runs import wiring
from runs.domain.states import AnswerCode
from runs.models import Project, StartRequest
from runs.web import answers, fragments
from runs.web.access import act, username
from runs.web.answers import Level
from runs.work import starts

STATUS: Mapping[AnswerCode, int] = {
    AnswerCode.PENDING: 202,
    AnswerCode.STARTED: 200,
    AnswerCode.NOTHING_READY: 409,
    AnswerCode.AT_CAP: 409,
    AnswerCode.NO_TRACKER: 400,
    AnswerCode.NOT_READY: 409,
    AnswerCode.TRACKER_FAILED: 502,
    AnswerCode.SEAM_FAILED: 500,
    AnswerCode.LOGGED_OUT: 409,
    AnswerCode.START_FAILED: 500,
    AnswerCode.EXPIRED: 503,
}
_LEVELS: Mapping[AnswerCode, Level] = {
    AnswerCode.PENDING: "info",
    AnswerCode.NOTHING_READY: "info",
    AnswerCode.AT_CAP: "warning",
}
WAITING = (
    "The worker has not answered yet. Your start is written down and is carried out as soon as the "
    "worker looks; nothing has to be pressed again."
)


@require_POST
@act
def start(request: HttpRequest, project_id: int) -> HttpResponse:
    """Start a run of the lowest ready issue, or of the one named (LAB-53 to LAB-66)."""
    project = get_object_or_404(Project, pk=project_id)
    lab = wiring.lab()
    wanted = request.POST.get("issue", "")[:60]
    asked = starts.wait(lab, starts.request(lab, project, username(request), wanted))
    back = reverse("runs:project", args=[project_id])
    code = AnswerCode(asked.answer)
    if code is not AnswerCode.STARTED:
        text = asked.text or WAITING
        return answers.failed(request, text, STATUS[code], back, _LEVELS.get(code, "error"))
    regions = {}
    if answers.is_htmx(request):
        regions = fragments.regions(fragments.here(request), True, request) or {}
    return answers.done(request, regions, back, _started(asked))


def _started(asked: StartRequest) -> str:
    run = asked.run
    if run is None:
        return "A run was started."
    where = f" in slot {run.slot}" if run.slot else ""
    return f"An agent takes issue {run.issue_key} of {asked.project.name}{where}."
