"""What of History is no page: downloads, the feed, badges."""

from __future__ import annotations

import hashlib

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotModified
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_safe

from runs import wiring
from runs.history import badge, export, feed, filters
from runs.models import Project
from runs.overview import queries
from runs.web import answers
from runs.web.access import act, look, may_look, username

HOW_TO_ASK = (
    "This feed asks for a personal token, which you make under Account. Give it as the password of "
    "your feed reader or, if it may look only, as token= in the address.\n"
)


@require_GET
@look
def download(request: HttpRequest, kind: str) -> HttpResponseBase:
    """All runs of the filters as a file. What makes no sense in them is refused: nothing is left out."""
    lab = wiring.lab()
    asked = filters.read(request.GET.dict())
    if asked.wrong:
        return _refused(asked)
    at = asked.place.at or lab.now()
    url = request.build_absolute_uri("/runs/")
    pieces = export.rows(asked.wanted, at, url, lab.mask)
    made = export.as_csv(pieces) if kind == "csv" else export.as_ndjson(pieces)
    return answers.download(request, made, export.KINDS[kind], f"runs-{at:%Y-%m-%d}.{kind}")


def _refused(asked: filters.Asked) -> HttpResponse:
    said = "".join(f"{name}: {text}\n" for name, text in asked.wrong.items())
    return answers.fresh(HttpResponse(said, status=400, content_type="text/plain"))


@login_not_required
@require_safe
def atom(request: HttpRequest) -> HttpResponse:
    """The feed of the filters. Asks for a token, also of whoever is logged in."""
    lab = wiring.lab()
    if not feed.may_read(lab, request):
        answer = HttpResponse(HOW_TO_ASK, status=401, content_type="text/plain")
        answer["WWW-Authenticate"] = 'Basic realm="labsite feed", charset="UTF-8"'
        return answers.fresh(answer)
    asked = filters.read(request.GET.dict())
    if asked.wrong:
        return _refused(asked)
    rows = Project.objects.filter(pk=asked.wanted.project or 0)
    name = rows.values_list("name", flat=True).first() or ""
    words = filters.words(asked.wanted, name)
    page = reverse("runs:history") + filters.address(asked.wanted)
    site = f"{request.scheme}://{request.get_host()}"
    text = feed.atom(lab, feed.newest(asked.wanted), words, page, site)
    answer = HttpResponse(text, content_type="application/atom+xml; charset=utf-8")
    answer["Cache-Control"] = "private, max-age=60"
    return answer


@login_not_required
@require_safe
def badge_svg(request: HttpRequest, project_id: int) -> HttpResponse:
    """The badge of a project. For a stranger one that is not public is not there."""
    found = Project.objects.filter(pk=project_id).only("pk", "is_badge_public").first()
    if found is None or not (found.is_badge_public or may_look(request.user)):
        raise Http404
    shown = badge.of(found, request.GET.get("show", ""), wiring.lab().now())
    text = render_to_string("history/badge.svg", {"badge": shown})
    tag = f'"{hashlib.sha256(text.encode()).hexdigest()[:20]}"'
    is_same = request.headers.get("If-None-Match") == tag
    answer = HttpResponseNotModified() if is_same else HttpResponse(text)
    if not is_same:
        answer["Content-Type"] = "image/svg+xml"
    answer["ETag"] = tag
    who = "public" if found.is_badge_public else "private"
    answer["Cache-Control"] = f"{who}, max-age=120"
    return answer


@require_http_methods(["GET", "POST"])
@look
def badge_page(request: HttpRequest, project_id: int) -> HttpResponseBase:
    """The badge with what to write into a README, and whether everybody may see it."""
    if request.method == "POST":
        return _publish(request, project_id)
    project = get_object_or_404(Project.objects.defer("token"), pk=project_id)
    url = request.build_absolute_uri(reverse("runs:badge-svg", args=[project_id]))
    facts = {"project": project, "url": url, "page": queries.frame(wiring.lab())}
    return answers.fresh(render(request, "history/badge.html", facts))


@act
def _publish(request: HttpRequest, project_id: int) -> HttpResponseBase:
    project = get_object_or_404(Project.objects.defer("token"), pk=project_id)
    is_public = bool(request.POST.get("is_public"))
    badge.publish(wiring.lab(), project, is_public=is_public, by=username(request))
    said = "Everybody who has its address sees the badge now."
    text = said if is_public else "Only people who are logged in see the badge now."
    back = reverse("runs:badge", args=[project_id])
    if answers.is_htmx(request):
        return answers.elsewhere(request, back)
    return answers.done(request, {}, back, text)
