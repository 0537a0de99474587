"""One project: its page, adding it, what to do when its clone failed, and removing it."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from typing import Any

from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs import wiring
from runs.agents import checks
from runs.agents import pages as agent_pages
from runs.core.ports import SeamError
from runs.core.states import TrackerKind
from runs.forges import recognise, tracker_cache, tracker_pages
from runs.forges.forms import chosen_of
from runs.forges.recognise import Offer
from runs.history import plots
from runs.kept import removal, removal_rules
from runs.models import Project
from runs.overview import board, queries
from runs.people.stepup import confirmed
from runs.projects import acts
from runs.settings import edits
from runs.web import answers, chrome, fragments, live
from runs.web.access import act, look, username
from runs.web.forms import ProjectForm
from runs.web.live import Live
from runs.web.refusals import at_fields

WHERE = "Say where the issues of this repository are."
WHERE_ELSE = "Choose where the issues are: what you chose is not offered for this repository."


@require_GET
@look
def project(request: HttpRequest, project_id: int) -> HttpResponse:
    tracker_cache.look_at(wiring.lab(), project_id)
    page = queries.project(wiring.lab(), project_id)
    shown = _live(project_id, page)
    return live.page(request, "projects/page.html", shown, "runs:project-live", project_id)


@require_GET
@look
def project_live(request: HttpRequest, project_id: int) -> HttpResponse:
    return live.refresh(request, _live(project_id))


def _live(project_id: int, page: queries.ProjectPage | None = None) -> Live:
    """The parts that are pushed, and the plots: asked for and sent only when they show something else."""

    @functools.cache
    def numbers() -> Mapping[str, Any]:
        now, rows = wiring.lab().now(), Project.objects.defer("token", "hook_secret")
        found = page.project if page is not None else rows.filter(pk=project_id).first()
        return {**plots.weeks(found, now), **plots.spending(now, found)} if found else {}

    return Live(
        f"project:{project_id}",
        {"project-plots": "history/_weeks"},
        lambda: {"numbers": numbers()},
        lambda: hashlib.sha256(repr(numbers()).encode()).hexdigest()[:12],
        is_asked=True,
        loaded=page,
    )


@require_http_methods(["GET", "POST"])
@act
def project_new(request: HttpRequest) -> HttpResponse:
    """Add a project; what is wrong is said at its field, and then nothing was made."""
    form = ProjectForm(
        request.POST or None, initial={"source": request.GET.get("source", "")[:500]}
    )
    source = str(form["source"].value() or "")[:500]
    # A link that somebody follows makes labsite ask nobody.
    may_ask = request.method == "POST"
    offer = recognise.offer(wiring.lab(), source, may_ask=may_ask) if source else Offer()
    chosen = request.POST.get("tracker", "")
    if request.method == "POST" and form.is_valid():
        added = _added(request, form, offer, chosen)
        if added is not None:
            return answers.elsewhere(request, reverse("runs:project", args=[added.pk]))
    facts = tracker_pages.new_project(request, offer, source, chosen)
    facts |= _frame_and_agent(request)
    nothing = "Nothing was added."
    return form_page(request, form, "projects/new.html", "project-form", nothing, **facts)


def _frame_and_agent(request: HttpRequest) -> dict[str, object]:
    """The frame, and the agent that a new project would use with what is known against it."""
    lab = wiring.lab()
    picture = board.load(lab)
    agent = agent_pages.of_new_sessions(lab, picture.facts.settings)
    if agent is not None:
        checks.ask_when_old(lab, agent.profile)
    return {"agent": agent, "chrome": chrome.of(picture, True, request)}


def _added(request: HttpRequest, form: ProjectForm, offer: Offer, chosen: str) -> Project | None:
    """The new project; None with the reason at its field. Where there is a choice, it is asked."""
    meant = chosen_of(offer, chosen) if offer.is_choice else (TrackerKind.BUILTIN.value, None)
    if meant is None:
        form.add_error(None, WHERE if not chosen else WHERE_ELSE)
        return None
    tracker, forge = meant
    try:
        return acts.add(
            wiring.lab(), **form.cleaned_data, tracker=tracker, forge=forge, by=username(request)
        )
    except acts.ProjectRefused as refused:
        at_fields(form, refused)
        return None


@require_POST
@act
def project_retry(request: HttpRequest, project_id: int) -> HttpResponse:
    """Clone a failed project again."""
    found = get_object_or_404(Project, pk=project_id)
    acts.retry(wiring.lab(), found, username(request))
    back = reverse("runs:project", args=[project_id])
    regions = fragments.regions(f"project:{project_id}", True, request) or {}
    return answers.done(request, regions, back)


@require_http_methods(["GET", "POST"])
@act
@confirmed
def project_remove(request: HttpRequest, project_id: int) -> HttpResponse:
    """What a project holds and what becomes of it; then have it removed."""
    found = get_object_or_404(Project, pk=project_id)
    lab, here = wiring.lab(), reverse("runs:project-remove", args=[project_id])
    if request.method == "POST":
        try:
            removal.remove(lab, found, username(request))
        except removal.RemovalRefused as refused:
            return answers.failed(request, refused.text, 409, here)
        except SeamError as error:
            text = (
                f"Whether {found.name} is in use could not be told: {error}. Nothing was removed."
            )
            return answers.failed(request, text, 502, here)
        return answers.elsewhere(request, reverse("runs:overview"))
    try:
        refusal = removal_rules.refusal(found.name, removal.to_stop(lab, found))
    except SeamError as error:
        refusal = f"Whether {found.name} is in use could not be told: {error}."
    facts = {"project": found, "held": removal.holdings(lab, found), "refusal": refusal}
    return answers.fresh(render(request, "projects/remove.html", facts))


FORMS = {"project-form": "projects/_form.html", "settings-form": "projects/_settings_form.html"}


def form_page(
    request: HttpRequest,
    form: Form,
    template: str,
    name: str,
    nothing: str,
    **context: object,
) -> HttpResponse:
    """The page with the form; a wrong one with status 400, for htmx as its own part."""
    is_met = getattr(form, "conflict", None) is not None
    status = 409 if is_met else 400 if form.is_bound else 200
    facts = {"form": form, **context}
    if not answers.is_htmx(request) or not form.is_bound:
        return answers.fresh(render(request, template, facts, status=status))
    said = " ".join(str(error) for errors in form.errors.values() for error in errors)
    parts = {
        "banner": answers.banner(edits.TEXT if is_met else f"{nothing} {said}"),
        name: render_to_string(FORMS[name], {**facts, "can_act": True}),
    }
    return answers.fresh(HttpResponse(answers.partials(parts), status=status))
