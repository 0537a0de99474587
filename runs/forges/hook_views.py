"""The door for webhooks: no login, no cookie, only a signature over what was sent."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, JsonResponse
from django.http.request import UnreadablePostError
from django.views.decorators.csrf import csrf_exempt

from runs import wiring
from runs.forges import hook_rules, hooks
from runs.forges.hook_rules import HookDid
from runs.forges.hooks import HookRefused, NotRead, NotReady, NotSigned
from runs.people import login_throttle
from runs.web import answers, refusals
from runs.web.refusals import Denied

SEEN = "This was seen before. Nothing was done."
DONE: Mapping[HookDid, str] = {
    HookDid.WOKE: "Thank you. The project is looked at now.",
    HookDid.GREETED: "Hello. Deliveries to this address will be heard.",
    HookDid.NOTHING: "Thank you. This is not about issues, pull requests or code; nothing was done.",
}
_REFUSED: Mapping[type[HookRefused], tuple[int, str]] = {
    NotSigned: (403, "not_signed"),
    NotReady: (409, "not_ready"),
    NotRead: (400, "bad_request"),
}


@csrf_exempt
@login_not_required
def hook(request: HttpRequest, key: str) -> JsonResponse:
    """Take one delivery and answer at once; what it asks for is done by the worker.

    One that was seen before is answered with 200: a proxy that sends until it hears so stops.
    """
    try:
        did = _received(request, key)
    except Exception as error:  # the edge: a forge never gets a traceback
        return _refused(request, error)
    code, text = (did.value, DONE[did]) if did is not None else ("seen", SEEN)
    answer = JsonResponse({"code": code, "text": text})
    answers.fresh(answer)
    return answer


def _received(request: HttpRequest, key: str) -> HookDid | None:
    """What the delivery did. Raises Denied, HookRefused, TooManyTries."""
    if request.method != "POST":
        raise Denied(405, "wrong_method", "This address answers POST.")
    body = _body(request)
    sent = hook_rules.read(request.headers)
    try:
        return hooks.receive(wiring.lab(), key, sent, body)
    except NotSigned:
        # Only wrong ones count, and are counted late: whoever shares the forge's address could
        # otherwise shut its door with theirs.
        login_throttle.wrong_hook(request)
        raise


def _body(request: HttpRequest) -> bytes:
    """What was sent, read no further than the bound, whatever length was announced."""
    try:
        announced = int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError as error:
        raise Denied(400, "bad_request", "The length that was announced is no number.") from error
    if announced > hook_rules.MOST_BYTES:
        raise refusals.too_big()
    try:
        body = request.read(hook_rules.MOST_BYTES + 1)
    except UnreadablePostError as error:
        raise Denied(400, "bad_request", "The request could not be read.") from error
    if len(body) > hook_rules.MOST_BYTES:
        raise refusals.too_big()
    return body


def _refused(request: HttpRequest, error: Exception) -> JsonResponse:
    if isinstance(error, login_throttle.TooManyTries):
        answer = _answer(Denied(429, "too_many_tries", login_throttle.said(error.wait)))
        login_throttle.told(answer, error.wait)
        return answer
    if isinstance(error, HookRefused):
        status, code = _REFUSED[type(error)]
        return _answer(Denied(status, code, f"{error} Nothing was done."))
    return _answer(refusals.denial(error))


def _answer(denied: Denied) -> JsonResponse:
    return refusals.answer(denied, {"code": denied.code, "text": denied.text})
