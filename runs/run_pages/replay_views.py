"""The screen of a run: as it is now for a page without a socket, and its recording, replayed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from runs import wiring
from runs.models import Run
from runs.run_pages import live_screen, recording, story, tabs
from runs.run_pages.recording import Recording
from runs.web import answers, live, terminal
from runs.web.access import look
from runs.web.forms import ReplayPlace
from runs.web.live import Live


@require_GET
@look
def screen(request: HttpRequest, run_id: int) -> HttpResponse:
    """What has changed of a live screen since the mark that a page has."""
    shot, mark = live_screen.shoot(_run(run_id)), request.GET.get("mark", "")
    if shot is None or shot.mark == mark:
        return answers.fresh(HttpResponse(status=204))
    news = live_screen.news(live_screen.remembered(shot), live_screen.had(mark))
    return answers.fresh(JsonResponse(news))


@require_GET
@look
def replay(request: HttpRequest, run_id: int) -> HttpResponse:
    """The recording of a run's screen, at the moment that was asked for or at its beginning."""
    run, found = _recorded(run_id)
    frame = live.shown(request, _frame(run_id), "runs:run-replay-live", run_id)
    seconds = _seconds(request)
    began = found.parts[0].at
    shown = recording.screen_at(wiring.lab(), run, found, began + seconds)
    context = {
        **frame,
        "recording": found,
        "seconds": min(seconds, found.seconds),
        "began_at": began,
        "length": max(1.0, math.ceil(found.seconds * 10) / 10),
        "events": [
            {"line": line, "at": at}
            for line in story.of(wiring.lab(), run)["lines"]
            if (at := _offset(found, line.at)) is not None
        ],
        "screen_lines": terminal.lines(shown.lines),
    }
    return answers.fresh(render(request, "run_pages/replay.html", context))


@require_GET
@look
def replay_live(request: HttpRequest, run_id: int) -> HttpResponse:
    """The head of its page where it changed."""
    return live.refresh(request, _frame(run_id))


@require_GET
@look
def part(request: HttpRequest, run_id: int) -> HttpResponse:
    """The part of a recording that shows a moment, for the player."""
    run, found = _recorded(run_id)
    at = found.parts[0].at + _seconds(request)
    return answers.fresh(JsonResponse(recording.shown(wiring.lab(), run, found, at)))


@require_GET
@look
def cast(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """The recording as an asciicast, with the events of the story as markers."""
    run, found = _recorded(run_id)
    told: Sequence[Any] = story.of(wiring.lab(), run)["lines"]
    marks = [(line.at.timestamp(), line.name) for line in told]
    pieces = recording.as_cast(wiring.lab(), run, found, marks)
    return answers.download(request, pieces, "application/x-asciicast", f"run-{run.pk}.cast")


@require_GET
@look
def text(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """The recording as plain text."""
    run, found = _recorded(run_id)
    pieces = recording.as_text(wiring.lab(), run, found)
    return answers.download(request, pieces, "text/plain", f"run-{run.pk}.txt")


def _frame(run_id: int) -> Live:
    return Live(f"{tabs.TALK}:{run_id}")


def _run(run_id: int) -> Run:
    return get_object_or_404(Run.objects.select_related("project", "profile"), pk=run_id)


def _recorded(run_id: int) -> tuple[Run, Recording]:
    run = _run(run_id)
    found = recording.of(wiring.lab(), run)
    if found is None:
        raise Http404("This run was not recorded.")
    return run, found


def _seconds(request: HttpRequest) -> float:
    place = ReplayPlace(request.GET)
    place.is_valid()
    return float(place.cleaned_data.get("at") or 0.0)


def _offset(found: Recording, at: datetime) -> float | None:
    """Seconds from the beginning of the recording; None for what it does not show."""
    if at < found.began or at > found.ended:
        return None
    return round((at - found.began).total_seconds(), 1)
