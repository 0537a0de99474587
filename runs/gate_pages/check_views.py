"""The page *Checks* of a run, its refresh, and all that a command or a reviewer printed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from runs import wiring
from runs.core.ports import SeamError
from runs.gate_pages import check_pages
from runs.gates import acceptance, levels
from runs.models import Attempt, Project, Run, Validation
from runs.overview import attention
from runs.web import addresses, answers, fragments, live
from runs.web.access import act, look, username
from runs.web.live import Live
from runs.web.refusals import status_of

NUMBER_LETTERS = 9
GONE = "What it printed is not on this machine any more."


@require_GET
@look
def checks(request: HttpRequest, run_id: int) -> HttpResponse:
    """The attempts of a run, and one of them in full."""
    number = _number(request, "attempt")
    context = live.shown(request, _live(run_id, number), "runs:run-checks-live", run_id)
    run = context["page"].run
    if number is not None:
        context |= check_pages.of(wiring.lab(), run, number)
        context["live_url"] += f"?attempt={number}"
    if context["can_act"]:
        attention.opened(run, wiring.lab().now())
    return answers.fresh(render(request, "gates/checks.html", context))


@require_GET
@look
def checks_live(request: HttpRequest, run_id: int) -> HttpResponse:
    """What changed on it; of an earlier attempt, which stays as it is, the frame alone."""
    return live.refresh(request, _live(run_id, _number(request, "attempt")))


@require_POST
@act
def prove(request: HttpRequest, run_id: int) -> HttpResponse:
    """Have accepted work proven again at the run level, which nobody else would begin."""
    run = get_object_or_404(Run.objects.select_related("project"), pk=run_id)
    back = reverse("runs:run-checks", args=[run_id])
    try:
        levels.prove(wiring.lab(), run, username(request))
    except levels.ProveRefusedError as refused:
        return answers.failed(request, refused.text, status_of(refused), back)
    text = f"The run level of issue {run.issue_key} has begun. Its issue is closed when it passes."
    return answers.done(request, _regions(request, run_id), back, text)


@require_POST
@act
def accept(request: HttpRequest, run_id: int) -> HttpResponse:
    """Accept work that changes the checks themselves, as the person saw it."""
    return _answered(request, run_id, acceptance.accept, "It is accepted.")


@require_POST
@act
def send_back(request: HttpRequest, run_id: int) -> HttpResponse:
    """Send such work back to its agent with what has to change."""
    text = request.POST.get("text", "")
    give = partial(acceptance.send_back, text=text)
    return _answered(request, run_id, give, "It was sent back to its agent.")


def _answered(
    request: HttpRequest, run_id: int, give: Callable[..., None], said: str
) -> HttpResponse:
    run = get_object_or_404(Run.objects.select_related("project"), pk=run_id)
    back = reverse("runs:run-checks", args=[run_id])
    sent = request.POST.get("number", "")
    number = int(sent) if sent.isascii() and sent.isdigit() and len(sent) <= NUMBER_LETTERS else 0
    commit = request.POST.get("commit", "")[:64]
    try:
        give(wiring.lab(), run, number, commit, by=username(request))
    except acceptance.AcceptanceRefusedError as refused:
        status = 422 if refused.fields else 409
        return answers.failed(request, refused.text, status, back, "warning")
    return answers.done(request, _regions(request, run_id), back, said)


@require_POST
@act
def prove_all(request: HttpRequest, project_id: int) -> HttpResponse:
    """The same for all accepted work of a project that no run level proves any more."""
    project = get_object_or_404(Project.objects.defer("token"), pk=project_id)
    back = reverse("runs:needs")
    try:
        count = levels.prove_all(wiring.lab(), project, username(request))
    except levels.ProveRefusedError as refused:
        return answers.failed(request, refused.text, status_of(refused), back)
    text = "No accepted work of this project waits without a run level."
    if count:
        text = f"{count} run level{'' if count == 1 else 's'} began, one for each issue."
    return answers.done(request, _regions(request), back, text)


def _regions(request: HttpRequest, run_id: int | None = None) -> dict[str, str]:
    """The live parts of the page that was acted on: the run's own, else the overview or the list."""
    if not answers.is_htmx(request):
        return {}
    own = reverse("runs:run-checks", args=[run_id]) if run_id is not None else ""
    is_own = own and addresses.path_in(request.headers.get("HX-Current-URL", "/")) == own
    topic = f"checks:{run_id}" if is_own else fragments.here(request)
    return fragments.regions(topic, True, request) or {}


@require_GET
@look
def output(request: HttpRequest, run_id: int, number: int, name: str) -> HttpResponse:
    """What a command of an attempt, or a reviewer, printed into one file, as plain text."""
    row = get_object_or_404(Attempt, run=run_id, number=number)
    return _text(request, row, name)


@require_GET
@look
def validation_output(request: HttpRequest, validation_id: int, name: str) -> HttpResponse:
    """What a command of a validation printed into one file, as plain text."""
    return _text(request, get_object_or_404(Validation, pk=validation_id), name)


@require_GET
@look
def line(request: HttpRequest, run_id: int) -> HttpResponse:
    """To a line in the diff of a run, which is looked for now: agents go on committing."""
    run = get_object_or_404(Run.objects.select_related("project"), pk=run_id)
    path = request.GET.get("path", "")
    place = check_pages.place(wiring.lab(), run, path, _number(request, "line"))
    return HttpResponseRedirect(f"{reverse('runs:run-changes', args=[run_id])}#{place}")


def _live(run_id: int, number: int | None) -> Live:
    return Live(f"checks:{run_id}" if number is None else f"talk:{run_id}")


def _number(request: HttpRequest, name: str) -> int | None:
    sent = request.GET.get(name, "")
    is_number = sent.isascii() and sent.isdigit() and len(sent) <= NUMBER_LETTERS
    return int(sent) if is_number else None


def _text(request: HttpRequest, row: Attempt | Validation, name: str) -> HttpResponse:
    """At most a piece of it, the end unless `start` asks for another."""
    start = _number(request, "start")
    try:
        found = check_pages.printed(wiring.lab(), row, name, start)
    except SeamError as error:
        said = f"It could not be read: {error} Nothing was harmed; try again."
        return answers.fresh(HttpResponse(said, status=502, content_type="text/plain"))
    if found is None:
        raise Http404(GONE)
    at = max(0, found.size - len(found.data)) if start is None else start
    text = found.data.decode(errors="replace")
    if len(found.data) < found.size:
        end = at + len(found.data)
        said = f"[bytes {at} to {end} of {found.size}; add ?start=N for another piece]\n"
        text = f"{said}{text}"
    answer = HttpResponse(text, content_type="text/plain; charset=utf-8")
    answer["X-Content-Type-Options"] = "nosniff"
    return answers.fresh(answer)
