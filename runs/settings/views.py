"""The choice of agent, model and effort for new sessions."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from runs import wiring
from runs.accounts import choice as agent_choice
from runs.agents import checks
from runs.models import Settings
from runs.projects.views import form_page
from runs.settings import edit_forms
from runs.web import access, answers, live
from runs.web.access import look, username
from runs.web.forms import ChoiceForm
from runs.web.live import Live

SAVED = "New sessions use this from now on. Sessions that run keep what they have."


@require_http_methods(["GET", "POST"])
@look
def settings(request: HttpRequest) -> HttpResponse:
    """Show the choice to whoever may look; store it for whoever may act."""
    facts = live.shown(request, Live("settings"), "runs:settings-live")
    facts["has_hosts"] = bool(wiring.lab().machine.identity)
    form: ChoiceForm = facts.pop("form")
    profiles = [card.profile for card in facts["page"].cards]
    if request.method == "GET":
        checks.ask_when_old(wiring.lab(), *profiles)
    elif not access.may_act(request.user):
        return access.refused(request)
    else:

        def now() -> ChoiceForm:
            return ChoiceForm.stored(profiles, Settings.current())

        form = ChoiceForm(profiles, edit_forms.chosen(request.POST, now()))
        store = lambda: _store(form, username(request))  # noqa: E731
        if edit_forms.stored(form, store, now, edit_forms.told_as("new sessions use ")):
            return answers.done(request, {}, reverse("runs:settings"), SAVED)
    nothing = "Nothing was changed."
    return form_page(request, form, "projects/settings.html", "settings-form", nothing, **facts)


def _store(form: ChoiceForm, by: str) -> bool:
    given = form.cleaned_data
    agent_choice.choose(
        wiring.lab(),
        agent_id=int(given["agent"]),
        model=given["model"],
        effort=given["effort"],
        by=by,
        seen=given["seen"],
    )
    return True
