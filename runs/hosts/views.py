"""The page on hosts, and what people do there: drain, resume, give up, remove."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs import wiring
from runs.hosts import acts, facts, queries
from runs.models import Host, Settings
from runs.web import answers
from runs.web.access import act, administer, look, may_act, may_administer, username

DRAINED = "{} takes nothing new. What runs there goes on to its end."
RESUMED = "{} takes work again."
ALREADY = "{} did so already. Nothing was changed."
GIVEN_UP = (
    "Gave up {} on {}. When that machine is back, it ends their sessions and keeps their work."
)
REMOVED = "Host {} was removed."


@require_GET
@look
def hosts(request: HttpRequest) -> HttpResponse:
    """Every host: how it stands, how full it is, when it was heard last."""
    lab = wiring.lab()
    shown = {
        "hosts": queries.all_of(lab),
        "may_drain": may_act(request.user),
        "may_remove": may_administer(request.user),
        "may_join": bool(lab.machine.identity),
    }
    return render(request, "hosts/list.html", shown)


@require_POST
@act
def drain(request: HttpRequest, host_id: int) -> HttpResponse:
    """Have a host take nothing new."""
    host = _host(host_id)
    changed = acts.drain(wiring.lab(), host, username(request))
    return _done(request, (DRAINED if changed else ALREADY).format(host.name))


@require_POST
@act
def resume(request: HttpRequest, host_id: int) -> HttpResponse:
    """Have a drained host take work again."""
    host = _host(host_id)
    changed = acts.resume(wiring.lab(), host, username(request))
    return _done(request, (RESUMED if changed else ALREADY).format(host.name))


@require_http_methods(["GET", "POST"])
@act
def give_up(request: HttpRequest, host_id: int) -> HttpResponse:
    """Ask, then end what runs on a silent host."""
    host = _host(host_id)
    if request.method == "GET":
        return _ask(request, host, "hosts/give_up.html")
    try:
        ended = acts.give_up(wiring.lab(), host, username(request))
    except acts.HostRefused as refused:
        return _ask(request, host, "hosts/give_up.html", refused.text)
    runs = "1 run" if ended == 1 else f"{ended} runs"
    return _done(request, GIVEN_UP.format(runs, host.name))


@require_http_methods(["GET", "POST"])
@administer
def remove(request: HttpRequest, host_id: int) -> HttpResponse:
    """Ask, then take a host out; with what runs there only where that was ticked."""
    host = _host(host_id)
    if request.method == "GET":
        return _ask(request, host, "hosts/remove.html")
    and_runs = request.POST.get("and_runs") == "on"
    try:
        acts.remove(wiring.lab(), host, username(request), and_runs=and_runs)
    except acts.HostRefused as refused:
        return _ask(request, host, "hosts/remove.html", refused.text)
    return _done(request, REMOVED.format(host.name))


def _host(host_id: int) -> Host:
    return get_object_or_404(Host.objects.with_silence(), pk=host_id, removed_at=None)


def _ask(request: HttpRequest, host: Host, template: str, refusal: str = "") -> HttpResponse:
    shown = {
        "host": host,
        "state": facts.state_of(host, Settings.current()),
        "runs": list(acts.active_on(host.name)[:50]),
        "refusal": refusal,
    }
    return render(request, template, shown, status=409 if refusal else 200)


def _done(request: HttpRequest, text: str) -> HttpResponse:
    return answers.done(request, {}, reverse("runs:hosts"), text)
