"""A page and its refresh: the same parts, and 304 before anything is rendered (LAB-130)."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from runs.web import answers, fragments
from runs.web.access import may_act


def page(
    request: HttpRequest, template: str, topic: str, address: str, *args: int, **more: object
) -> HttpResponse:
    """The whole page. Raises Http404 when what it is about is gone."""
    context = facts(request, topic, address, *args)
    return answers.fresh(render(request, template, {**context, **more}))


def facts(request: HttpRequest, topic: str, address: str, *args: int) -> dict[str, Any]:
    """What the template of a live page needs. Raises Http404 when what it is about is gone.

    Its tag comes from the facts that were loaded first: a change in between costs one refresh.
    """
    can_act = may_act(request.user)
    context = fragments.page_context(topic, can_act, request)
    if context is None:
        raise Http404
    frame = {"topic": topic, "live_url": reverse(address, args=args)}
    frame["version"] = _tag(fragments.version_of(topic, context), can_act)
    return {**context, **frame}


def refresh(request: HttpRequest, topic: str) -> HttpResponse:
    """The parts as they are now, or 304 when nothing has changed since the tag that was sent."""
    can_act = may_act(request.user)
    tag = _tag(fragments.version(topic), can_act)
    if request.headers.get("HX-PTag") == tag:
        return answers.fresh(HttpResponse(status=304))
    regions = fragments.regions(topic, can_act, request)
    if regions is None and not answers.is_htmx(request):
        raise Http404
    if regions is None:
        text = "What this page shows is no longer there. Go to the overview."
        return answers.failed(request, text, 404, reverse("runs:overview"))
    answer = HttpResponse(answers.partials(regions), headers={"HX-PTag": tag})
    return answers.fresh(answer)


def _tag(version: str, can_act: bool) -> str:
    return f"{version}{'a' if can_act else 'l'}"
