"""History: all runs with filters whose address can be kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_GET

from runs import wiring
from runs.history import filters, pages, plots
from runs.history.pages import History
from runs.models import Settings
from runs.overview import queries
from runs.web import live
from runs.web.access import look
from runs.web.live import Live

KEPT = ("outcome", "project")


@require_GET
@look
def history(request: HttpRequest) -> HttpResponse:
    """One page of runs. What makes no sense in the address is said at its field and left out."""
    lab = wiring.lab()
    frame = queries.frame(lab)
    names = {project.pk: project.name for project in frame.board.projects}
    asked = filters.read(request.GET.dict(), names)
    shown = History(lab, asked)
    form = pages.form(asked, shown.found.is_lost)
    address = reverse("runs:history-live") + shown.address
    words = filters.words(asked.wanted, names.get(asked.wanted.project or 0, ""))
    return live.page(
        request,
        "history/page.html",
        _live(shown, frame),
        "runs:history-live",
        live_url=address,
        words=words,
        **form,
    )


@require_GET
@look
def history_live(request: HttpRequest) -> HttpResponse:
    """The same rows as they are now, and how many came since."""
    return live.refresh(request, _live(History(wiring.lab(), filters.read(request.GET.dict()))))


@require_GET
@look
def project_runs(request: HttpRequest, project_id: int) -> HttpResponse:
    """The runs of one project, below its tabs; the other filters are those of all runs."""
    lab = wiring.lab()
    frame = queries.frame_of_project(lab, project_id)
    if frame is None:
        raise Http404("There is no such project.")
    shown = _of_project(request, project_id)
    words = filters.words(replace(shown.asked.wanted, project=None))
    return live.page(
        request,
        "history/project.html",
        _live(shown, frame, f"issues:{project_id}"),
        "runs:project-runs-live",
        project_id,
        live_url=reverse("runs:project-runs-live", args=[project_id]) + shown.address,
        words=words,
        project=frame.board.by_id[project_id],
        **pages.form(shown.asked, shown.found.is_lost),
    )


@require_GET
@look
def project_runs_live(request: HttpRequest, project_id: int) -> HttpResponse:
    """The same rows as they are now."""
    return live.refresh(
        request, _live(_of_project(request, project_id), topic=f"issues:{project_id}")
    )


@require_GET
@look
def night(request: HttpRequest) -> HttpResponse:
    """The last 24 hours as lanes by slot, with slots in use and what days cost."""
    shown = _night(queries.frame(wiring.lab()))
    return live.page(request, "history/night.html", shown, "runs:night-live")


@require_GET
@look
def night_live(request: HttpRequest) -> HttpResponse:
    """The same as it is now: made anew when something was told, and every few minutes."""
    return live.refresh(request, _night())


@require_GET
@look
def runs(request: HttpRequest) -> HttpResponse:
    """The list of runs of earlier days, whose addresses people kept."""
    kept = {name: request.GET[name] for name in KEPT if request.GET.get(name)}
    return HttpResponseRedirect(f"{reverse('runs:history')}?{urlencode(kept)}".rstrip("?"))


def _of_project(request: HttpRequest, project_id: int) -> History:
    asked = filters.read({**request.GET.dict(), "project": str(project_id)})
    return History(wiring.lab(), asked, reverse("runs:project-runs", args=[project_id]))


def _live(shown: History, frame: queries.Frame | None = None, topic: str = "chrome") -> Live:
    # Made anew only when a row or the news is another: each reader has rows of a moment of their own.
    seen = shown.seen
    return Live(topic, pages.FILES, shown.facts, seen, is_asked=True, loaded=frame)


def _night(frame: queries.Frame | None = None) -> Live:
    lab = wiring.lab()

    def facts() -> dict[str, Any]:
        settings = frame.board.facts.settings if frame else Settings.current()
        now = lab.now()
        return {"night": plots.night(now, settings), "numbers": plots.spending(now, settings)}

    return Live("chrome", {"night": "history/_night"}, facts, loaded=frame)
