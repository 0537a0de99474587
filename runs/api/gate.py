"""Who asks: the token's owner, what the token allows, and that the question is understood."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

from django.conf import settings
from django.http import HttpRequest
from ninja.parser import Parser
from ninja.security import HttpBearer

from runs.core.ports import Lab
from runs.models import ApiToken
from runs.people import api_tokens
from runs.web import access
from runs.web.refusals import INVALID, Denied, too_big

LOOK_ONLY = (
    "This token may look at everything, but not change anything. Nothing was changed. "
    "Make a token that may act."
)


class Gate(HttpBearer):
    """Lets a request in by a personal token alone; a login of a browser opens nothing here."""

    def __init__(
        self, lab: Callable[[], Lab], declared: Callable[[HttpRequest], frozenset[str]]
    ) -> None:
        super().__init__()
        self._lab = lab
        self._declared = declared

    def authenticate(self, request: HttpRequest, token: str) -> ApiToken:
        """The token, whose owner is then the request's user. Raises Denied."""
        found = allowed(self._lab(), token)
        if request.method != "GET":
            check_acting(found)
        if request.GET:  # else the description, which takes most of a second, is not needed
            check_query(request, self._declared(request))
        request.user = found.user
        return found


def allowed(lab: Lab, text: str) -> ApiToken:
    """The token that a program showed, if its owner may look. Raises Denied."""
    found = api_tokens.find(lab, text.strip())
    if found is None or not access.may_look(found.user):
        raise Denied(
            401,
            "unknown_token",
            "This token is not valid: it is unknown, revoked or expired, or its owner is no "
            "longer let in. Nothing was done.",
        )
    return found


def check_acting(token: ApiToken) -> None:
    """Acting needs the token's scope and its owner's permission. Raises Denied."""
    if token.scope != ApiToken.Scope.ACT:
        raise Denied(403, "look_only", LOOK_ONLY)
    if not access.may_act(token.user):
        raise Denied(403, "not_allowed", access.ONLY_LOOKING)


def check_tuning(token: ApiToken) -> None:
    """Numbers are tuned by admins. Raises Denied."""
    if not access.may_administer(token.user):
        raise Denied(403, "not_allowed", access.ONLY_ADMINS)


def check_administering(token: ApiToken) -> None:
    """Accounts on forges and secrets of webhooks are minded by admins. Raises Denied."""
    check_tuning(token)


def check_query(request: HttpRequest, declared: frozenset[str]) -> None:
    """Every part of the query means something, and is said once. Raises Denied."""
    wrong = {
        name[:60]: "There is no such parameter." for name in request.GET if name not in declared
    }
    twice = [name for name, values in request.GET.lists() if len(values) > 1]
    wrong |= {name[:60]: "This is given more than once." for name in twice if name in declared}
    if wrong:
        name, why = next(iter(wrong.items()))
        raise Denied(422, INVALID, f"{name}: {why}", wrong)


def token_of(request: HttpRequest) -> ApiToken:
    """The token that let this request in."""
    return cast("ApiToken", request.auth)  # type: ignore[attr-defined]


class StrictJson(Parser):
    """Bodies are JSON and say so."""

    def parse_body(self, request: HttpRequest) -> Any:
        """The JSON that was sent. Raises Denied."""
        if request.content_type != "application/json":
            text = "Send JSON, with the header Content-Type: application/json. Nothing was done."
            raise Denied(415, "wrong_type", text)
        if len(request.body) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            # Django believes the length that was announced, and in pieces none is.
            raise too_big()
        try:
            return json.loads(request.body)
        except (ValueError, RecursionError) as error:
            raise Denied(400, "bad_request", "The request is not JSON.") from error
