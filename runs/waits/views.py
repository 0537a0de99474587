"""What a person does on a run's page with its agent: answer it, interrupt it, let it go on."""

from __future__ import annotations

from typing import Protocol

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from runs import wiring
from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.loops import questions
from runs.loops.acts import LoopRefused
from runs.models import Run
from runs.waits import acts, closed_issues
from runs.web import answers, fragments, live
from runs.web.access import act, username
from runs.web.forms import AnswerForm
from runs.web.live import Live
from runs.web.refusals import status_of

ANSWERED = "Sent. The page says when the agent goes on."
INTERRUPTED = "The key was sent. The page says whether its screen changes after it."
ALLOWED = "It goes on, though its issue was closed."
UNREADABLE_ANSWER = "This answer could not be read. Nothing was sent."


class RunAct(Protocol):
    """What a person does to a run; raises ActRefused when it makes no sense now."""

    def __call__(self, lab: Lab, run: Run, *, by: str) -> object: ...


@require_POST
@act
def answer(request: HttpRequest, run_id: int) -> HttpResponse:
    """Give a waiting agent an answer: one of the choices that it offers, or a text."""
    found = get_object_or_404(Run.objects.select_related("project"), pk=run_id)
    back, lab = reverse("runs:run", args=[run_id]), wiring.lab()
    given = AnswerForm(request.POST)
    if not given.is_valid():
        return answers.failed(request, UNREADABLE_ANSWER, 400, back)
    told, by = given.cleaned_data, username(request)
    try:
        if told["choice"] is not None:
            seen = {"since": told["since"], "mark": told["mark"]}
            acts.choose(lab, found, told["choice"], **seen, by=by)
        elif found.is_loop:
            questions.answer(lab, found, told["text"], since=told["since"], by=by)
        else:
            acts.say(lab, found, told["text"], since=told["since"], by=by)
    except (acts.AnswerRefused, LoopRefused) as refused:
        if told["text"] and not answers.is_htmx(request):
            return _with_text(request, run_id, refused, told["text"])
        return answers.failed(request, refused.text, status_of(refused), back)
    return _done(request, run_id, ANSWERED)


def _with_text(request: HttpRequest, run_id: int, refused: ActRefused, text: str) -> HttpResponse:
    """The run's page with a text that was not sent, which a redirect would lose."""
    messages.error(request, refused.text)
    context = live.shown(request, Live(f"run:{run_id}"), "runs:run-live", run_id)
    context["unsent"] = text
    page = render(request, "lifecycle/page.html", context, status=status_of(refused))
    return answers.fresh(page)


@require_POST
@act
def interrupt(request: HttpRequest, run_id: int) -> HttpResponse:
    """Have an agent stop what it does and wait for a next word."""
    return _act(request, run_id, acts.interrupt, INTERRUPTED)


@require_POST
@act
def allow(request: HttpRequest, run_id: int) -> HttpResponse:
    """Let a run go on though its issue was closed while its agent works."""
    return _act(request, run_id, closed_issues.allow, ALLOWED)


def _act(request: HttpRequest, run_id: int, do: RunAct, text: str) -> HttpResponse:
    """Do an act on a run and say so with this text, or say why it was refused."""
    found = get_object_or_404(Run.objects.select_related("project"), pk=run_id)
    try:
        do(wiring.lab(), found, by=username(request))
    except ActRefused as refused:
        back = reverse("runs:run", args=[run_id])
        return answers.failed(request, refused.text, status_of(refused), back)
    return _done(request, run_id, text)


def _done(request: HttpRequest, run_id: int, text: str) -> HttpResponse:
    topic = fragments.here(request)
    regions = fragments.regions(topic, True, request) if answers.is_htmx(request) else {}
    return answers.done(request, regions or {}, reverse("runs:run", args=[run_id]), text)
