"""Every refusal of the API in one shape, whoever refuses: the gate, a form, a verb, the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import HttpRequest, JsonResponse
from ninja.errors import AuthenticationError, HttpError, ValidationError

from runs.web import refusals
from runs.web.refusals import INVALID, Denied

NO_TOKEN = "Send a personal token: Authorization: Bearer <token>."  # noqa: S105
LONGEST_NAME = 60

_WORDS = {
    "missing": "This is missing.",
    "extra_forbidden": "There is no such field.",
    "model_type": "Send a JSON object.",
    "model_attributes_type": "Send a JSON object.",
    "string_type": "This has to be a text.",
    "string_unicode": "This holds letters that cannot be kept.",
    "string_pattern_mismatch": "This holds letters that cannot be kept.",
    "list_type": "This has to be a list.",
}


def handle(request: HttpRequest, error: Any) -> JsonResponse:
    """The answer to whatever went wrong while a request was carried out."""
    return shown(meaning(error))


def meaning(error: Exception) -> Denied:
    """What an error means, those of the library included."""
    match error:
        case ValidationError():
            return wrong(error.errors)
        case AuthenticationError():
            return Denied(401, "no_token", NO_TOKEN)
        case HttpError(__cause__=Denied() as denied):
            return denied
        case HttpError():
            return Denied(error.status_code, "bad_request", f"{error.message}.")
    return refusals.denial(error)


def shown(denied: Denied) -> JsonResponse:
    """A refusal in the shape of `shapes.Problem`."""
    return refusals.answer(denied, content(denied))


def content(denied: Denied) -> dict[str, object]:
    return {"code": denied.code, "text": denied.text, "fields": denied.fields}


def wrong(errors: Sequence[Mapping[str, Any]]) -> Denied:
    """What does not fit the description; an address that cannot be one is not found."""
    if any(error["loc"][0] == "path" for error in errors):
        return Denied(404, "not_found", "There is nothing at this address.")
    fields = {_name(error["loc"]): words(error) for error in errors}
    name, why = next(iter(fields.items()))
    return Denied(422, INVALID, f"{name}: {why} Nothing was done.", fields)


def _name(loc: Sequence[object]) -> str:
    """The field as the sender calls it: without the place, and without our name of the body."""
    parts = loc[2:] if loc[0] == "body" else loc[1:]
    return ".".join(str(part) for part in parts)[:LONGEST_NAME] or "body"


def words(error: Mapping[str, Any]) -> str:
    """What is wrong with one field, as a sentence."""
    said = str(error["msg"]).removeprefix("Value error, ")
    return _WORDS.get(error["type"]) or f"{said.rstrip('.')}."
