"""One's own tokens for programs: made, shown once, revoked."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from runs import wiring
from runs.models import ApiToken
from runs.people import api_tokens
from runs.people.stepup import confirmed
from runs.web import access, answers
from runs.web.access import look, me, username

FOR_EVER = "0"
SPANS = [("30", "30 days"), ("90", "90 days"), ("365", "a year"), (FOR_EVER, "never")]
REVOKED = "The token {name} is revoked. Programs that use it are refused from now on."


class TokenForm(forms.Form):
    """A new token. Acting is only offered to those who may act."""

    name = forms.CharField(
        label="Name",
        max_length=100,
        help_text="Which program it is for, so that you know it again.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        error_messages={"required": "Write a name."},
    )
    scope = forms.ChoiceField(label="Scope", initial=ApiToken.Scope.LOOK.value)
    days = forms.ChoiceField(label="Expires in", choices=SPANS, initial="90")

    def __init__(self, data: object, *, may_act: bool) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        scope = self.fields["scope"]
        assert isinstance(scope, forms.ChoiceField)  # noqa: S101  (tells mypy)
        offered = [(value, words) for value, words in ApiToken.Scope.choices]
        scope.choices = [one for one in offered if may_act or one[0] != ApiToken.Scope.ACT]


@never_cache
@require_http_methods(["GET", "POST"])
@look
@confirmed
def token_new(request: HttpRequest) -> HttpResponse:
    """Make a token. The answer shows it, and nothing can show it again: no redirect, no message."""
    form = TokenForm(request.POST or None, may_act=access.may_act(request.user))
    if form.is_valid():
        try:
            return _made(request, form.cleaned_data)
        except api_tokens.NameTaken as taken:
            form.add_error("name", str(taken))
    status = 400 if form.is_bound else 200
    return render(request, "people/token_new.html", {"form": form}, status=status)


def _made(request: HttpRequest, given: Mapping[str, str]) -> HttpResponse:
    """The page with the token's text. Raises NameTaken."""
    lab = wiring.lab()
    days = timedelta(days=int(given["days"]))
    scope = ApiToken.Scope(given["scope"])
    until = lab.now() + days if days else None
    token, text = api_tokens.make(lab, me(request), given["name"], scope, until)
    page = render(request, "people/token_made.html", {"token": token, "text": text})
    return answers.fresh(page)


@require_POST
@look
def token_revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    """End a token of one's own. Not asked for again: who is robbed is in a hurry."""
    token = get_object_or_404(ApiToken, pk=token_id, user=me(request))
    api_tokens.revoke(wiring.lab(), token, by=username(request))
    text = REVOKED.format(name=token.name)
    return answers.done(request, {}, reverse("runs:account"), text)
