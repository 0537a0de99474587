"""The door by which a machine joins: no login, only its join token, which works once."""

from __future__ import annotations

import json

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_variables

from runs import wiring
from runs.hosts import acts
from runs.web import answers, refusals
from runs.web.refusals import Denied

MOST_BYTES = 4096


@csrf_exempt
@login_not_required
@sensitive_variables()
def join(request: HttpRequest) -> JsonResponse:
    """What a machine needs to work beside this one, told once to whoever shows an unused token."""
    try:
        token, machine = _asked(request)
        name = acts.join(wiring.lab(), token, machine)
    except acts.HostRefused as refused:
        return _answer(Denied(403, "not_joined", refused.text))
    except Denied as denied:
        return _answer(denied)
    told = {
        "LAB_SESSION_HOST": name,
        "LAB_SECRET_KEY": settings.SECRET_KEY,
        **settings.TOLD_TO_HOSTS,
    }
    answer = JsonResponse({"settings": told})
    answers.fresh(answer)
    return answer


def _asked(request: HttpRequest) -> tuple[str, str]:
    """Token and machine. Raises Denied."""
    if request.method != "POST":
        raise Denied(405, "wrong_method", "This address answers POST.")
    try:
        sent = json.loads(request.read(MOST_BYTES))
        return str(sent["token"]), str(sent["machine"])
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise Denied(400, "bad_request", "The request cannot be read.") from error


def _answer(denied: Denied) -> JsonResponse:
    return refusals.answer(denied, {"code": denied.code, "text": denied.text})
