"""People, for admins: who is here, who may do what, and the link for somebody new."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs import wiring
from runs.core.states import NoticeKind
from runs.models import ApiToken, Notice
from runs.people import acts, api_tokens, invites, pages
from runs.people.acts import PeopleRefused
from runs.people.roles import Role
from runs.people.stepup import confirmed
from runs.people.token_views import REVOKED
from runs.settings import edit_forms, edits
from runs.settings.edit_forms import EditForm
from runs.web import answers, live
from runs.web.access import administer, username
from runs.web.live import Live
from runs.web.refusals import at_fields

ROWS = {"people-rows": "people/_rows"}
ROLES = [(one.value, one.words) for one in Role]


class PersonForm(forms.Form):
    """Somebody new. The verb behind it checks the name."""

    name = forms.CharField(
        label="Name",
        max_length=150,
        help_text="What they log in with. It stands beside everything that they do.",
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
        ),
        error_messages={"required": "Write a name."},
    )
    role = forms.ChoiceField(label="Role", choices=ROLES, initial=Role.OPERATOR.value)


class RoleForm(EditForm):
    """Another role for somebody."""

    role = forms.ChoiceField(
        label="Role",
        choices=[(one.value, one.value) for one in Role],
        help_text="A viewer only looks, an operator acts, an admin also minds people.",
    )

    @classmethod
    def stored(cls, user: User) -> RoleForm:
        """The form with the role that somebody has."""
        role = acts.role(user).value
        return cls(initial={"role": role, "seen": edits.mark({"role": role})})


@require_GET
@administer
def everyone(request: HttpRequest) -> HttpResponse:
    return live.page(request, "people/list.html", _everyone(request), "runs:people-live")


@require_GET
@administer
def everyone_live(request: HttpRequest) -> HttpResponse:
    """The same people as they are now. Nothing of this is pushed: only admins see it."""
    return live.refresh(request, _everyone(request))


def _everyone(request: HttpRequest) -> Live:
    return Live("chrome", ROWS, lambda: {"people": pages.everyone(), "me": request.user.pk})


@never_cache
@require_http_methods(["GET", "POST"])
@administer
@confirmed
def person_new(request: HttpRequest) -> HttpResponse:
    """Add somebody; the answer shows their link, and nothing can show it again."""
    form = PersonForm(request.POST or None)
    if form.is_valid():
        given = form.cleaned_data
        try:
            added = acts.add(wiring.lab(), given["name"], Role(given["role"]), by=username(request))
        except PeopleRefused as refused:
            at_fields(form, refused)
        else:
            return _link(request, added)
    status = 400 if form.is_bound else 200
    return render(request, "people/new.html", {"form": form}, status=status)


@never_cache
@require_GET
@administer
@confirmed
def person(request: HttpRequest, person_id: int) -> HttpResponse:
    """One person: role, tokens, and the way out."""
    found = get_object_or_404(User, pk=person_id)
    return _person(request, found, RoleForm.stored(found))


def _person(request: HttpRequest, found: User, form: RoleForm) -> HttpResponse:
    facts = {
        "person": found,
        "role": acts.role(found),
        "form": form,
        "tokens": pages.tokens_of(found),
    }
    return render(request, "people/person.html", facts, status=edit_forms.status(form))


@require_POST
@administer
@confirmed
def person_role(request: HttpRequest, person_id: int) -> HttpResponse:
    """Give somebody another role."""
    found = get_object_or_404(User, pk=person_id)
    form = RoleForm(edit_forms.chosen(request.POST, RoleForm.stored(found)))
    back = _back(person_id)
    if not form.is_valid():
        return answers.failed(request, "There is no such role. Nothing was changed.", 400, back)
    role, seen = Role(form.cleaned_data["role"]), form.cleaned_data["seen"]
    try:
        is_other = acts.change_role(wiring.lab(), found.pk, role, by=username(request), seen=seen)
    except edits.ChangedMeanwhile as meanwhile:
        told = Notice.objects.filter(kind=NoticeKind.PERSON_CHANGED)
        told = told.filter(text__startswith=f"{found.username} is ")
        form.meet(meanwhile, RoleForm.stored(found), told)
        return _person(request, found, form)
    except PeopleRefused as refused:
        return answers.failed(request, refused.text, 409, back)
    text = (
        f"{found.username} is {role} now." if is_other else f"{found.username} was {role} already."
    )
    if found.pk == request.user.pk and role != Role.ADMIN:
        back = reverse("runs:overview")  # the page that they came from is closed to them now
        return _said(request, back, text)
    return answers.done(request, {}, back, text)


@require_POST
@administer
@confirmed
def person_out(request: HttpRequest, person_id: int) -> HttpResponse:
    """Let somebody out."""
    found = get_object_or_404(User, pk=person_id)
    try:
        acts.deactivate(wiring.lab(), found.pk, by=username(request))
    except PeopleRefused as refused:
        return answers.failed(request, refused.text, 409, _back(person_id))
    text = f"{found.username} is deactivated and logged out everywhere. What they did stays."
    return answers.done(request, {}, _back(person_id), text)


@require_POST
@administer
@confirmed
def person_in(request: HttpRequest, person_id: int) -> HttpResponse:
    """Let somebody in again."""
    found = get_object_or_404(User, pk=person_id)
    acts.reactivate(wiring.lab(), found.pk, by=username(request))
    text = f"{found.username} may log in again, with the role and the password that they had."
    return answers.done(request, {}, _back(person_id), text)


@never_cache
@require_POST
@administer
@confirmed
def person_link(request: HttpRequest, person_id: int) -> HttpResponse:
    """A new link for somebody who has lost the first one or the password."""
    found = get_object_or_404(User, pk=person_id)
    try:
        found = acts.forget_password(wiring.lab(), found.pk, by=username(request))
    except PeopleRefused as refused:
        return answers.failed(request, refused.text, 409, _back(person_id))
    return _link(request, found)


@require_POST
@administer
@confirmed
def person_token_revoke(request: HttpRequest, person_id: int, token_id: int) -> HttpResponse:
    """End a token of somebody else."""
    token = get_object_or_404(ApiToken, pk=token_id, user_id=person_id)
    api_tokens.revoke(wiring.lab(), token, by=username(request))
    text = REVOKED.format(name=token.name)
    return answers.done(request, {}, _back(person_id), text)


def _link(request: HttpRequest, user: User) -> HttpResponse:
    """The page with the link. Not a redirect: a redirect would have to keep the link somewhere."""
    token = invites.link_token(wiring.lab(), user)
    path = reverse("runs:invite", args=[user.pk, token])
    facts = {"person": user, "link": request.build_absolute_uri(path)}
    return answers.fresh(render(request, "people/link.html", facts))


def _back(person_id: int) -> str:
    return reverse("runs:person", args=[person_id])


def _said(request: HttpRequest, address: str, text: str) -> HttpResponse:
    messages.success(request, text)
    return redirect(address)
