"""Coming in and going out: login, logout, and the very first account."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from runs import wiring
from runs.web import access
from runs.work import setup


class LoginForm(AuthenticationForm):
    """Name and password. The answer never tells which of the two was wrong."""

    error_messages = {
        "invalid_login": "That name and password do not belong together. Nothing was changed; try again.",
        "inactive": "That name and password do not belong together. Nothing was changed; try again.",
    }


class Login(LoginView):
    """The login page. While nobody has an account it says how to make one."""

    template_name = "auth/login.html"
    authentication_form = LoginForm
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(has_account=setup.has_account(), **kwargs)


@method_decorator(login_not_required, name="dispatch")
class Logout(LogoutView):
    """Ends the session, on POST only. Being logged out already is no error."""


class SetupForm(forms.Form):
    """The first account. The verb behind it checks name and password."""

    name = forms.CharField(max_length=150)
    password = forms.CharField(strip=False, max_length=4096)
    again = forms.CharField(strip=False, max_length=4096)

    def clean(self) -> dict[str, Any]:
        given = self.cleaned_data
        if given.get("password") and given.get("again") and given["password"] != given["again"]:
            self.add_error("again", "The two passwords differ.")
        return given


@login_not_required
@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def first_account(request: HttpRequest, token: str) -> HttpResponse:
    """Make the operator account through the one-time link, and log in with it."""
    paths = wiring.lab().paths
    if not setup.is_open(paths, token):
        return render(request, "auth/refused.html", {"text": setup.DEAD_LINK}, status=404)
    form = SetupForm(request.POST or None)
    if form.is_valid():
        given = form.cleaned_data
        try:
            user = setup.make_operator(paths, token, given["name"], given["password"])
        except setup.SetupRefused as refused:
            if not refused.field:
                return render(request, "auth/refused.html", {"text": refused.text}, status=409)
            form.add_error(refused.field, refused.text)
        else:
            login(request, user)
            return redirect("runs:overview")
    return render(request, "auth/setup.html", {"form": form}, status=400 if form.is_bound else 200)


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form without a valid token: most often a page that was open across a login."""
    return access.refused(
        request,
        "This page was too old to be trusted with that. Nothing was changed. "
        "Reload the page and try again.",
    )
