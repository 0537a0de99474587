"""A project's tracker: chosen, tested, its ready label made, its webhook given a secret."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from runs import wiring
from runs.forges import acts, hooks, recognise, switching, tracker_pages
from runs.forges.forms import TrackerForm
from runs.forges.hook_rules import EVENTS
from runs.models import Forge
from runs.people.stepup import confirmed
from runs.settings import edit_forms
from runs.web import answers
from runs.web.access import act, administer, look, username
from runs.web.forms import ProjectForm
from trackers.base import Refused, TrackerError

SAVED = "The tracker of this project was changed."
SAME = "Nothing was changed: it was so already."
SET_UP = "The webhook to {address} was set up. Deliveries are listed on this page."
NOT_SET_UP = (
    "The secret is the one that it was. A webhook that the forge had before may be gone or no longer "
    "fit; until something is delivered, labsite asks the forge as often as without one. "
    "Set it up again, or look at the webhooks in the repository's settings on the forge."
)
MADE = "The label {label} is there. Issues that carry it can be started."


@never_cache
@require_http_methods(["GET", "POST"])
@look
def tracker(request: HttpRequest, project_id: int) -> HttpResponseBase:
    """Show where the issues are; change it for whoever may act."""
    project = tracker_pages.project_of(project_id)
    if request.method == "GET":
        return tracker_pages.page(request, project, TrackerForm(project, _forges()))
    return _changed(request, project_id=project_id)


@act
def _changed(request: HttpRequest, project_id: int) -> HttpResponse:
    project = tracker_pages.project_of(project_id)

    def now() -> TrackerForm:
        return TrackerForm(tracker_pages.project_of(project_id), _forges())

    form = TrackerForm(project, _forges(), edit_forms.chosen(request.POST, now()))

    def store() -> bool:
        who, seen = username(request), form.cleaned_data["seen"]
        return switching.choose(wiring.lab(), project, form.wanted(), by=who, seen=seen)

    told = edit_forms.told_as("its ", project=project_id)
    changed = edit_forms.stored(form, store, now, told)
    if changed is not None:
        back = reverse("runs:tracker", args=[project_id])
        level: answers.Level = "success" if changed else "info"
        return answers.done(request, {}, back, SAVED if changed else SAME, level)
    return tracker_pages.page(request, project, form, status=409 if form.conflict else 400)


@require_POST
@act
def test(request: HttpRequest, project_id: int) -> HttpResponse:
    """Try what labsite needs of the tracker; nothing is changed there."""
    project = tracker_pages.project_of(project_id)
    findings = acts.examine(wiring.lab(), project)
    if answers.is_htmx(request):
        return tracker_pages.findings_alone(findings, project)
    form = TrackerForm(project, _forges())
    return tracker_pages.page(request, project, form, findings=findings)


@require_POST
@act
def label(request: HttpRequest, project_id: int) -> HttpResponse:
    """Make the ready label on the tracker; no error when it is there."""
    project = tracker_pages.project_of(project_id)
    back = reverse("runs:tracker", args=[project_id])
    try:
        acts.create_ready_label(wiring.lab(), project, by=username(request))
    except TrackerError as error:
        text = f"The label was not made: {error} Nothing else was changed."
        return answers.failed(request, text, 409 if isinstance(error, Refused) else 502, back)
    return answers.done(request, {}, back, MADE.format(label=project.ready_label))


@never_cache
@require_http_methods(["GET", "POST"])
@administer
@confirmed
def secret(request: HttpRequest, project_id: int) -> HttpResponse:
    """Make a secret for the webhook. The answer shows it, and nothing can show it again."""
    project = tracker_pages.project_of(project_id)
    facts = {
        "project": project,
        "hook_address": tracker_pages.hook_address(request, project),
        "events": EVENTS.get(project.tracker, ()),
    }
    if request.method == "POST":
        facts["secret"] = hooks.make_secret(wiring.lab(), project, by=username(request))
    return answers.fresh(render(request, "forges/secret.html", facts))


@require_POST
@administer
@confirmed
def hook_set_up(request: HttpRequest, project_id: int) -> HttpResponse:
    """Have the forge make the webhook; where its API does not let the account, it is said why."""
    project = tracker_pages.project_of(project_id)
    address = tracker_pages.hook_address(request, project)
    back = reverse("runs:hook-secret", args=[project_id])
    try:
        hooks.set_up(wiring.lab(), project, address, by=username(request))
    except TrackerError as error:
        text = f"The webhook was not set up: {error} {NOT_SET_UP}"
        return answers.failed(request, text, 409 if isinstance(error, Refused) else 502, back)
    back = reverse("runs:project", args=[project_id])
    return answers.done(request, {}, back, SET_UP.format(address=address))


@require_POST
@act
def trackers_of_new(request: HttpRequest) -> HttpResponse:
    """The trackers that a repository can have, for the form of a new project."""
    offer = recognise.offer(wiring.lab(), request.POST.get("source", "")[:500])
    return tracker_pages.trackers_alone(request, offer)


@require_POST
@act
def test_of_new(request: HttpRequest) -> HttpResponse:
    """The connection test of a project that is not added yet; nothing is kept."""
    form = ProjectForm(request.POST)
    form.is_valid()
    source = request.POST.get("source", "")[:500]
    return tracker_pages.tried(request, form, source, request.POST.get("tracker", ""))


def _forges() -> list[Forge]:
    return list(Forge.objects.all())
