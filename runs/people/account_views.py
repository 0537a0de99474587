"""One's own account: password, passkeys, tokens."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods

from runs import wiring
from runs.people import acts, challenges, pages, passwords
from runs.people.auth_views import PasswordForm
from runs.people.stepup import confirmed
from runs.web import live
from runs.web.access import look, me
from runs.web.live import Live
from runs.web.refusals import at_fields

CHANGED = "Your password is changed. You are logged out everywhere else."


@never_cache
@require_GET
@look
def account(request: HttpRequest) -> HttpResponse:
    more: dict[str, Any] = {"role": acts.role(me(request)), "site": challenges.site(request)}
    return live.page(
        request, "people/account.html", _mine(me(request)), "runs:account-live", **more
    )


@require_GET
@look
def account_live(request: HttpRequest) -> HttpResponse:
    """One's own passkeys and tokens as they are now: made or taken away elsewhere, and used."""
    return live.refresh(request, _mine(me(request)))


def _mine(user: User) -> Live:
    parts = {"passkeys": "people/_passkeys", "tokens": "people/_tokens"}
    facts = lambda: {"tokens": pages.tokens_of(user), "passkeys": pages.passkeys_of(user)}  # noqa: E731
    return Live("chrome", parts, facts)


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
@look
@confirmed
def password(request: HttpRequest) -> HttpResponse:
    """Choose another password; other browsers are logged out with it."""
    form = PasswordForm(request.POST or None)
    if form.is_valid():
        user = me(request)
        key = request.session.session_key or ""
        try:
            passwords.change(wiring.lab(), user, form.cleaned_data["password"], key)
        except passwords.PasswordRefused as refused:
            at_fields(form, refused)
        else:
            update_session_auth_hash(request, user)
            messages.success(request, CHANGED)
            return redirect("runs:account")
    status = 400 if form.is_bound else 200
    return render(request, "people/password.html", {"form": form}, status=status)
