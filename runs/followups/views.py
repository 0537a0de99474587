"""Going on with an ended run, in the browser."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from runs import wiring
from runs.core.ports import Lab, SeamError
from runs.core.refusal import ActRefused
from runs.core.states import AnswerCode
from runs.dispatch import start_answers, start_requests
from runs.followups import acts, facts, loop_rules, pages, rules
from runs.followups.acts import FollowUpRefused
from runs.followups.pages import Box
from runs.models import Run, StartRequest
from runs.overview import queries
from runs.people.stepup import confirmed
from runs.web import answers
from runs.web.access import act, username
from runs.web.refusals import status_of
from runs.wiring import lab
from trackers.base import TrackerError

DISCARDING = "Its work is being discarded. The new run is started by itself when that is done."
Ask = Callable[..., StartRequest]
BoxOf = Callable[..., Box | None]
Refuse = Callable[[str, int], HttpResponse]
MOST_KEPT = 10_000


@require_http_methods(["GET", "POST"])
@act
def resume(request: HttpRequest, run_id: int) -> HttpResponse:
    """Go on with an ended run, with a text for its agent; the form by itself where that is asked for."""
    as_loop = request.POST.get("as_loop", "")
    box_of = partial(pages.resume_box, as_loop=bool(as_loop))
    return _told(request, run_of(run_id), partial(_resume, as_loop=as_loop), box_of)


def _resume(lab: Lab, run: Run, text: str, *, by: str, as_loop: str) -> StartRequest:
    """As the act, with what the form sent. Raises FollowUpRefused."""
    if as_loop not in ("", "yes"):
        raise FollowUpRefused(loop_rules.NO_CHOICE, code="invalid", field="as_loop")
    return acts.resume(lab, run, text, by=by, as_loop=bool(as_loop))


@require_http_methods(["GET", "POST"])
@act
def changes(request: HttpRequest, run_id: int) -> HttpResponse:
    """Have the open pull request of a run changed; the form by itself where that is asked for."""
    number = request.POST.get("pull", "")
    pull = int(number) if number.isascii() and number.isdigit() and len(number) < 10 else None
    return _told(
        request, run_of(run_id), acts.request_changes, partial(pages.changes_box, pull=pull)
    )


@require_http_methods(["GET", "POST"])
@act
@confirmed
def retry(request: HttpRequest, run_id: int) -> HttpResponse:
    """Discard what an ended run left and start its issue anew; a page says first what that is."""
    run, back = run_of(run_id), reverse("runs:run", args=[run_id])
    if request.method == "GET" or not request.POST.get("sure"):
        why = rules.why_not_retry(facts.stored(lab(), run))
        if why:
            return answers.failed(request, why, 409, back)
        context = {"run": run, "left": pages.left(lab(), run), "page": queries.frame(wiring.lab())}
        return answers.fresh(render(request, "followups/retry.html", context))
    try:
        found = acts.retried(lab(), run, acts.retry(lab(), run, by=username(request)))
    except ActRefused as refused:
        return answers.failed(request, refused.text, status_of(refused), back)
    except SeamError as error:
        text = f"Nothing was discarded and nothing started: {error}"
        return answers.failed(request, text, 502, back)
    if isinstance(found, StartRequest):
        refuse = partial(answers.failed, request, back=back)
        return _answered(request, found, back, refuse)
    if found.error:
        text = f"Its work was not discarded, so nothing was started: {found.error}"
        return answers.failed(request, text, 502, back)
    return answers.done(request, {}, back, DISCARDING, "info")


def _told(request: HttpRequest, run: Run, ask: Ask, box_of: BoxOf) -> HttpResponse:
    if request.method == "GET":
        return _form(request, run, box_of(lab(), run))
    text = request.POST.get("text", "")
    try:
        asked = ask(lab(), run, text, by=username(request))
    except FollowUpRefused as refused:
        if not refused.fields:
            return _refused(request, run, box_of, refused.text, status_of(refused))
        box = box_of(lab(), run, text[:MOST_KEPT], refused.fields)
        return _form(request, run, box, refused.text)
    except TrackerError as error:
        words = f"The comments could not be read, so nothing was started: {error}"
        return _refused(request, run, box_of, words, 502)
    back = reverse("runs:run", args=[run.pk])
    return _answered(request, asked, back, partial(_refused, request, run, box_of))


def _answered(request: HttpRequest, asked: StartRequest, back: str, refuse: Refuse) -> HttpResponse:
    """Where somebody goes who asked for a run: to its page, once it is there.

    `refuse` answers with why nothing was started, and its status.
    """
    asked = start_requests.wait(lab(), asked)
    code, words = AnswerCode(asked.answer), start_answers.text(asked)
    if asked.run is not None and code is AnswerCode.STARTED:
        return answers.elsewhere(request, reverse("runs:run", args=[asked.run.pk]))
    if code is AnswerCode.PENDING:
        return answers.failed(request, words, start_answers.STATUS[code], back, "info")
    return refuse(words, start_answers.STATUS[code])


def _refused(
    request: HttpRequest, run: Run, box_of: BoxOf, words: str, status: int
) -> HttpResponse:
    """Why nothing was started. Without JavaScript with the form, so that no word typed is lost."""
    text = request.POST.get("text", "")[:MOST_KEPT]
    box = None if answers.is_htmx(request) else box_of(lab(), run, text)
    if box is None:
        return answers.failed(request, words, status, reverse("runs:run", args=[run.pk]))
    return _form(request, run, box, words, status)


def _form(
    request: HttpRequest, run: Run, box: Box | None, wrong: str = "", status: int = 422
) -> HttpResponse:
    """The form with what was typed, and what was wrong."""
    context: dict[str, Any] = {"box": box, "run": run, "can_act": True, "wrong": wrong}
    if wrong and box is not None and answers.is_htmx(request):
        part = render_to_string("followups/_box.html", context, request)
        regions = {"banner": answers.banner(wrong), box.name: part}
        return answers.fresh(HttpResponse(answers.partials(regions), status=422))
    context["page"] = queries.frame(wiring.lab())
    shown = render(request, "followups/page.html", context, status=status if wrong else 200)
    return answers.fresh(shown)


def run_of(run_id: int) -> Run:
    """The run of an address. Raises Http404."""
    rows = Run.objects.select_related("project__agent", "profile")
    return get_object_or_404(rows, pk=run_id)
