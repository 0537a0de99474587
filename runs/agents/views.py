"""Agents on the settings page: what was found out about their programs, asking again, trying one."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs import wiring
from runs.agents import checks, trial
from runs.models import AgentProfile, AgentTrial
from runs.web import answers, live
from runs.web.access import act, administer, look, username
from runs.web.live import Live

STOPPED = "The trial is being stopped."
ASKED = "{name} is being checked. The card shows the answer in a moment."


@require_GET
@look
def settings_live(request: HttpRequest) -> HttpResponse:
    return live.refresh(request, Live("settings"))


@require_POST
@act
def check(request: HttpRequest, profile_id: int) -> HttpResponse:
    """Have an agent's program, version and login checked now."""
    profile = get_object_or_404(AgentProfile, pk=profile_id)
    checks.ask_again(wiring.lab(), profile)
    return answers.done(request, {}, reverse("runs:settings"), ASKED.format(name=profile.name))


@require_http_methods(["GET", "POST"])
@act
def try_out(request: HttpRequest, profile_id: int) -> HttpResponseBase:
    """Say what a trial costs, to operators too; an admin may begin it from there."""
    if request.method == "POST":
        return _begin(request, profile_id)
    profile = get_object_or_404(AgentProfile, pk=profile_id)
    return answers.fresh(render(request, "agents/try.html", {"profile": profile}))


@administer
def _begin(request: HttpRequest, profile_id: int) -> HttpResponse:
    """Begin a trial, or lead to the one that is open."""
    profile = get_object_or_404(AgentProfile, pk=profile_id)
    made = trial.ask(wiring.lab(), profile, username(request))
    return answers.elsewhere(request, reverse("runs:agent-trial", args=[made.pk]))


@require_GET
@look
def trial_of(request: HttpRequest, trial_id: int) -> HttpResponse:
    shown = Live(f"trial:{trial_id}")
    return live.page(request, "agents/trial.html", shown, "runs:agent-trial-live", trial_id)


@require_GET
@look
def trial_live(request: HttpRequest, trial_id: int) -> HttpResponse:
    return live.refresh(request, Live(f"trial:{trial_id}"))


@require_POST
@act
def trial_stop(request: HttpRequest, trial_id: int) -> HttpResponse:
    """End a trial that is open."""
    found = get_object_or_404(AgentTrial, pk=trial_id)
    trial.stop(wiring.lab(), found, username(request))
    return answers.done(request, {}, reverse("runs:agent-trial", args=[trial_id]), STOPPED)
