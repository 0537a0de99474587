"""The live parts of the issue and pull request pages: what the page and its refresh both render."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse

from runs.models import Project
from runs.web import answers, fragments
from runs.web.access import may_act

ISSUE_LIST = {"issue-tabs": "issues/_tabs.html", "issue-rows": "issues/_rows.html"}
ISSUE = {
    "issue-state": "issues/_state.html",
    "issue-act": "issues/_act.html",
    "issue-thread": "issues/_thread.html",
    "issue-runs": "issues/_runs.html",
}
PULL_LIST = {"issue-tabs": "issues/_tabs.html", "pull-rows": "pulls/_rows.html"}
PULL = {
    "pull-state": "pulls/_state.html",
    "pull-act": "pulls/_act.html",
    "pull-facts": "pulls/_facts.html",
}

Facts = Callable[[], dict[str, Any]]


def page(
    request: HttpRequest, project: Project, template: str, facts: Facts, live: str, *more: Any
) -> HttpResponse:
    """A page whose parts refresh from the address named `live`.

    The tag is read before the facts: a change in between is then shown by the next refresh.
    """
    frame = {"topic": topic_of(project), "version": _tag(request, project)}
    query = f"?{request.GET.urlencode()}" if request.GET else ""
    frame["live_url"] = reverse(f"runs:{live}", args=[project.pk, *more]) + query
    status = 200 if request.method == "GET" else 422
    return answers.fresh(render(request, template, {**facts(), **frame}, status=status))


def refresh(
    request: HttpRequest, project: Project, parts: Mapping[str, str], facts: Facts
) -> HttpResponse:
    """The parts as they are now, or 304 when nothing has changed since the tag that was sent."""
    tag = _tag(request, project)
    if request.headers.get("HX-PTag") == tag:
        return answers.fresh(HttpResponse(status=304))
    can_act = may_act(request.user)
    found = fragments.regions(topic_of(project), can_act, request) or {}
    context = {**facts(), "can_act": can_act}
    mine = {name: render_to_string(file, context) for name, file in parts.items()}
    answer = HttpResponse(answers.partials({**found, **mine}), headers={"HX-PTag": tag})
    return answers.fresh(answer)


def topic_of(project: Project) -> str:
    """What these pages listen to."""
    return f"issues:{project.pk}"


def _tag(request: HttpRequest, project: Project) -> str:
    """Changes with whatever is told of the project, and with what the reader may do."""
    return f"{fragments.version(topic_of(project))}{'a' if may_act(request.user) else 'l'}"
