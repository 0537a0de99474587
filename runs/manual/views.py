"""Sessions that people drive: started and stopped on the project's page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_POST

from runs import wiring
from runs.core.states import PersonState
from runs.manual import acts, endings
from runs.models import ManualSession, Project
from runs.web import answers, fragments
from runs.web.access import act, username

LIVE = "The session {label} is live. Attach to it with the command below."
WAITING = "The session {label} is being made. It is shown below as soon as it is there."
OVER = "It had ended already, so nothing was stopped."
STOPPED = "The session {label} was ended. {rest}"


@require_POST
@act
def start(request: HttpRequest, project_id: int) -> HttpResponse:
    """Start a session on a branch of its own."""
    project = get_object_or_404(Project.objects.select_related("agent"), pk=project_id)
    lab = wiring.lab()
    back = reverse("runs:project", args=[project_id])
    label = request.POST.get("label", "").strip()
    try:
        row = acts.wait(lab, acts.start(lab, project, label, username(request)))
    except acts.SessionRefused as refused:
        return answers.failed(request, str(refused), 409, back)
    if row.state == PersonState.ENDED:
        return answers.failed(request, row.warning or acts.over(row), 500, back)
    text = (LIVE if row.state == PersonState.LIVE else WAITING).format(label=row.label)
    return answers.done(request, _regions(request, project_id), back, text)


@require_POST
@act
def stop(request: HttpRequest, project_id: int, session_id: int) -> HttpResponse:
    """End a session; what is clean is tidied, what is not is kept."""
    rows = ManualSession.objects.select_related("project")
    row = get_object_or_404(rows, pk=session_id, project_id=project_id)
    back = reverse("runs:project", args=[project_id])
    if not endings.stop(wiring.lab(), row, username(request)):
        return answers.done(request, _regions(request, project_id), back, OVER, "info")
    rest = row.warning.capitalize() if row.warning else "Its clean worktree was removed."
    text = STOPPED.format(label=row.label, rest=rest)
    return answers.done(request, _regions(request, project_id), back, text)


def _regions(request: HttpRequest, project_id: int) -> dict[str, str]:
    if not answers.is_htmx(request):
        return {}
    return fragments.regions(f"project:{project_id}", True, request) or {}
