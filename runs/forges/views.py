"""Accounts on forges, and what was asked with each. Their credentials go in and never come out."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs import wiring
from runs.forges import acts, pages
from runs.forges.acts import ForgeRefused
from runs.forges.forms import AccountForm, NewAccountForm
from runs.models import Forge
from runs.people.stepup import confirmed, safe_next
from runs.settings import edit_forms
from runs.web import answers
from runs.web.access import administer, look, username
from runs.web.refusals import at_fields

ADDED = "The account {name} is kept. Projects can choose it from now on."
CHANGED = "The account {name} was changed."
REMOVED = "The account {name} was removed, and its credential with it."


@never_cache
@require_GET
@look
def forges(request: HttpRequest) -> HttpResponse:
    """Every account, and the quota ledger."""
    return pages.page(request)


@require_GET
@look
def forges_live(request: HttpRequest) -> HttpResponse:
    """The ledger as it is now."""
    return pages.refresh(request)


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
@administer
@confirmed
def forge_new(request: HttpRequest) -> HttpResponse:
    """Add an account; then back to where somebody wanted one, if that was a page of ours."""
    first = {part: request.GET.get(part, "")[:500] for part in ("kind", "name", "web")}
    form = NewAccountForm(request.POST if request.method == "POST" else None, initial=first)
    if form.is_valid():
        given = form.cleaned_data
        told = {part: given[part] for part in ("kind", "name", "web", "api")}
        try:
            made = acts.add(wiring.lab(), **told, credential=form.credential, by=username(request))
        except ForgeRefused as refused:
            at_fields(form, refused)
        else:
            back = safe_next(request) if "next" in request.GET else reverse("runs:forges")
            return answers.elsewhere(request, pages.said(request, ADDED, made, back))
    return _form(request, form, title="Add an account")


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
@administer
@confirmed
def forge(request: HttpRequest, forge_id: int) -> HttpResponse:
    """Change an account, or replace its credential."""
    kept = get_object_or_404(Forge, pk=forge_id)
    form = AccountForm.stored(kept)
    if request.method == "POST":
        form = AccountForm(edit_forms.chosen(request.POST, form))

        def store() -> Forge:
            told = {part: form.cleaned_data[part] for part in ("name", "web", "api", "seen")}
            who = username(request)
            return acts.edit(wiring.lab(), kept, **told, credential=form.credential, by=who)

        now = lambda: AccountForm.stored(Forge.objects.get(pk=kept.pk))  # noqa: E731
        made = edit_forms.stored(form, store, now, edit_forms.told_as("the account "))
        if made is not None:
            back = reverse("runs:forges")
            return answers.elsewhere(request, pages.said(request, CHANGED, made, back))
    return _form(request, form, title=kept.name, forge=kept)


@require_POST
@administer
@confirmed
def forge_remove(request: HttpRequest, forge_id: int) -> HttpResponse:
    """Forget an account that no project uses."""
    kept = get_object_or_404(Forge, pk=forge_id)
    back = reverse("runs:forges")
    name = kept.name
    try:
        acts.remove(wiring.lab(), kept, by=username(request))
    except ForgeRefused as refused:
        return answers.failed(request, f"{refused.text} Nothing was changed.", 409, back)
    return answers.elsewhere(request, pages.said(request, REMOVED, name, back))


def _form(request: HttpRequest, form: AccountForm, **facts: object) -> HttpResponse:
    status = 409 if form.conflict else 400 if form.is_bound else 200
    return render(request, "forges/form.html", {"form": form, **facts}, status=status)
