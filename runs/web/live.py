"""A page and its refresh: the same parts, and 304 before anything is rendered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse

from runs import wiring
from runs.web import answers, chrome, fragments, presence
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
    presence.note(topic)
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


@dataclass(frozen=True, slots=True)
class Parts:
    """What a list shows beside the frame: its templates, and how they get their facts.

    `seen` changes with what the parts show. Without it they are made anew whenever the frame may
    have changed; with it only then, for parts that ask git or a tracker.
    """

    files: Mapping[str, str]
    facts: Callable[[], Mapping[str, Any]]
    seen: str = ""


def listed(
    request: HttpRequest, template: str, parts: Parts, frame: Any, topic: str = "chrome"
) -> HttpResponse:
    """The page of a list, which refreshes from its own address with the same filter.

    `frame` holds the board. `topic` is what is pushed to it: a push shows what is newest, so a
    page on something else hears of the frame alone.
    """
    version = _tag(fragments.version_of("chrome", {"page": frame}), may_act(request.user))
    context = {
        "page": frame,
        "topic": topic,
        "version": f"{version}.{parts.seen}",
        "live_url": f"{request.path.removesuffix('/')}/live{_query(request)}",
        "chrome": chrome.of(frame.board, may_act(request.user), request),
        **parts.facts(),
    }
    return answers.fresh(render(request, template, context))


def relisted(request: HttpRequest, parts: Parts) -> HttpResponse:
    """The frame and the parts as they are now; of both only what has changed since, or 304."""
    can_act = may_act(request.user)
    version = _tag(fragments.version("chrome"), can_act)
    before, _, seen = request.headers.get("HX-PTag", "").partition(".")
    has_news = seen != parts.seen or (not parts.seen and before != version)
    if before == version and not has_news:
        return answers.fresh(HttpResponse(status=304))
    found = fragments.regions("chrome", can_act, request) or {}
    if has_news:
        context = {"can_act": can_act, "now": wiring.lab().now(), **parts.facts()}
        found |= {name: render_to_string(file, context) for name, file in parts.files.items()}
    headers = {"HX-PTag": f"{version}.{parts.seen}"}
    return answers.fresh(HttpResponse(answers.partials(found), headers=headers))


def _query(request: HttpRequest) -> str:
    return f"?{request.GET.urlencode()}" if request.GET else ""


def _tag(version: str, can_act: bool) -> str:
    return f"{version}{'a' if can_act else 'l'}"
