"""The turns of a loop run, one of them in full, and what people ask of a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from runs import wiring
from runs.loop_pages import run_card, turn_page
from runs.loops import acts
from runs.loops.acts import LoopRefused
from runs.models import Loop, Run
from runs.web import answers, fragments, live
from runs.web.access import act, look, username
from runs.web.live import Live
from runs.web.refusals import status_of

SENT = "Sent. The next prompt says it, and the loop does not wait for it."
WILL_STOP = "The loop stops when its turn is over. Its work is kept."
WILL_RESTART = "The loop restarts when its turn is over; memories and guidance stay."
TURNS = {"loop-turns": "loops/_turns"}
NUMBER_LETTERS = 18


@require_GET
@look
def turns(request: HttpRequest, run_id: int) -> HttpResponse:
    """All turns of a loop, newest first, a page at a time."""
    return live.page(request, "loops/turns.html", _turns(request, run_id), *_turns_at(run_id))


@require_GET
@look
def turns_live(request: HttpRequest, run_id: int) -> HttpResponse:
    """The same turns as they are now."""
    return live.refresh(request, _turns(request, run_id))


@require_GET
@look
def turn(request: HttpRequest, run_id: int, generation_number: int, number: int) -> HttpResponse:
    """One turn: what it was told, what it answered, what it changed."""
    args = (run_id, generation_number, number)
    shown = live.shown(request, Live(f"talk:{run_id}"), "runs:run-turn-live", *args)
    context = shown | turn_page.of(wiring.lab(), shown["page"].run, *args[1:])
    return answers.fresh(render(request, "loops/turn.html", context))


@require_GET
@look
def turn_prompt(
    request: HttpRequest, run_id: int, generation_number: int, number: int
) -> HttpResponse:
    """The whole prompt of a turn as a file."""
    turn = turn_page.turn_of(run_id, generation_number, number)
    answer = HttpResponse(turn_page.prompt_of(turn), content_type="text/markdown; charset=utf-8")
    name = f"run-{run_id}-turn-{turn.name}.md"
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answers.fresh(answer)


@require_GET
@look
def turn_live(
    request: HttpRequest, run_id: int, generation_number: int, number: int
) -> HttpResponse:
    """Its frame; what a turn was told and left stays as it is."""
    return live.refresh(request, Live(f"talk:{run_id}"))


@require_POST
@act
def guide(request: HttpRequest, run_id: int) -> HttpResponse:
    """Tell the agents of a loop something."""
    text = request.POST.get("text", "")
    run, by = _run(run_id), username(request)
    try:
        acts.guide(wiring.lab(), run, text, by=by)
    except LoopRefused as refused:
        if text and not answers.is_htmx(request):
            return _with_text(request, run_id, refused, text)
        return answers.failed(request, refused.text, status_of(refused), _back(run_id))
    return _done(request, run_id, SENT)


@require_POST
@act
def stop(request: HttpRequest, run_id: int) -> HttpResponse:
    """Have the loop end after the turn that runs."""
    run, by = _run(run_id), username(request)
    ask = lambda: acts.ask_stop(wiring.lab(), run, by=by)  # noqa: E731
    return _asked(request, run_id, ask, WILL_STOP)


@require_POST
@act
def restart(request: HttpRequest, run_id: int) -> HttpResponse:
    """Have the loop begin anew after the turn that runs."""
    run, by = _run(run_id), username(request)
    ask = lambda: acts.ask_restart(wiring.lab(), run, by=by)  # noqa: E731
    return _asked(request, run_id, ask, WILL_RESTART)


def _turns(request: HttpRequest, run_id: int) -> Live:
    sent = request.GET.get("before", "")
    is_number = sent.isascii() and sent.isdigit() and len(sent) <= NUMBER_LETTERS
    before = int(sent) if is_number else None

    def facts() -> dict[str, Any]:
        loop = Loop.objects.only("run_id", "number").filter(run_id=run_id).first()
        if loop is None:
            raise Http404("This run is no loop.")
        rows, older = run_card.page(loop, before)
        return {"turns": rows, "older": older, "is_older": before is not None, "run_id": run_id}

    return Live(f"talk:{run_id}", TURNS, facts)


def _turns_at(run_id: int) -> tuple[str, int]:
    return "runs:run-turns-live", run_id


def _asked(request: HttpRequest, run_id: int, ask: Callable[[], None], text: str) -> HttpResponse:
    try:
        ask()
    except LoopRefused as refused:
        return answers.failed(request, refused.text, status_of(refused), _back(run_id))
    return _done(request, run_id, text)


def _with_text(request: HttpRequest, run_id: int, refused: LoopRefused, text: str) -> HttpResponse:
    """The run's page with a text that was not sent, which a redirect would lose."""
    messages.error(request, refused.text)
    context = live.shown(request, Live(f"run:{run_id}"), "runs:run-live", run_id)
    context["unsent_guidance"] = text
    page = render(request, "lifecycle/page.html", context, status=status_of(refused))
    return answers.fresh(page)


def _done(request: HttpRequest, run_id: int, text: str) -> HttpResponse:
    is_htmx = answers.is_htmx(request)
    regions = fragments.regions(fragments.here(request), True, request) if is_htmx else {}
    return answers.done(request, regions or {}, _back(run_id), text)


def _run(run_id: int) -> Run:
    return get_object_or_404(Run.objects.select_related("project"), pk=run_id)


def _back(run_id: int) -> str:
    return reverse("runs:run", args=[run_id])
