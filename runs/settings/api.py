"""Settings over the API: what is in force, the tunable numbers, the agent for new sessions."""

from __future__ import annotations

from decimal import ROUND_UP, Decimal
from typing import Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse

from runs.accounts import choice as agent_choice
from runs.api import asked, etags, replies, showing
from runs.api import schemas as api_schemas
from runs.api.gate import check_tuning, token_of
from runs.api.router import Router
from runs.models import Settings
from runs.settings import acts
from runs.web import access
from runs.web.access import username
from runs.wiring import lab

router = Router(tags=["Settings"])
me = Router(tags=["Settings"])


@router.get("", response=replies.look(api_schemas.Limits), summary="Show the settings")
def settings_show(request: HttpRequest, response: HttpResponse) -> Any:
    """Budgets, intervals, caps, and the agent for new sessions. `ETag` is the mark of them all."""
    return etags.mark(response, showing.settings(Settings.current()))


@router.patch("", response=replies.edited(api_schemas.Limits), summary="Tune numbers")
def settings_tune(request: HttpRequest, response: HttpResponse, given: asked.Numbers) -> Any:
    """Change budgets, intervals and caps; the next tick works with them. For admins only.

    With the `ETag` that was read as `If-Match` it is 412, and nothing is stored, once somebody else
    has changed them.
    """
    check_tuning(token_of(request))
    told = given.model_dump(exclude_none=True)
    numbers = {n: _money(v) if isinstance(v, float) else v for n, v in told.items()}
    with transaction.atomic():
        etags.check(request, showing.settings(_held()))
        tuned = acts.tune(lab(), numbers, by=username(request))
    return etags.mark(response, showing.settings(tuned))


def _held() -> Settings:
    """The settings, which nobody else changes before the transaction ends."""
    Settings.current()
    list(Settings.objects.select_for_update().values_list("pk"))
    return Settings.current()


def _money(amount: float) -> Decimal:
    """Whole cents, rounded up: zero sets no limit, and the smallest amount is none."""
    return Decimal(repr(amount)).quantize(Decimal("0.01"), rounding=ROUND_UP)


@router.put("/agent", response=replies.edited(api_schemas.Limits), summary="Choose the agent")
def settings_choose(request: HttpRequest, response: HttpResponse, given: asked.Choice) -> Any:
    """Choose agent, model and effort for sessions that start from now on. `If-Match` as above."""
    with transaction.atomic():
        etags.check(request, showing.settings(_held()))
        agent_choice.choose(
            lab(),
            agent_id=given.agent,
            model=given.model,
            effort=given.effort,
            by=username(request),
        )
    return etags.mark(response, showing.settings(Settings.current()))


@me.get("", response=replies.look(api_schemas.Me), summary="Show whose token this is")
def whoami(request: HttpRequest) -> api_schemas.Me:
    token = token_of(request)
    is_acting = token.scope == token.Scope.ACT
    return api_schemas.Me(
        user=token.user.get_username(),
        token=token.name,
        scope=token.Scope(token.scope),
        may_act=is_acting and access.may_act(token.user),
        may_tune=is_acting and access.may_administer(token.user),
        expires_at=token.expires_at,
    )
