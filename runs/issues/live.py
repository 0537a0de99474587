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
from runs.wiring import lab

ISSUE_LIST = {"issue-tabs": "issues/_tabs.html", "issue-rows": "issues/_rows.html"}
ISSUE = {
    "issue-state": "issues/_state.html",
    "issue-act": "issues/_act.html",
    "issue-thread": "issues/_thread.html",
    "issue-runs": "issues/_runs.html",
}
PULL_LIST = {"issue-tabs": "issues/_tabs.html", "pull-rows": "pulls/_rows.html"}
PULL_FRAME = {
    "pull-state": "pulls/_state.html",
    "pull-act": "pulls/_act.html",
    "pull-tabs": "pulls/_tabs.html",
}
PULL_MERGE = {"pull-merge": "pulls/_merge.html"}
PULL = {
    **PULL_FRAME,
    **PULL_MERGE,
    "pull-facts": "pulls/_facts.html",
    "pull-thread": "pulls/_thread.html",
    "pull-summary": "pulls/_summary.html",
}
PULL_COMMITS = {**PULL_FRAME, **PULL_MERGE, "pull-commits": "pulls/_commits.html"}
PULL_FILES = {**PULL_FRAME, **PULL_MERGE, "pull-moved": "pulls/_moved.html"}
PULL_COMMENT = {"comment-form": "pulls/_comment_form.html"}
LINE_COMMENT = {"line-form": "pulls/_line_form.html"}

COMMENT = {"comment-form": "issues/_comment_form.html"}
FORM = {"issue-form": "issues/_form.html"}

Facts = Callable[[], dict[str, Any]]


def page(
    request: HttpRequest,
    project: Project,
    template: str,
    facts: Facts,
    live: str,
    *more: Any,
    mark: str = "",
    topic: str = "",
    status: int | None = None,
) -> HttpResponse:
    """A page whose parts refresh from the address named `live`, unless its facts name another.

    The tag is read before the facts: a change in between is then shown by the next refresh.
    `mark` changes with what a page shows and no timeline tells; `topic` is what a page of its own
    listens to.
    """
    frame = {"topic": topic or topic_of(project), "version": _tag(request, project, mark)}
    query = f"?{request.GET.urlencode()}" if request.GET else ""
    frame["live_url"] = reverse(f"runs:{live}", args=[project.pk, *more]) + query
    status = status or (200 if request.method == "GET" else 422)
    return answers.fresh(render(request, template, {**frame, **facts()}, status=status))


def refresh(
    request: HttpRequest,
    project: Project,
    parts: Mapping[str, str],
    facts: Facts,
    mark: str | None = "",
) -> HttpResponse:
    """The parts as they are now, or 304 when nothing has changed since the tag that was sent.

    Without a mark (None) they are always sent.
    """
    if mark is None:
        found = regions(request, project, parts, facts)
        return answers.fresh(HttpResponse(answers.partials(found)))
    tag = _tag(request, project, mark)
    if request.headers.get("HX-PTag") == tag:
        return answers.fresh(HttpResponse(status=304))
    found = regions(request, project, parts, facts)
    return answers.fresh(HttpResponse(answers.partials(found), headers={"HX-PTag": tag}))


def changed(
    request: HttpRequest,
    project: Project,
    parts: Mapping[str, str],
    facts: Facts,
    back: str,
    text: str = "",
) -> HttpResponse:
    """The answer to an act that worked: the parts as they are now, or 303 back."""
    return answers.done(request, regions(request, project, parts, facts), back, text)


def refused(
    request: HttpRequest, part: Mapping[str, str], context: dict[str, Any], text: str
) -> HttpResponse:
    """A form that could not be kept, for htmx: the banner, and the form with its errors."""
    found = {
        name: render_to_string(file, {**context, "can_act": True}) for name, file in part.items()
    }
    regions = {"banner": answers.banner(text), **found}
    return answers.fresh(HttpResponse(answers.partials(regions), status=422))


def topic_of(project: Project) -> str:
    """What these pages listen to."""
    return f"issues:{project.pk}"


def _tag(request: HttpRequest, project: Project, mark: str = "") -> str:
    """Changes with whatever is told of the project, and with what the reader may do."""
    rights = "a" if may_act(request.user) else "l"
    return f"{fragments.version(topic_of(project))}{mark}{rights}"


def regions(
    request: HttpRequest, project: Project, parts: Mapping[str, str], facts: Facts
) -> dict[str, str]:
    """The frame and these parts, by the ids of their elements."""
    can_act = may_act(request.user)
    frame = fragments.regions(topic_of(project), can_act, request) or {}
    context = {**facts(), "can_act": can_act, "now": lab().now()}
    found = {name: render_to_string(file, context) for name, file in parts.items()}
    # Facts may name regions of their own: parts of a page of which there are many.
    for name, (file, more) in context.pop("regions", {}).items():
        found[name] = render_to_string(file, {**context, **more})
    return {**frame, **found}
