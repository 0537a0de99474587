"""The live parts of a page: declared once, and rendered alike by the page, its refresh and the
answer to an act. A refresh says 304 before anything is rendered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from runs import wiring
from runs.models import Project
from runs.web import answers, fragments, presence
from runs.web.access import may_act

Facts = Callable[[], Mapping[str, Any]]
Seen = str | Callable[[], str] | None


@dataclass(frozen=True, slots=True)
class Live:
    """What of a page is live: the parts that `fragments` lists for its topic, and its own.

    `files` are its own templates by the ids of their elements; they get `facts`, which may name
    further ones under `regions`. They are made anew whenever the topic may have changed, and
    whenever `seen` has: by what they show and no timeline tells. None: they change all the time. A
    function is asked only once the topic may have changed.
    `is_asked`: they ask git or a tracker, so they are made anew only when `seen` has changed.
    `pushed` is what the page listens to where that is more than its topic. `loaded` spares the
    query of a frame that the facts hold already.
    """

    topic: str
    files: Mapping[str, str] = field(default_factory=dict)
    facts: Facts = dict
    seen: Seen = ""
    is_asked: bool = False
    pushed: str = ""
    loaded: Any = None


def of_project(
    project: Project,
    files: Mapping[str, str],
    facts: Facts,
    seen: Seen = "",
    pushed: str = "",
) -> Live:
    """What is live of a page below a project: whatever is told of the project may change it."""
    return Live(f"issues:{project.pk}", files, facts, seen, pushed=pushed)


def page(
    request: HttpRequest,
    template: str,
    live: Live,
    address: str,
    *args: int,
    status: int | None = None,
    **more: Any,
) -> HttpResponse:
    """The whole page; its parts refresh from `address`. Raises Http404 when what it is about is gone."""
    context = {**shown(request, live, address, *args), **more}
    status = status or (200 if request.method == "GET" else 422)
    return answers.fresh(render(request, template, context, status=status))


def shown(request: HttpRequest, live: Live, address: str, *args: int) -> dict[str, Any]:
    """What the template of a live page needs. Raises Http404 when what it is about is gone.

    Its tag comes from what is loaded first: a change in between costs one refresh.
    """
    can_act = may_act(request.user)
    frame = fragments.page_context(live.topic, can_act, request, live.loaded)
    if frame is None:
        raise Http404
    # What its own parts show may depend on the filter in the address.
    query = f"?{request.GET.urlencode()}" if live.files and request.GET else ""
    return {
        **frame,
        "topic": live.pushed or live.topic,
        "asks": fragments.asks(live.topic, frame) or ("own" if live.files else ""),
        "version": _tag(fragments.version_of(live.topic, frame) + _rights(request), _seen(live)),
        "live_url": reverse(address, args=args) + query,
        **live.facts(),
    }


def refresh(request: HttpRequest, live: Live) -> HttpResponse:
    """The parts as they are now; of its own only those that have changed, or 304."""
    presence.note(live.topic)
    can_act = may_act(request.user)
    version = version_now(request, live.topic)
    before, _, seen = request.headers.get("HX-PTag", "").partition(".")
    if before == version and callable(live.seen):
        return answers.fresh(HttpResponse(status=304))
    shows = _seen(live)
    has_news = seen != shows or (before != version and not live.is_asked)
    if before == version and not has_news:
        return answers.fresh(HttpResponse(status=304))
    found = fragments.regions(live.topic, can_act, request)
    if found is None and not answers.is_htmx(request):
        raise Http404
    if found is None:
        text = "What this page shows is no longer there. Go to the overview."
        return answers.failed(request, text, 404, reverse("runs:overview"))
    if has_news:
        found |= _own(live, can_act)
    headers = {} if shows is None else {"HX-PTag": _tag(version, shows)}
    return answers.fresh(HttpResponse(answers.partials(found), headers=headers))


def regions(request: HttpRequest, live: Live) -> dict[str, str]:
    """All parts as they are now, by the ids of their elements."""
    can_act = may_act(request.user)
    return (fragments.regions(live.topic, can_act, request) or {}) | _own(live, can_act)


def changed(request: HttpRequest, live: Live, back: str, text: str = "") -> HttpResponse:
    """The answer to an act that worked: the parts as they are now, or 303 back."""
    return answers.done(request, regions(request, live), back, text)


def refused(
    request: HttpRequest, files: Mapping[str, str], context: dict[str, Any], text: str
) -> HttpResponse:
    """A form that could not be kept, for htmx: the banner, and the form with its errors."""
    found = fragments.rendered(files, {**context, "can_act": True})
    answer = answers.partials({"banner": answers.banner(text), **found})
    return answers.fresh(HttpResponse(answer, status=422))


def version_now(request: HttpRequest, topic: str) -> str:
    """Changes whenever the parts of a topic may have, and with what the reader may do."""
    return fragments.version(topic) + _rights(request)


def _own(live: Live, can_act: bool) -> dict[str, str]:
    if not live.files:
        return {}
    context = {**live.facts(), "can_act": can_act, "now": wiring.lab().now()}
    found = fragments.rendered(live.files, context)
    # Parts of a page of which there are many.
    for name, (file, more) in context.pop("regions", {}).items():
        found |= fragments.rendered({name: file}, {**context, **more})
    return found


def _seen(live: Live) -> str | None:
    return live.seen() if callable(live.seen) else live.seen


def _rights(request: HttpRequest) -> str:
    return "a" if may_act(request.user) else "l"


def _tag(version: str, seen: str | None) -> str:
    return f"{version}.{seen}" if seen else version
