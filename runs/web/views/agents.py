"""Agents on the settings page: what was found out about their programs, and asking again."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from runs import wiring
from runs.agents import checks
from runs.models import AgentProfile
from runs.web import answers, live
from runs.web.access import act, look

ASKED = "{name} is being checked. The card shows the answer in a moment."


@require_GET
@look
def settings_live(request: HttpRequest) -> HttpResponse:
    return live.refresh(request, "settings")


@require_POST
@act
def check(request: HttpRequest, profile_id: int) -> HttpResponse:
    """Have an agent's program, version and login checked now."""
    profile = get_object_or_404(AgentProfile, pk=profile_id)
    checks.ask_again(wiring.lab(), profile)
    return answers.done(request, {}, reverse("runs:settings"), ASKED.format(name=profile.name))
