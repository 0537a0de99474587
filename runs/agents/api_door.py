"""The door of the agent's API: who asks, what they sent, and refusals as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from pydantic import BaseModel, ValidationError

from runs.core import tokens
from runs.models import Run
from runs.telemetry import log_context
from runs.web import refusals
from runs.web.refusals import Denied
from runs.wiring import lab
from trackers.account import awaited

BODY_BYTES = 1_500_000

Shape = TypeVar("Shape", bound=BaseModel)
View = Callable[..., JsonResponse]


def door(**views: View) -> View:
    """One address of the API: a view per method, called with the run that the token stands for.

    No session and no cookie is looked at, so there is nothing for another site to forge.
    """

    @csrf_exempt
    @login_not_required
    @wraps(next(iter(views.values())))
    def answer(request: HttpRequest, **kwargs: Any) -> JsonResponse:
        try:
            view = views.get(request.method or "")
            if view is None:
                raise Denied(405, "wrong_method", f"This address answers {' and '.join(views)}.")
            run = run_of(request)
            log_context.note(**log_context.of(run))
            with awaited():
                return view(request, run, **kwargs)
        except Exception as error:  # the edge: an agent never gets a traceback
            return _refusal(refusals.denial(error))

    return answer


def run_of(request: HttpRequest) -> Run:
    """The active run whose token the request carries. Raises Denied."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.casefold() != "bearer" or not token.strip():
        raise Denied(401, "no_token", "Send the token of your run: Authorization: Bearer <token>.")
    digest = tokens.hash_token(token.strip())
    run = Run.objects.active().select_related("project").filter(token_hash=digest).first()
    if run is None or not tokens.is_token(token.strip(), run.token_hash):
        raise Denied(
            401,
            "unknown_token",
            "This token is not valid: its run has ended, and the token ended with it. "
            "Nothing was done.",
        )
    return run


def texts(request: HttpRequest, *names: str) -> Mapping[str, str]:
    """These fields of the JSON that was sent; a missing one is empty. Raises Denied."""
    sent = _sent(request)
    found = {name: sent.get(name, "") for name in names}
    if not all(isinstance(value, str) for value in found.values()):
        raise Denied(400, "bad_request", f"Each of {', '.join(names)} has to be a text.")
    return found


def shaped(request: HttpRequest, shape: type[Shape]) -> Shape:
    """The JSON that was sent in one of the shapes of the HTTP API. Raises Denied."""
    try:
        return shape.model_validate(_sent(request))
    except ValidationError as error:
        said = error.errors()[0]
        name = ".".join(map(str, said["loc"]))
        raise Denied(422, "invalid", f"{name}: {said['msg']}. Nothing was done.") from error


def _sent(request: HttpRequest) -> dict[str, Any]:
    try:
        data = request.body
    except RequestDataTooBig as error:
        raise refusals.too_big() from error
    if len(data) > BODY_BYTES:
        raise refusals.too_big()
    try:
        sent = json.loads(data or b"{}")
    except (ValueError, RecursionError) as error:
        raise Denied(400, "bad_request", "The request is not JSON.") from error
    if not isinstance(sent, dict):
        raise Denied(400, "bad_request", "The request is not a JSON object.")
    return {name: _masked(value) for name, value in sent.items()}


def _masked(value: Any) -> Any:
    """What an agent writes is published, so no secret that labsite knows goes further than here."""
    if isinstance(value, str):
        return lab().mask(value)
    if isinstance(value, list):
        return [_masked(one) for one in value]
    if isinstance(value, dict):
        return {name: _masked(one) for name, one in value.items()}
    return value


def _refusal(denied: Denied) -> JsonResponse:
    """An agent is told the field as the code: its command prints one sentence."""
    code = next(iter(denied.fields), denied.code)
    return refusals.answer(denied, {"code": code, "text": denied.text})
