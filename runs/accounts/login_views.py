"""Logging an agent in: its program's link, and the code that a person brings back."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_POST

from runs import wiring
from runs.accounts import logins
from runs.accounts.login_rules import LoginState
from runs.models import AgentProfile, LoginAttempt
from runs.web import answers
from runs.web.access import act, username

DONE = "{name} is logged in. New sessions start again."
NOT_OPEN = "No log-in of this agent is open. Nothing was changed. Begin one."
ENDED = "The log-in was ended. Nothing else was changed."


@never_cache
@require_GET
@act
def login_of(request: HttpRequest, profile_id: int) -> HttpResponse:
    """Where the log-in of an agent stands, read from its program now."""
    profile = get_object_or_404(AgentProfile, pk=profile_id)
    attempt = logins.current(profile)
    if attempt is not None:
        attempt = logins.look(wiring.lab(), attempt)
    last = attempt or LoginAttempt.objects.filter(profile=profile).first()
    facts = {"profile": profile, "attempt": attempt if attempt and not attempt.is_over else None}
    return render(request, "agents/login.html", {**facts, "last": last})


@require_POST
@act
def begin(request: HttpRequest, profile_id: int) -> HttpResponse:
    """Start the agent's own log-in program."""
    profile = get_object_or_404(AgentProfile, pk=profile_id)
    try:
        attempt = logins.begin(wiring.lab(), profile, username(request))
    except logins.LoginRefused as refused:
        return answers.failed(request, str(refused), 409, _page(profile_id))
    if attempt.is_over:
        return answers.failed(request, attempt.error, 500, _page(profile_id))
    return answers.elsewhere(request, _page(profile_id))


@sensitive_post_parameters()
@require_POST
@act
def code(request: HttpRequest, profile_id: int) -> HttpResponse:
    """Give the program the code, and wait up to 20 seconds for what comes of it."""
    profile = get_object_or_404(AgentProfile, pk=profile_id)
    attempt = logins.current(profile)
    if attempt is None:
        return answers.failed(request, NOT_OPEN, 409, _page(profile_id))
    given = request.POST.get("code", "")
    try:
        attempt = logins.paste(wiring.lab(), attempt, given, username(request))
    except logins.LoginRefused as refused:
        return answers.failed(request, str(refused), 400, _page(profile_id))
    if attempt.state != LoginState.DONE:
        return answers.failed(request, attempt.error, 409, _page(profile_id))
    return answers.done(request, {}, _page(profile_id), DONE.format(name=profile.name))


@require_POST
@act
def end(request: HttpRequest, profile_id: int) -> HttpResponse:
    """End an open log-in."""
    profile = get_object_or_404(AgentProfile, pk=profile_id)
    attempt = logins.current(profile)
    if attempt is None:
        return answers.failed(request, NOT_OPEN, 409, _page(profile_id))
    logins.cancel(wiring.lab(), attempt, username(request))
    return answers.done(request, {}, _page(profile_id), ENDED)


def _page(profile_id: int) -> str:
    return reverse("runs:agent-login", args=[profile_id])
