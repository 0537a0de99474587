"""The overview, the frame's own refresh, and the demo."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from runs import wiring
from runs.core.ports import SeamError
from runs.core.refusal import ActRefused
from runs.models import Project, Run, WatchSession
from runs.overview import attention, visit_middleware
from runs.web import answers, fragments, live
from runs.web.access import act, look, username


@require_GET
@look
def overview(request: HttpRequest) -> HttpResponse:
    """Everything at a glance; for somebody who comes back, what ended meanwhile."""
    away = visit_middleware.away(request)
    return live.page(request, "overview/page.html", "overview", "runs:overview-live", away=away)


@require_GET
@look
def overview_live(request: HttpRequest) -> HttpResponse:
    """The live parts. The welcome has none of them: it makes way once there is a project."""
    if "first" in request.GET and Project.objects.exists():
        return answers.fresh(HttpResponse(headers={"HX-Refresh": "true"}))
    return live.refresh(request, "overview")


@require_GET
@look
def needs(request: HttpRequest) -> HttpResponse:
    """Everything that needs a person, without the limit of the overview."""
    return live.page(request, "overview/needs.html", "needs", "runs:needs-live")


@require_GET
@look
def needs_live(request: HttpRequest) -> HttpResponse:
    return live.refresh(request, "needs")


@require_POST
@act
def dismiss_run(request: HttpRequest, run_id: int) -> HttpResponse:
    """Take an ended run off what needs a person; its work and its page stay."""
    run = get_object_or_404(Run.objects.select_related("project"), pk=run_id)
    attention.dismiss(wiring.lab(), run, username(request))
    return _dismissed(request)


@require_POST
@act
def dismiss_watch(request: HttpRequest, project_id: int, session_id: int) -> HttpResponse:
    """The same for a watch session that has ended."""
    row = get_object_or_404(
        WatchSession.objects.select_related("project"), pk=session_id, project=project_id
    )
    attention.dismiss(wiring.lab(), row, username(request))
    return _dismissed(request)


@require_POST
@act
def dismiss_all(request: HttpRequest) -> HttpResponse:
    """The same for everything that has ended and that the page showed."""
    shown = request.POST.get("shown", "")
    attention.dismiss_all(wiring.lab(), _ids(shown, "run"), _ids(shown, "watch"), username(request))
    return _dismissed(request)


def _ids(shown: str, kind: str) -> list[int]:
    """Which of one kind a page showed, from its own words; what is none of them is left out."""
    named = (word.removeprefix(f"{kind}-") for word in shown.split() if word.startswith(kind))
    return [int(text) for text in named if text.isascii() and text.isdigit() and len(text) < 19]


def _dismissed(request: HttpRequest) -> HttpResponse:
    topic = "needs" if fragments.here(request) == "needs" else "overview"
    found = fragments.regions(topic, True, request) if answers.is_htmx(request) else {}
    return answers.done(request, found or {}, reverse("runs:overview"))


@require_GET
@look
def frame_live(request: HttpRequest) -> HttpResponse:
    """Refreshes the frame of pages that have no live parts of their own."""
    return live.refresh(request, "chrome")


@require_POST
@look
def away_dismiss(request: HttpRequest) -> HttpResponse:
    """Put away what ended while somebody was not here."""
    visit_middleware.put_away(request, request.POST.get("until", ""))
    return answers.done(request, {"away": '<div id="away"></div>'}, reverse("runs:overview"))


@require_POST
@act
def demo(request: HttpRequest) -> HttpResponse:
    """Make the demo project, or find it again."""
    from runs.projects import demo as work

    try:
        project = work.make(wiring.lab(), username(request))
    except (SeamError, ActRefused) as error:
        text = f"The demo could not be made: {error} Nothing of yours was touched."
        return answers.failed(request, text, 500, reverse("runs:overview"))
    return answers.elsewhere(request, reverse("runs:project", args=[project.pk]))
