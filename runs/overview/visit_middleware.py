"""Who is here, as their browser's session keeps it: the database is asked every few minutes only."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from django.contrib.auth.models import User
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponseBase

from runs import wiring
from runs.overview import away as visits
from runs.overview import away_rules
from runs.overview.away import Away

SEEN, AWAY = "seen", "away"


class Visits:
    """Middleware: whoever has seen the overview once is noted as being here while they ask."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._answer = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        answer = self._answer(request)
        # Only where the session was read anyway: no request gets slower by this.
        session = getattr(request, "session", None)
        if session is not None and session.accessed and SEEN in session:
            _note(request)
        return answer


def away(request: HttpRequest) -> Away | None:
    """What this person was not here for, until they put it away; None for nothing."""
    _note(request)
    if not (request.session.get(AWAY) and isinstance(request.user, User)):
        return None
    found = visits.untold(request.user)
    if found is None:  # put away on another device
        request.session.pop(AWAY)
    # A project may have been removed since, with all that ended in it.
    return None if found is None or found.is_empty else found


def put_away(request: HttpRequest, until: str) -> None:
    """Not shown again, on any device, up to `until`, as the card had it (ISO 8601)."""
    if isinstance(request.user, User) and visits.put_away(request.user, until):
        request.session.pop(AWAY, None)


def _note(request: HttpRequest) -> None:
    now, session = wiring.lab().now(), request.session
    noted = session.get(SEEN)
    if not isinstance(request.user, User):
        return
    if not away_rules.is_due(_moment(noted) if noted else None, now):
        return
    try:
        is_untold = visits.note(request.user, now)
    except (OperationalError, InterfaceError):
        return  # a page that only reads is shown nevertheless; the next one notes it
    # No visit begins within half an hour of this, so pages need not ask the database until then.
    session[SEEN], session[AWAY] = now.timestamp(), is_untold


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
