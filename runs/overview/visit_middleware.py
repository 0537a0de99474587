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
    kept = request.session.get(AWAY)
    if not kept:
        return None
    found = visits.away(_moment(kept[0]), _moment(kept[1]))
    if found.is_empty:
        put_away(request)
        return None
    return found


def put_away(request: HttpRequest) -> None:
    """Not shown again."""
    request.session.pop(AWAY, None)


def _note(request: HttpRequest) -> None:
    now, session = wiring.lab().now(), request.session
    noted = session.get(SEEN)
    if not isinstance(request.user, User):
        return
    if not away_rules.is_due(_moment(noted) if noted else None, now):
        return
    try:
        since = visits.note(request.user, now)
    except (OperationalError, InterfaceError):
        return  # a page that only reads is shown nevertheless; the next one notes it
    session[SEEN] = now.timestamp()
    if since is not None:
        session[AWAY] = [since.timestamp(), now.timestamp()]


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
