"""Passkeys: log in with one, show one when asked again, add and remove one's own.

A browser asks for a question, its device answers, and `static/passkeys.js` carries both as JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from runs import wiring
from runs.people import acts, challenges, login_throttle, passkeys, stepup
from runs.people.passkeys import Asked, PasskeyRefused
from runs.people.stepup import confirmed
from runs.web import answers
from runs.web.access import look, me

LOGIN, CONFIRM, ADD = "login", "confirm", "add"
BACKEND = "django.contrib.auth.backends.ModelBackend"
TOO_LATE = "That took too long, or it was answered already. Nothing was changed; try again."
REMOVED = "The passkey is removed. Remove it from your device too; it opens nothing here any more."


def told(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """The view answers a script: a refusal is a status and a sentence as JSON."""

    @wraps(view)
    def answered(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return answers.fresh(view(request, *args, **kwargs))
        except PasskeyRefused as refused:
            return answers.fresh(JsonResponse({"text": str(refused)}, status=400))
        except login_throttle.TooManyTries as too_many:
            said = JsonResponse({"text": login_throttle.said(too_many.wait)})
            return login_throttle.told(said, too_many.wait)

    return answered


@login_not_required
@require_POST
@told
def login_question(request: HttpRequest) -> HttpResponse:
    """Ask a stranger for any passkey of this site."""
    return _asked(request, LOGIN, None)


@login_not_required
@require_POST
@told
def login_answer(request: HttpRequest) -> HttpResponse:
    """Log in the owner of the passkey that was shown."""
    user = _shown(request, LOGIN, None)
    back = stepup.safe_next(request)
    challenges.stays(request)
    login(request, user, backend=BACKEND)
    stepup.confirm(request)
    acts.came_in(wiring.lab(), user, "a passkey")
    acts.forget_ended_sessions(wiring.lab())
    return JsonResponse({"next": back})


@require_POST
@look
@told
def confirm_question(request: HttpRequest) -> HttpResponse:
    """Ask whoever is logged in for one of their passkeys."""
    return _asked(request, CONFIRM, me(request))


@require_POST
@look
@told
def confirm_answer(request: HttpRequest) -> HttpResponse:
    """Note that whoever is logged in has shown a passkey of theirs."""
    _shown(request, CONFIRM, me(request))
    stepup.confirm(request)
    return JsonResponse({"next": stepup.safe_next(request)})


@never_cache
@require_GET
@look
@confirmed
def passkey_new(request: HttpRequest) -> HttpResponse:
    """The page that makes a passkey, or says why none can be made here."""
    return render(request, "people/passkey_new.html", {"site": challenges.site(request)})


@require_POST
@look
@confirmed
@told
def passkey_invitation(request: HttpRequest) -> HttpResponse:
    """Ask a browser to make a passkey; with an answer, store it."""
    site = challenges.site(request)
    if site.why_not:
        raise PasskeyRefused(site.why_not)
    if "answer" not in request.POST:
        asked = passkeys.invitation(me(request), site)
        challenges.keep(request, ADD, asked)
        return _json(asked.options)
    asked = _taken(request, ADD)
    name, answer = request.POST.get("name", ""), request.POST["answer"]
    made = passkeys.add(wiring.lab(), me(request), site, asked, name, answer)
    messages.success(request, f"The passkey {made.name} is added. You can log in with it.")
    return JsonResponse({"next": reverse("runs:account")})


@require_POST
@look
def remove(request: HttpRequest, passkey_id: int) -> HttpResponse:
    """Forget a passkey of one's own. Not asked for again: a lost device is in a hurry."""
    back = reverse("runs:account")
    if passkeys.remove(wiring.lab(), me(request), passkey_id):
        return answers.done(request, {}, back, REMOVED)
    return answers.failed(request, "You have no such passkey. Nothing was changed.", 404, back)


def _asked(request: HttpRequest, purpose: str, user: User | None) -> HttpResponse:
    site = challenges.site(request)
    if site.why_not:
        raise PasskeyRefused(site.why_not)
    login_throttle.question(request)
    asked = passkeys.question(site, user)
    challenges.keep(request, purpose, asked)
    return _json(asked.options)


def _shown(request: HttpRequest, purpose: str, user: User | None) -> User:
    """Whose passkey was shown. Raises PasskeyRefused and TooManyTries."""
    doors = login_throttle.counted(request, user.username if user is not None else "")
    asked = _taken(request, purpose)
    site, answer = challenges.site(request), request.POST.get("answer", "")
    owner = passkeys.owner(wiring.lab(), site, asked, answer, user)
    login_throttle.was_right(doors)
    return owner


def _taken(request: HttpRequest, purpose: str) -> Asked:
    asked = challenges.take(request, purpose)
    if asked is None:
        raise PasskeyRefused(TOO_LATE)
    return asked


def _json(text: str) -> HttpResponse:
    return HttpResponse(text, content_type="application/json")
