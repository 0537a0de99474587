"""Coming in and going out: login, logout, and the very first account."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.middleware.csrf import get_token
from django.shortcuts import redirect, render
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from runs import wiring
from runs.people import acts, challenges, invites, login_throttle, passkeys, setup, stepup
from runs.people.passwords import PasswordRefused
from runs.web import access, addresses
from runs.web.refusals import at_fields


class LoginForm(AuthenticationForm):
    """Name and password. The answer never tells which of the two was wrong."""

    wait: timedelta | None = None
    error_messages = {
        "invalid_login": "Wrong name or password. Nothing was changed; try again.",
        "inactive": "Wrong name or password. Nothing was changed; try again.",
    }

    def clean(self) -> dict[str, Any]:
        """Count the try before the password is looked at."""
        name, password = self.cleaned_data.get("username"), self.cleaned_data.get("password")
        if not name or not password or self.request is None:
            return super().clean()
        try:
            doors = login_throttle.counted(self.request, name)
        except login_throttle.TooManyTries as too_many:
            self.wait = too_many.wait
            raise forms.ValidationError(login_throttle.said(too_many.wait)) from too_many
        given = super().clean()
        login_throttle.was_right(doors)
        return given


class Login(LoginView):
    """The login page. While nobody has an account it says how to make one."""

    template_name = "people/login.html"
    authentication_form = LoginForm
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        facts = {
            "has_account": setup.has_account(),
            "has_passkeys": passkeys.are_known(challenges.site(self.request)),
        }
        return super().get_context_data(**facts, **kwargs)

    def get_redirect_url(self, request: HttpRequest | None = None) -> str:
        """Where the login leads back to; never to itself, which Django would call a loop."""
        wanted = super().get_redirect_url()  # 5.2 takes no request, which the stubs do not know
        return "" if addresses.path_in(wanted) == self.request.path else wanted

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        challenges.stays(self.request)
        answer = super().form_valid(form)
        stepup.confirm(self.request)
        acts.came_in(wiring.lab(), access.me(self.request), "a password")
        acts.forget_ended_sessions(wiring.lab())
        return answer

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        page = super().form_invalid(form)
        wait = form.wait if isinstance(form, LoginForm) else None
        return login_throttle.told(page, wait) if wait is not None else page


class Again(Login):
    """The log-in on a page whose log-in has expired, so that what was typed there is not lost.

    Whoever is logged in is told so with the token for the forms that are open already; whoever is
    not gets the form, which the page shows above itself.
    """

    template_name = "people/again.html"
    redirect_authenticated_user = False

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if access.may_look(request.user):
            return JsonResponse({"name": access.username(request), "token": get_token(request)})
        answer = super().get(request, *args, **kwargs)
        answer.status_code = 401
        return answer

    def get_success_url(self) -> str:
        return self.request.path


@method_decorator(login_not_required, name="dispatch")
class Logout(LogoutView):
    """Ends the session, on POST only. Being logged out already is no error."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if access.may_look(request.user):
            acts.went_out(wiring.lab(), access.me(request))
        return super().post(request, *args, **kwargs)


class PasswordForm(forms.Form):
    """A password that somebody chooses, typed twice. The verb behind it checks it."""

    password = forms.CharField(strip=False, max_length=4096)
    again = forms.CharField(strip=False, max_length=4096)

    def clean(self) -> dict[str, Any]:
        given = self.cleaned_data
        if given.get("password") and given.get("again") and given["password"] != given["again"]:
            self.add_error("again", "The two passwords differ.")
        return given


class SetupForm(PasswordForm):
    """The first account."""

    name = forms.CharField(max_length=150)


@login_not_required
@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def first_account(request: HttpRequest, token: str) -> HttpResponse:
    """Make the operator account through the one-time link, and log in with it."""
    paths = wiring.lab().paths
    try:
        doors = login_throttle.counted(request)
    except login_throttle.TooManyTries as too_many:
        return login_throttle.refused(request, too_many.wait)
    if not setup.is_open(paths, token):
        return render(request, "people/refused.html", {"text": setup.DEAD_LINK}, status=404)
    login_throttle.was_right(doors)
    form = SetupForm(request.POST or None)
    if form.is_valid():
        given = form.cleaned_data
        try:
            user = setup.make_operator(paths, token, given["name"], given["password"])
        except setup.SetupRefused as refused:
            if not refused.field:
                return render(request, "people/refused.html", {"text": refused.text}, status=409)
            at_fields(form, refused)
        else:
            return _in(request, user)
    return render(
        request, "people/setup.html", {"form": form}, status=400 if form.is_bound else 200
    )


@login_not_required
@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def invite(request: HttpRequest, person_id: int, token: str) -> HttpResponse:
    """Choose a password through the link that an admin made, and log in with it."""
    try:
        doors = login_throttle.counted(request)
    except login_throttle.TooManyTries as too_many:
        return login_throttle.refused(request, too_many.wait)
    lab = wiring.lab()
    user = invites.invited(lab, person_id, token)
    if user is None:
        return render(request, "people/refused.html", {"text": invites.DEAD_LINK}, status=404)
    login_throttle.was_right(doors)
    form = PasswordForm(request.POST or None)
    if form.is_valid():
        try:
            user = invites.accept(lab, person_id, token, form.cleaned_data["password"])
        except PasswordRefused as refused:
            at_fields(form, refused)
        except invites.InviteRefused:
            return render(request, "people/refused.html", {"text": invites.DEAD_LINK}, status=404)
        else:
            return _in(request, user)
    facts = {"form": form, "person": user}
    return render(request, "people/invite.html", facts, status=400 if form.is_bound else 200)


def _in(request: HttpRequest, user: User) -> HttpResponse:
    """Log in somebody who has just chosen a password."""
    challenges.stays(request)
    login(request, user)
    stepup.confirm(request)
    acts.came_in(wiring.lab(), user, "the link for a new password")
    return redirect("runs:overview")


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form without a valid token: most often a page that was open across a login."""
    return access.refused(
        request,
        "This page was too old to be trusted with that. Nothing was changed. "
        "Reload the page and try again.",
    )
