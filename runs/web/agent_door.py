"""The door of the agent's API: who asks, what they sent, and refusals as JSON."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import RequestDataTooBig
from django.db import OperationalError
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from runs.domain import tokens
from runs.domain.ports import SeamError
from runs.models import Run
from runs.work.issues import IssueRefused
from runs.work.pulls import PullRefused
from trackers.base import NotFound, Refused, TrackerError

logger = logging.getLogger(__name__)

BODY_BYTES = 1_500_000

View = Callable[..., JsonResponse]


class Denied(Exception):
    """The answer is no, with an HTTP status, a code for programs and a sentence for the agent."""

    def __init__(self, status: int, code: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.code = code
        self.text = text


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
            return view(request, run_of(request), **kwargs)
        except Exception as error:  # the edge: an agent never gets a traceback
            return _refusal(_denial(error))

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
    try:
        data = request.body
    except RequestDataTooBig as error:
        raise _too_big() from error
    if len(data) > BODY_BYTES:
        raise _too_big()
    try:
        sent = json.loads(data or b"{}")
    except (ValueError, RecursionError) as error:
        raise Denied(400, "bad_request", "The request is not JSON.") from error
    if not isinstance(sent, dict):
        raise Denied(400, "bad_request", "The request is not a JSON object.")
    found = {name: sent.get(name, "") for name in names}
    if not all(isinstance(value, str) for value in found.values()):
        raise Denied(400, "bad_request", f"Each of {', '.join(names)} has to be a text.")
    return found


def _denial(error: Exception) -> Denied:
    """What an error means to the agent. Could not tell is 502: its command asks again."""
    match error:
        case Denied():
            return error
        case IssueRefused() | PullRefused():
            return Denied(422, error.field, error.text)
        case NotFound():
            return Denied(404, "not_found", str(error))
        case Refused():
            return Denied(409, "refused", str(error))
        case SeamError() | TrackerError():
            return Denied(502, "no_answer", str(error))
        case OperationalError():
            return Denied(503, "busy", "The database is busy just now. Try again.")
    logger.error("agent request failed", exc_info=error)
    return Denied(500, "failed", "labsite made a mistake; it is in its log. Nothing was changed.")


def _refusal(denied: Denied) -> JsonResponse:
    answer = JsonResponse({"code": denied.code, "text": denied.text}, status=denied.status)
    if denied.status == 401:
        answer["WWW-Authenticate"] = "Bearer"
    answer["Cache-Control"] = "no-store"
    return answer


def _too_big() -> Denied:
    return Denied(413, "too_big", "That is too much text for one request. Nothing was done.")
