"""The page that asks again who somebody is, before what cannot be taken back or be seen twice."""

from __future__ import annotations

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from runs.people import challenges, login_throttle, passkeys, stepup
from runs.web import access
from runs.web.access import look, me

WRONG = "That is not your password. Nothing was changed; try again."
USE_PASSKEY = (
    "You have a passkey, so a password is not enough here. Nothing was changed. "
    "Use the passkey, or log out and log in with your password."
)


class ConfirmForm(forms.Form):
    """The password of whoever is logged in."""

    password = forms.CharField(
        strip=False,
        max_length=4096,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password", "autofocus": True}),
        error_messages={"required": "Write your password."},
    )


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
@look
def confirm(request: HttpRequest) -> HttpResponse:
    """Ask for a passkey or the password, then lead back to the page that wanted to know.

    A password does not do for a person who has a passkey here. Without it, they log in anew.
    """
    back = stepup.safe_next(request)
    if request.method == "GET":
        if stepup.is_confirmed(request):
            return redirect(back)
        return _page(request, ConfirmForm(), back)
    if _has_passkey(request):
        return access.refused(request, USE_PASSKEY)
    form = ConfirmForm(request.POST)
    if form.is_valid():
        try:
            is_right = _is_right(request, form.cleaned_data["password"])
        except login_throttle.TooManyTries as too_many:
            form.add_error("password", login_throttle.said(too_many.wait))
            return login_throttle.told(_page(request, form, back), too_many.wait)
        if is_right:
            stepup.confirm(request)
            return redirect(back)
        form.add_error("password", WRONG)
    return _page(request, form, back)


def _is_right(request: HttpRequest, password: str) -> bool:
    """Count the try as one at the login page, and look at the password. Raises TooManyTries."""
    user = me(request)
    doors = login_throttle.counted(request, user.username)
    if not user.check_password(password):
        return False
    login_throttle.was_right(doors)
    return True


def _has_passkey(request: HttpRequest) -> bool:
    return passkeys.are_known(challenges.site(request), me(request))


def _page(request: HttpRequest, form: ConfirmForm, back: str) -> HttpResponse:
    facts = {"form": form, "back": back, "has_passkey": _has_passkey(request)}
    return render(request, "people/confirm.html", facts, status=400 if form.errors else 200)
