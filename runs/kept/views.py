"""Kept work: what is parked, discard in two steps, what was rescued, and restore."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from runs import wiring
from runs.core.ports import MaybeGiven, SeamError
from runs.hosts import kept_elsewhere
from runs.kept import discard as kept_discard
from runs.kept import pages
from runs.kept import restore as kept_restore
from runs.kept.discard import DiscardRefused
from runs.models import Discarding, Project
from runs.people.stepup import confirmed
from runs.web import answers, fragments, live
from runs.web.access import act, look, may_act, username
from runs.web.live import Live
from runs.web.refusals import status_of

PARKED = {
    "parked-list": "kept/_list",
    "rescues": "kept/_rescues",
    "disk": "kept/_disk",
}


@require_GET
@look
def parked(request: HttpRequest, project_id: int) -> HttpResponse:
    """What is parked and what was rescued of one project."""
    shown = _parts(request, project_id)
    return live.page(request, "kept/parked.html", shown, "runs:parked-live", project_id)


@require_GET
@look
def parked_live(request: HttpRequest, project_id: int) -> HttpResponse:
    """The same, asked of git again when something was told of the project, or once a minute."""
    return live.refresh(request, _parts(request, project_id))


def _parts(request: HttpRequest, project_id: int) -> Live:
    lab, project = wiring.lab(), pages.project_of(project_id)

    def facts() -> dict[str, Any]:
        return {
            **pages.strip(lab, project, _page(request), may_act(request.user)),
            **pages.rescues(lab, project),
            **pages.disk_use(project),
        }

    return Live(f"issues:{project.pk}", PARKED, facts, fragments.seen_of(project), is_asked=True)


@require_GET
@look
def parked_list(request: HttpRequest, project_id: int) -> HttpResponse:
    """The list alone, asked for each time the strip is opened."""
    project = pages.project_of(project_id)
    return answers.fresh(HttpResponse(_list(request, project, _page(request))))


@require_GET
@look
def discards(request: HttpRequest, project_id: int) -> HttpResponse:
    """How far long discards are; pages ask for it while one goes on."""
    project = pages.project_of(project_id)
    return answers.fresh(HttpResponse(pages.discards_html(project, _page(request))))


@require_POST
@act
@confirmed
def discard(request: HttpRequest, project_id: int) -> HttpResponse:
    """Discard a parked branch; without the second press the question is a page."""
    lab, project = wiring.lab(), pages.project_of(project_id)
    branch, back = request.POST.get("branch", ""), reverse("runs:parked", args=[project_id])
    host = request.POST.get("host") or request.GET.get("host", "")
    if not request.POST.get("sure"):
        said = kept_discard.accepted(project, branch)
        left_by = pages.left_by(project, branch)
        context = {"project": project, "branch": branch, "accepted": said, "left_by": left_by}
        context["host"] = host
        return answers.fresh(render(request, "kept/discard.html", context))
    try:
        is_known = bool(request.POST.get("even_accepted"))
        by = username(request)
        if host:
            text = kept_elsewhere.discard(lab, project, host, branch, by, is_known)
            return answers.done(request, _regions(request, project), back, text)
        done = kept_discard.begin(lab, project, branch, by, even_accepted=is_known)
    except DiscardRefused as refused:
        return answers.failed(request, refused.text, status_of(refused), back)
    except SeamError as error:
        text = f"{branch} was not discarded. What was not removed is as it was: {error}"
        if isinstance(error, MaybeGiven):
            text = kept_elsewhere.UNSURE
        return answers.failed(request, text, 502, back)
    if isinstance(done, Discarding):
        text = kept_discard.describe_wait(project, branch)
        return answers.done(request, _regions(request, project), back, text)
    text = f"{branch} was discarded. It is kept under Rescued and can be restored from there."
    text = f"{text} {done.on_origin}".strip()
    return answers.done(request, _regions(request, project), back, text)


@require_GET
@look
def rescue(request: HttpRequest, project_id: int, rescue_id: int) -> HttpResponse:
    """What one rescue holds."""
    found = pages.rescue_of(project_id, rescue_id)
    context = pages.held(wiring.lab(), found)
    return answers.fresh(render(request, "kept/rescue.html", dict(context)))


@require_POST
@act
def restore(request: HttpRequest, project_id: int, rescue_id: int) -> HttpResponse:
    """Make a rescued branch and its worktree again."""
    lab, found = wiring.lab(), pages.rescue_of(project_id, rescue_id)
    back = reverse("runs:parked", args=[project_id])
    by = username(request)
    try:
        host = kept_elsewhere.host_of(lab, found)
        if host:
            name = f"{kept_elsewhere.restore(lab, found, host, by)} on host {host}"
        else:
            name = kept_restore.restore(lab, found, by)
    except kept_restore.RestoreRefused as refused:
        return answers.failed(request, refused.text, 409, back)
    except SeamError as error:
        text = f"{found.branch} was not restored; the rescue is as it was: {error}"
        if isinstance(error, MaybeGiven):
            text = kept_elsewhere.UNSURE
        return answers.failed(request, text, 502, back)
    text = f"{found.branch} was restored as {name}. It is parked again."
    return answers.done(request, _regions(request, found.project), back, text)


def _regions(request: HttpRequest, project: Project) -> dict[str, str]:
    if not answers.is_htmx(request):
        return {}
    lab = wiring.lab()
    project = pages.project_of(project.pk)
    found = {"parked-list": _list(request, project, _page(request))}
    if fragments.here(request) == f"project:{project.pk}":
        page = {"page": {"project": project}}
        return {**found, "parked-count": render_to_string("kept/_parked_count.html", page)}
    context = {**pages.rescues(lab, project), "can_act": True}
    return {**found, "rescues": render_to_string("kept/_rescues.html", context)}


def _list(request: HttpRequest, project: Project, page: int) -> str:
    return pages.strip_html(wiring.lab(), project, page, may_act(request.user))


def _page(request: HttpRequest) -> int:
    text = request.POST.get("page") or request.GET.get("page", "1")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 1
