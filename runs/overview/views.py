"""The overview, the frame's own refresh, and the demo."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from runs import wiring
from runs.core.ports import SeamError
from runs.core.refusal import ActRefused
from runs.models import Project
from runs.overview import attention, hiding_rules, queries, visit_middleware
from runs.overview.hiding_rules import Choice
from runs.web import answers, fragments, live
from runs.web.access import act, look, username
from runs.web.live import Live


@require_GET
@look
def overview(request: HttpRequest) -> HttpResponse:
    """Everything at a glance; for somebody who comes back, what ended meanwhile."""
    away = visit_middleware.away(request)
    shown, at = Live("overview"), "runs:overview-live"
    return live.page(request, "overview/page.html", shown, at, away=away)


@require_GET
@look
def overview_live(request: HttpRequest) -> HttpResponse:
    """The live parts. The welcome has none of them: it makes way once there is a project."""
    if "first" in request.GET and Project.objects.exists():
        return answers.fresh(HttpResponse(headers={"HX-Refresh": "true"}))
    return live.refresh(request, Live("overview"))


@require_GET
@look
def needs(request: HttpRequest) -> HttpResponse:
    """Everything that needs a person, without the limit of the overview."""
    return live.page(request, "overview/needs.html", Live("needs"), "runs:needs-live")


@require_GET
@look
def needs_live(request: HttpRequest) -> HttpResponse:
    return live.refresh(request, Live("needs"))


@require_POST
@act
def needs_hide(request: HttpRequest) -> HttpResponse:
    """Dismiss or snooze what the page showed, for whoever asks alone; what changed since stays."""
    lab, user = wiring.lab(), request.user
    try:
        choice = Choice(request.GET.get("for", Choice.DISMISS))
    except ValueError:
        text = "There is no such way to hide something. Nothing was hidden."
        return answers.failed(request, text, 400, reverse("runs:overview"))
    present = queries.needs(lab).needs.found
    named = hiding_rules.named(present, request.POST.get("shown", ""), choice)
    if isinstance(user, User):
        attention.hide(lab, user, present, named.found, choice)
    return _list_again(request, _hid(choice, len(named.found), named.changed))


@require_POST
@act
def needs_back(request: HttpRequest) -> HttpResponse:
    """Put what this person has hidden back on their list; all of it where none is named."""
    needs = request.POST.get("need", "").split()[: hiding_rules.MOST]
    count = 0
    if isinstance(request.user, User):
        count = attention.bring_back(wiring.lab(), request.user, needs)
    return _list_again(request, "It is back on your list." if count else "")


def _hid(choice: Choice, count: int, changed: int) -> str:
    done = "Dismissed" if choice is Choice.DISMISS else "Snoozed"
    many = f": {count} things" if count > 1 else ""
    said = f"{done}{many}, for you alone." if count else "Nothing was hidden."
    return f"{said} {changed} changed meanwhile and stayed." if changed else said


def _list_again(request: HttpRequest, text: str) -> HttpResponse:
    topic = "needs" if fragments.here(request) == "needs" else "overview"
    found = fragments.regions(topic, True, request) if answers.is_htmx(request) else {}
    return answers.done(request, found or {}, reverse("runs:overview"), text)


@require_GET
@look
def frame_live(request: HttpRequest) -> HttpResponse:
    """Refreshes the frame of pages that have no live parts of their own."""
    return live.refresh(request, Live("chrome"))


@require_GET
@look
def project_frame_live(request: HttpRequest, project_id: int) -> HttpResponse:
    """The same below a project, with its state and its tabs."""
    return live.refresh(request, Live(f"issues:{project_id}"))


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
    from runs.demo import making as work

    try:
        project = work.make(wiring.lab(), username(request))
    except (SeamError, ActRefused) as error:
        text = f"The demo could not be made: {error} Nothing of yours was touched."
        return answers.failed(request, text, 500, reverse("runs:overview"))
    return answers.elsewhere(request, reverse("runs:project", args=[project.pk]))
