"""What the pages on a project's tracker show."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.http import urlencode

from runs.forges import recognise, switching, tracker_card
from runs.forges.forms import TrackerForm, choices, chosen_of
from runs.forges.recognise import Offer
from runs.models import Project, Settings
from runs.web import access, answers
from runs.web.forms import ProjectForm
from runs.wiring import lab
from trackers.base import Finding

NO_ACCOUNT = "Choose an account on a forge first. Nothing was tried."


def project_of(project_id: int) -> Project:
    """A project without its secrets, else 404."""
    found = Project.objects.filter(pk=project_id).defer("token", "hook_secret").first()
    if found is None:
        raise Http404("There is no such project.")
    return found


def page(
    request: HttpRequest,
    project: Project,
    form: TrackerForm,
    *,
    findings: Sequence[Finding] | None = None,
    status: int = 200,
) -> HttpResponse:
    """The page on a project's tracker."""
    facts = {
        "project": project,
        "card": tracker_card.of(lab(), project, Settings.current()),
        "form": form,
        "findings": findings,
        "kept": switching.KEPT,
        "claims": switching.CLAIMS,
    }
    return answers.fresh(render(request, "forges/tracker.html", facts, status=status))


def findings_alone(findings: Sequence[Finding], project: Project | None = None) -> HttpResponse:
    """What a connection test found, for htmx."""
    facts = {"findings": findings, "project": project}
    part = render_to_string("forges/_findings.html", facts)
    return answers.fresh(HttpResponse(answers.partials({"findings": part})))


def trackers_alone(request: HttpRequest, offer: Offer) -> HttpResponse:
    """The choice of trackers for a new project, for htmx."""
    source = request.POST.get("source", "")[:500]
    facts = new_project(request, offer, source, request.POST.get("tracker", ""))
    return answers.fresh(HttpResponse(render_to_string("forges/_trackers.html", facts)))


def new_project(request: HttpRequest, offer: Offer, source: str, chosen: str) -> dict[str, object]:
    """What the choice of trackers shows; the first account is proposed."""
    offered = choices(offer.forges, offer.has_beads) if offer.is_choice else []
    first = offered[1][0] if len(offered) > 1 else ""
    return {
        "offer": offer,
        "offered": [(value, words, value == (chosen or first)) for value, words in offered],
        "account_url": _account_url(request, offer, source),
    }


def tried(request: HttpRequest, form: ProjectForm, source: str, chosen: str) -> HttpResponse:
    """The answer to a connection test of a project that is not added yet."""
    offer = recognise.offer(lab(), source)
    meant = chosen_of(offer, chosen)
    forge = meant[1] if meant is not None else None
    if forge is None or offer.found is None:
        findings: Sequence[Finding] = [Finding("account", None, NO_ACCOUNT)]
    else:
        label = str(Project._meta.get_field("ready_label").get_default())
        findings = recognise.try_out(lab(), offer.found, forge, label)
    if answers.is_htmx(request):
        return findings_alone(findings)
    facts = {"form": form, "findings": findings, **new_project(request, offer, source, chosen)}
    return answers.fresh(render(request, "projects/new.html", facts))


def hook_address(request: HttpRequest, project: Project) -> str:
    """Where the forge sends its deliveries, as far as labsite knows how it is reached."""
    path = reverse("runs:hook", args=[project.slug])
    public = Settings.current().public_address.rstrip("/")
    return f"{public}{path}" if public else request.build_absolute_uri(path)


def _account_url(request: HttpRequest, offer: Offer, source: str) -> str:
    """Where an admin adds an account on the forge that was found, and comes back from."""
    if offer.found is None or not access.may_administer(request.user):
        return ""
    place = offer.found.place
    # Nothing is found behind an address that holds a password, so there is none in `source`.
    back = f"{reverse('runs:project-new')}?{urlencode({'source': source})}"
    told = {"kind": offer.found.kind, "name": place.host, "web": place.web, "next": back}
    return f"{reverse('runs:forge-new')}?{urlencode(told)}"
