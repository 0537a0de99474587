"""What an error means to a program that asked over HTTP: a status, a code and a sentence as JSON."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import DataError, InterfaceError, OperationalError
from django.http import Http404, JsonResponse
from django.http.request import UnreadablePostError

from runs.domain.ports import SeamError
from runs.domain.trouble import database_words
from runs.work.auto import AutoRefused
from runs.work.choices import ChoiceRefused
from runs.work.forges import ForgeRefused
from runs.work.groups import GroupRefused, NameTaken
from runs.work.issues import IssueRefused
from runs.work.monitors import AlreadyWatched, MonitorRefused
from runs.work.projects import ProjectRefused
from runs.work.pulls import PullRefused
from runs.work.switching import SwitchRefused
from runs.work.tasks import TaskRefused
from runs.work.tuning import TuningRefused
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
    ((Refused, AutoRefused), 409, "refused", ""),
    ((SeamError, TrackerError), 502, "no_answer", ""),
    ((DataError,), 422, INVALID, UNFIT),
    ((RequestDataTooBig,), 413, "too_big", _TOO_BIG),
    ((SuspiciousOperation, UnreadablePostError), 400, "bad_request", _UNREADABLE),
)


_AT_A_FIELD = (
    IssueRefused,
    PullRefused,
    ProjectRefused,
    ChoiceRefused,
    ForgeRefused,
    SwitchRefused,
)


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
    if isinstance(error, TuningRefused):
        return Denied(422, INVALID, str(error), error.fields)
    if isinstance(error, GroupRefused | TaskRefused | MonitorRefused):
        return _of_group(error)
    if isinstance(error, _AT_A_FIELD):
        return Denied(422, INVALID, error.text, {error.field: error.text})
    if isinstance(error, OperationalError | InterfaceError):
        return Denied(503, "busy", database_words(str(error)))
    for kinds, status, code, text in _MEANING:
        if isinstance(error, kinds):
            return Denied(status, code, text or str(error))
    logger.error("a program's request failed", exc_info=error)
    return Denied(500, "failed", _MISTAKE)


def _of_group(error: GroupRefused | TaskRefused | MonitorRefused) -> Denied:
    """What was asked for wrongly names its fields; what makes no sense now has a code."""
    match error:
        case NameTaken():
            return Denied(409, "name_taken", str(error), error.fields)
        case AlreadyWatched():
            return Denied(409, "already_watched", str(error))
        case TaskRefused() if not error.fields:
            return Denied(409, error.code, str(error))
    if not error.fields:
        return Denied(409, "refused", str(error))
    return Denied(422, INVALID, str(error), error.fields)


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
