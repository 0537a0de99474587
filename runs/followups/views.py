"""Going on with an ended run, in the browser."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from runs import wiring
from runs.core.states import AnswerCode
from runs.dispatch import start_answers, start_requests
from runs.followups import acts, pages
from runs.followups.acts import FollowUpRefused
from runs.followups.pages import Box
from runs.models import Run, StartRequest
from runs.overview import queries
from runs.web import answers
from runs.web.access import act, username
from runs.web.refusals import status_of
from runs.wiring import lab


@require_http_methods(["GET", "POST"])
@act
def resume(request: HttpRequest, run_id: int) -> HttpResponse:
    """Go on with an ended run, with a text for its agent; the form by itself where that is asked for."""
    run, back = run_of(run_id), reverse("runs:run", args=[run_id])
    if request.method == "GET":
        return _form(request, run, pages.resume_box(lab(), run))
    text = request.POST.get("text", "")
    try:
        asked = acts.resume(lab(), run, text, by=username(request))
    except FollowUpRefused as refused:
        if not refused.fields:
            return answers.failed(request, refused.text, status_of(refused), back)
        box = pages.resume_box(lab(), run, text[:10_000], refused.fields)
        return _form(request, run, box, refused.text)
    return answered(request, asked, back)


def answered(request: HttpRequest, asked: StartRequest, back: str) -> HttpResponse:
    """Where somebody goes who asked for a run: to its page, once it is there."""
    asked = start_requests.wait(lab(), asked)
    code, text = AnswerCode(asked.answer), start_answers.text(asked)
    if asked.run is not None and code is AnswerCode.STARTED:
        return answers.elsewhere(request, reverse("runs:run", args=[asked.run.pk]))
    if code is AnswerCode.PENDING:
        return answers.failed(request, text, start_answers.STATUS[code], back, "info")
    return answers.failed(request, text, start_answers.STATUS[code], back)


def _form(request: HttpRequest, run: Run, box: Box | None, wrong: str = "") -> HttpResponse:
    """The form with what was typed and the error at its field."""
    context: dict[str, Any] = {"resume": box, "run": run, "can_act": True}
    if wrong and answers.is_htmx(request):
        part = render_to_string("followups/_resume.html", context, request)
        regions = {"banner": answers.banner(wrong), "resume": part}
        return answers.fresh(HttpResponse(answers.partials(regions), status=422))
    status = 422 if wrong else 200
    context["page"] = queries.frame(wiring.lab())
    return answers.fresh(render(request, "followups/resume.html", context, status=status))


def run_of(run_id: int) -> Run:
    """The run of an address. Raises Http404."""
    rows = Run.objects.select_related("project__agent", "profile")
    return get_object_or_404(rows, pk=run_id)
