"""What an error means to a program that asked over HTTP: a status, a code and a sentence as JSON."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import DataError, InterfaceError, OperationalError
from django.forms import BaseForm
from django.http import Http404, JsonResponse
from django.http.request import UnreadablePostError

from runs.core.database_trouble import database_words
from runs.core.ports import SeamError
from runs.core.refusal import ActRefused
from trackers.base import NotFound, Refused, TrackerError

logger = logging.getLogger(__name__)

INVALID = "invalid"
UNFIT = (
    "The request holds a value that cannot be kept, such as a letter of number 0 or a number that is "
    "too large. Nothing was done."
)
_TOO_BIG = "That is too much text for one request. Nothing was done."
_MISTAKE = "labsite made a mistake; it is in its log. Look what was done before you ask again."
_UNREADABLE = "The request could not be read. Nothing was done."
# The first that fits counts. Without a text of ours the error's own words are told.
_MEANING: tuple[tuple[tuple[type[Exception], ...], int, str, str], ...] = (
    ((NotFound,), 404, "not_found", ""),
    ((Http404,), 404, "not_found", "There is nothing at this address."),
    ((Refused,), 409, "refused", ""),
    ((SeamError, TrackerError), 502, "no_answer", ""),
    ((DataError,), 422, INVALID, UNFIT),
    ((RequestDataTooBig,), 413, "too_big", _TOO_BIG),
    ((SuspiciousOperation, UnreadablePostError), 400, "bad_request", _UNREADABLE),
)


# Of refusals without a wrong field; all others are 409.
_STATUS = {"not_managed": 400}


class Denied(Exception):
    """The answer is no: an HTTP status, a code for programs, a sentence, and one for each field."""

    def __init__(
        self, status: int, code: str, text: str, fields: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(text)
        self.status = status
        self.code = code
        self.text = text
        self.fields = dict(fields or {})


def denial(error: Exception) -> Denied:
    """What an error means to whoever asked. Could not tell is 502: asking again may help."""
    if isinstance(error, Denied):
        return error
    if isinstance(error, ActRefused):
        return _of_act(error)
    if isinstance(error, OperationalError | InterfaceError):
        return Denied(503, "busy", database_words(str(error)))
    for kinds, status, code, text in _MEANING:
        if isinstance(error, kinds):
            return Denied(status, code, text or str(error))
    logger.error("a program's request failed", exc_info=error)
    return Denied(500, "failed", _MISTAKE)


def _of_act(error: ActRefused) -> Denied:
    """What was asked for wrongly names its fields; what makes no sense now has a code."""
    if error.fields and error.code in (ActRefused.code, INVALID):
        return Denied(422, INVALID, error.text, error.fields)
    return Denied(status_of(error), error.code, error.text, error.fields)


def status_of(error: ActRefused) -> int:
    """The status of a refusal in which no field is wrong."""
    return _STATUS.get(error.code, 409)


def at_fields(form: BaseForm, refused: ActRefused) -> None:
    """Put a refusal at the fields that it names; what names none of the form's goes above it."""
    for name, text in (refused.fields or {"": refused.text}).items():
        form.add_error(name if name in form.fields else None, text)


def too_big() -> Denied:
    """More text than one request may bring."""
    return Denied(413, "too_big", _TOO_BIG)


def answer(denied: Denied, content: Mapping[str, object]) -> JsonResponse:
    """The refusal as JSON; a 401 says how to ask."""
    made = JsonResponse(dict(content), status=denied.status)
    if denied.status == 401:
        made["WWW-Authenticate"] = "Bearer"
    made["Cache-Control"] = "no-store"
    return made
