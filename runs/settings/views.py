"""The choice of agent, model and effort for new sessions."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from runs import wiring
from runs.agents import checks
from runs.projects.views import form_page
from runs.settings import agent_choice
from runs.web import access, answers, live
from runs.web.access import look, username
from runs.web.forms import ChoiceForm
from runs.web.refusals import at_fields

SAVED = "New sessions use this from now on. Sessions that run keep what they have."


@require_http_methods(["GET", "POST"])
@look
def settings(request: HttpRequest) -> HttpResponse:
    """Show the choice to whoever may look; store it for whoever may act."""
    facts = live.facts(request, "settings", "runs:settings-live")
    form: ChoiceForm = facts.pop("form")
    profiles = [card.profile for card in facts["page"].cards]
    if request.method == "GET":
        checks.ask_when_old(wiring.lab(), *profiles)
    elif not access.may_act(request.user):
        return access.refused(request)
    else:
        form = ChoiceForm(profiles, request.POST)
        if form.is_valid() and _stored(form, username(request)):
            return answers.done(request, {}, reverse("runs:settings"), SAVED)
    nothing = "Nothing was changed."
    return form_page(request, form, "projects/settings.html", "settings-form", nothing, **facts)


def _stored(form: ChoiceForm, by: str) -> bool:
    """Store the choice; False with the reason at its field when it is refused."""
    chosen = form.cleaned_data
    try:
        agent_choice.choose(
            wiring.lab(),
            agent_id=int(chosen["agent"]),
            model=chosen["model"],
            effort=chosen["effort"],
            by=by,
        )
    except agent_choice.ChoiceRefused as refused:
        at_fields(form, refused)
        return False
    return True
