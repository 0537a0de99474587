"""The choice of agent, model and effort for new sessions."""

from __future__ import annotations

from django.db import transaction

from runs.accounts import holds
from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind, Trouble
from runs.models import AgentProfile, Settings
from runs.settings import edits
from runs.timeline import announce


class ChoiceRefused(ActRefused):
    """The choice is not in the closed lists; `field` names the one to correct."""


def said(settings: Settings) -> dict[str, object]:
    """The choice in force, as a form shows it."""
    return {"agent": settings.agent_id, "model": settings.model, "effort": settings.effort}


def choose(lab: Lab, *, agent_id: int, model: str, effort: str, by: str, seen: str = "") -> None:
    """Store the choice for sessions that start from now on; running ones are unaffected.

    Raises ChoiceRefused, and ChangedMeanwhile when it is another than the one marked by `seen`; then
    nothing is stored.
    """
    profile = AgentProfile.objects.filter(pk=agent_id).first()
    if profile is None:
        raise ChoiceRefused("There is no such agent.", field="agent")
    if not profile.allows(model, ""):
        raise ChoiceRefused(
            f"{profile.name} does not offer the model “{model[:60]}”.", field="model"
        )
    if not profile.allows("", effort):
        raise ChoiceRefused(
            f"{profile.name} does not offer the effort “{effort[:60]}”.", field="effort"
        )
    Settings.current()
    with transaction.atomic():
        edits.check(seen, said(Settings.objects.select_for_update().get(pk=1)))
        Settings.objects.filter(pk=1).update(agent=profile, model=model, effort=effort)
        chosen = " ".join(part for part in (profile.name, model, effort) if part)
        announce.tell(lab, NoticeKind.SETTING_CHANGED, f"new sessions use {chosen}", by=by)
        if profile.hold == Trouble.MODEL:
            holds.release(lab, profile, "a model was chosen", by=by, anew=True)
