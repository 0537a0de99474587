"""A held agent is tried again before its time, because a person says so."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_POST

from runs.accounts import holds
from runs.models import AgentProfile
from runs.web import answers, fragments
from runs.web.access import act, username
from runs.wiring import lab

DONE = "{name} is tried again. Runs that wait for it go on as slots are free."
NOT_HELD = "{name} was not held any more. Nothing was changed."


@require_POST
@act
def try_again(request: HttpRequest, profile_id: int) -> HttpResponse:
    """Release an agent now; runs that wait for it go on."""
    profile = get_object_or_404(AgentProfile, pk=profile_id)
    was = holds.try_again(lab(), profile, by=username(request))
    text = (DONE if was else NOT_HELD).format(name=profile.name)
    regions = {}
    if answers.is_htmx(request):
        regions = fragments.regions(fragments.here(request), True, request) or {}
    return answers.done(request, regions, reverse("runs:overview"), text)
